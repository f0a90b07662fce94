/** `gatehouse import bifrost`: from a file in the form of its published examples, and from the tables of its store. */
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../src/kit/secret.ts'
import { openStore } from '../src/store/open-store.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { importDirectory, lineOf, outcomesOf } from './kit/imports.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const FIXTURES = join(import.meta.dir, 'fixtures/import/bifrost')
const CONFIG = join(FIXTURES, 'config.json')
const VALUES = { TEAM_HEADER: 'search', AZURE_ENDPOINT_EU: 'https://example-eu.openai.azure.com' }

describe('gatehouse import bifrost', () => {
  test('carries providers with their keys and models from config.json, and prints no secret', async () => {
    using directory = importDirectory()
    const dry = await directory.import(['bifrost', CONFIG, '--dry-run'])
    expect(dry.out).toContain('Nothing was written')
    const report = await directory.report(['bifrost', CONFIG, '--secrets', 'secrets.env'])
    const file = directory.file()
    for (const secret of ['sk-plain-of-openai', 'sk-bf-5b0f2a6e']) {
      expect(dry.out + file + JSON.stringify(report)).not.toContain(secret)
    }
    expect(readFileSync(join(directory.path, 'secrets.env'), 'utf8')).toContain('sk-plain-of-openai')
    expect(file).toContain('keys: [{ key: "${OPENAI_API_KEY}", weight: 0.7 }')
    expect(file).toContain('calls: { max: 500, queue: { length: 1000 } }')
    expect(file).toContain(
      '  azure/gpt-4.1:\n    targets: [{ provider: azure, model: gpt-4-1-us }, { provider: azure-2, model: gpt-4.1 }]',
    )
    expect(file).toContain('base_url: "https://llm.acme.example/v1"')
    expect(file).toContain('  acme/small:\n    targets: [{ provider: acme, model: acme-small }]')
    expect(lineOf(report, 'providers.openai.keys[openai-old]')).toMatchObject({ why: 'it is disabled' })
    expect(lineOf(report, 'providers.runware.keys[Runware API Key]')?.outcome).toBe('dropped')
    expect(report.problems).toEqual([expect.stringContaining('providers.vertex needs')])
    const values = Object.fromEntries(report.variables.map(({ name }) => [name, 'a-key-of-the-provider']))
    expect((await directory.check({ ...values, ...VALUES })).err).toContain('providers.vertex needs')
    const again = await directory.report(['bifrost', CONFIG])
    expect(again).toMatchObject({ written: false, accounts: [], lines: report.lines })
  })

  test('carries virtual keys with their budgets and limits, and none of them may do more than before', async () => {
    using directory = importDirectory()
    const report = await directory.report(['bifrost', CONFIG])
    expect(outcomesOf(report)).toEqual([
      'added project Search',
      'added token app',
      'added token nothing',
      'added token off',
    ])
    const at = 'governance.virtual_keys'
    expect(lineOf(report, `${at}[app].budgets[0].max_limit`)?.to).toBe('token app.budgets: 100 a month')
    expect(lineOf(report, `${at}[app].rate_limit.request_max_limit`)?.to).toBe(
      'token app.rate_limits.requests_per_minute: 60',
    )
    // 100,000 in five minutes are never exceeded by 20,000 a minute.
    expect(lineOf(report, `${at}[app].rate_limit.token_max_limit`)).toMatchObject({
      outcome: 'changed',
      to: 'token app.rate_limits.tokens_per_minute: 20000',
    })
    expect(lineOf(report, `${at}[variable]`)?.why).toContain('the variable BIFROST_VK')
    expect(lineOf(report, 'governance.customers[Example Ltd]')?.outcome).toBe('dropped')

    const vendor = startVendor()
    vendor.otherwise(whole(completion('hi')))
    const models = ['openai/gpt-4o', 'gpt-4o-mini', 'azure/gpt-4o', 'azure/gpt-4.1', 'acme/small']
    const target = { targets: [{ provider: 'v', model: 'm' }], prices: { input: 0, output: 0 } }
    const gateway = await startGateway(
      configOf({
        providers: { v: { base_url: vendor.url } },
        models: Object.fromEntries(models.map((id) => [id, target])),
      }),
      { store_url: `sqlite:${join(directory.path, 'gatehouse.db')}` },
    )
    const call = async (key: string, model: string) => {
      const json = { model, max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
      const response = await gateway.chat(json, { headers: { authorization: `Bearer sk-bf-5b0f2a6e-${key}` } })
      const body = await response.text()
      return response.status === 200 ? 200 : JSON.parse(body).error.code
    }
    try {
      const answers = await Promise.all(models.map((model) => call('app-of-the-example', model)))
      expect(answers).toEqual([200, 200, 200, 'model_not_allowed', 'model_not_allowed'])
      for (const key of ['nothing-allowed', 'switched-off'])
        expect(await call(key, 'acme/small')).toBe('invalid_api_key')
    } finally {
      await gateway[Symbol.asyncDispose]()
      vendor.stop()
    }
  })

  test('says what becomes of each part of the published examples', async () => {
    using directory = importDirectory()
    const path = join(FIXTURES, 'virtual-keys.json')
    const { providers, governance, ...sections } = JSON.parse(readFileSync(path, 'utf8'))
    const report = await directory.report(['bifrost', path])
    const parts = [
      ...Object.keys(sections).filter((name) => name !== '$schema'),
      ...Object.entries<{ keys: { name: string }[] }>(providers).flatMap(([name, { keys }]) =>
        keys.map((key) => `providers.${name}.keys[${key.name}]`),
      ),
      ...governance.virtual_keys.map(({ name }: { name: string }) => `governance.virtual_keys[${name}]`),
      'governance.auth_config',
    ]
    expect(parts.filter((part) => !report.lines.some(({ from }) => from === part))).toEqual([])
    // What is said to be in the file is there.
    for (const { outcome, to = '' } of report.lines) {
      const [, provider] = /^providers\.([a-z][\w-]*)/.exec(to) ?? []
      if (outcome === 'carried' && provider) expect(directory.file()).toContain(`  ${provider}:\n`)
    }
    expect(lineOf(report, 'providers.parasail.keys[Parasail]')?.why).toContain('no address to call')
    expect(lineOf(report, 'governance.virtual_keys[eu].provider_configs[azure].key_ids')?.outcome).toBe('dropped')
  })

  test('lets no virtual key call a model that its provider config blocks', async () => {
    using directory = importDirectory()
    const openai = { keys: [{ name: 'one', value: 'env.OPENAI_API_KEY', models: ['gpt-4o', 'o3', 'gpt-4o-mini'] }] }
    const shares = {
      listed: { allowed_models: ['gpt-4o', 'o3'], blacklisted_models: ['O3'] },
      open: { allowed_models: ['*'], blacklisted_models: ['o3', 'unknown'] },
      closed: { allowed_models: ['*'], blacklisted_models: ['*'] },
    }
    const virtual_keys = Object.entries(shares).map(([name, share]) => ({
      id: name,
      name,
      value: `sk-bf-${name}-of-the-test`,
      provider_configs: [{ provider: 'openai', key_ids: ['*'], ...share }],
    }))
    const config = { version: 2, providers: { openai }, governance: { virtual_keys } }
    writeFileSync(join(directory.path, 'config.json'), JSON.stringify(config))
    const report = await directory.report(['bifrost', 'config.json'])
    const at = (name: string) => `governance.virtual_keys[${name}].provider_configs`
    expect(lineOf(report, `${at('open')}[openai].blacklisted_models`)?.outcome).toBe('changed')
    expect(lineOf(report, at('closed'))?.to).toBe('token closed, revoked')
    const store = await openStore({ url: `sqlite:${join(directory.path, 'gatehouse.db')}` })
    const tokens = await store.tokens.list()
    await store.close()
    const models = Object.fromEntries(tokens.map(({ name, models }) => [name, models]))
    expect(models).toMatchObject({
      listed: ['openai/gpt-4o', 'gpt-4o'],
      open: ['openai/gpt-4o', 'openai/gpt-4o-mini', 'gpt-4o', 'gpt-4o-mini'],
    })
  })

  test('reads an empty list as everything where the file says version 1', async () => {
    using directory = importDirectory()
    const config = {
      version: 1,
      providers: { openai: { keys: [{ name: 'one', value: 'env.OPENAI_API_KEY', models: [] }] } },
      governance: {
        virtual_keys: [{ id: 'vk', name: 'open', value: 'sk-bf-a-key-of-version-one', provider_configs: [] }],
      },
    }
    writeFileSync(join(directory.path, 'config.json'), JSON.stringify(config))
    const open = await directory.report(['bifrost', 'config.json', '--dry-run'])
    expect(lineOf(open, 'governance.virtual_keys[open].provider_configs')?.to).toBe('token open.models')
    expect(lineOf(open, 'providers.openai.keys[one]')?.to).toBe('providers.openai, with the models that it lists')
    writeFileSync(join(directory.path, 'config.json'), JSON.stringify({ ...config, version: 2 }))
    const closed = await directory.report(['bifrost', 'config.json', '--dry-run'])
    expect(lineOf(closed, 'governance.virtual_keys[open].provider_configs')?.to).toBe('token open, revoked')
  })

  test('reads an encrypted store: hashes of virtual keys are carried, values of providers become variables', async () => {
    using directory = importDirectory()
    const key = 'sk-bf-of-the-encrypted-store'
    const source = directory.database('config.db', {
      config_providers: [{ id: 1, name: 'openai', network_config_json: '{"base_url":"https://proxy.example.com"}' }],
      config_keys: [
        {
          id: 7,
          name: 'main key',
          provider_id: 1,
          provider: 'openai',
          key_id: 'k-7',
          value: 'ZW5jcnlwdGVk',
          models_json: '["gpt-4o"]',
          weight: 1,
          enabled: 1,
          encryption_status: 'encrypted',
        },
        {
          id: 8,
          name: 'env key',
          provider_id: 1,
          value: '{"value":"","env_var":"env.SECOND_KEY","from_env":true}',
          models_json: '["*"]',
        },
      ],
      governance_virtual_keys: [
        {
          id: 'vk-1',
          name: 'app',
          value: 'ZW5j',
          value_hash: sha256(key),
          is_active: 1,
          encryption_status: 'encrypted',
          customer_id: 'c-1',
        },
      ],
      governance_virtual_key_provider_configs: [
        { id: 3, virtual_key_id: 'vk-1', provider: 'openai', allowed_models: '["gpt-4o"]', allow_all_keys: 1 },
        { id: 4, virtual_key_id: 'vk-1', provider: 'azure', allowed_models: '["*"]', allow_all_keys: 0 },
      ],
      governance_virtual_key_provider_config_keys: [{ table_virtual_key_provider_config_id: 9, table_key_id: 1 }],
      governance_budgets: [
        { id: 'b', max_limit: 5, reset_duration: '1w', current_usage: 1, customer_id: 'c-1', virtual_key_id: null },
      ],
      governance_customers: [{ id: 'c-1', name: 'Example Ltd', rate_limit_id: null }],
      routing_rules: [{ id: 'r', name: 'cheap first' }],
    })
    const report = await directory.report(['bifrost', source])
    expect(report.variables.map(({ name }) => name)).toEqual(['MAIN_KEY_API_KEY', 'SECOND_KEY'])
    expect(directory.file()).toContain('base_url: "https://proxy.example.com/v1"')
    expect(outcomesOf(report)).toEqual(['added project Example Ltd', 'added token app'])
    expect(lineOf(report, 'governance_customers[Example Ltd].budgets[0].max_limit')?.to).toContain('5 a week')
    expect(lineOf(report, 'governance_virtual_keys[app].provider_configs[azure]')?.why).toBe(
      'it allows no key or no model',
    )
    expect(lineOf(report, 'routing_rules[cheap first]')?.outcome).toBe('dropped')
    expect(JSON.stringify(report)).not.toContain(sha256(key))
  })
})
