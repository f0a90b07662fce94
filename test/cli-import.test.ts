/** `gatehouse import`: from published examples of other gateways and dumps of their databases, run in this process. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse as parseYaml } from 'yaml'
import { run as runCheck } from '../src/cli/commands/check.ts'
import { run as runImport } from '../src/cli/commands/import.ts'
import { run as runToken } from '../src/cli/commands/token.ts'
import { parseEnvironmentFile } from '../src/config/load/environment-file.ts'
import { loadConfig } from '../src/config/load/load.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const FIXTURES = join(import.meta.dir, 'fixtures/import')
const COMMANDS = { import: runImport, check: runCheck, token: runToken }

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-import-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

async function gatehouse(command: keyof typeof COMMANDS, args: string[], variables: Record<string, string> = {}) {
  const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: directory, ...variables }
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const error = await COMMANDS[command](args, terminal).then(
    (code) => (code === 0 ? undefined : `code ${code}`),
    (thrown: Error) => thrown.message,
  )
  return { ...printed, error }
}

type Line = { outcome: string; from: string; to?: string; why?: string }
type Report = {
  lines: Line[]
  variables: { name: string; from: string; in_plain: boolean }[]
  accounts: { kind: string; name: string; outcome: string }[]
  written: boolean
}

async function importOf(...args: string[]): Promise<Report> {
  const { out, error } = await gatehouse('import', [...args, '--json'])
  expect(error).toBeUndefined()
  return JSON.parse(out)
}

const lineAt = ({ lines }: Report, from: string) => lines.find((line) => line.from === from)
const written = () => readFileSync(join(directory, 'gatehouse.yaml'), 'utf8')
function write(name: string, text: string): string {
  writeFileSync(join(directory, name), text)
  return name
}

/** The file passes the check with every variable that the import names. */
async function expectValid({ variables }: Report): Promise<void> {
  const values = Object.fromEntries(variables.map(({ name }) => [name, 'https://set.example.com/v1']))
  expect(await gatehouse('check', [], values)).toMatchObject({ error: undefined })
}

describe('gatehouse import litellm', () => {
  const litellm = (name: string) => join(FIXTURES, 'litellm', name)

  test.each([['azure_config_with_tpm.yaml'], ['load_balancer.yaml'], ['oai_misc_config.yaml']])(
    'makes a valid file of the example %s, and changes nothing when it is done again',
    async (name) => {
      const report = await importOf('litellm', litellm(name))
      expect(report.written).toBe(true)
      await expectValid(report)
      const first = written()
      const again = await importOf('litellm', litellm(name))
      expect(again).toMatchObject({ written: false, lines: report.lines })
      expect(written()).toBe(first)
    },
  )

  test('sums the limits of deployments, and spreads calls over them', async () => {
    const report = await importOf('litellm', litellm('azure_config_with_tpm.yaml'))
    expect(written()).toContain('rate_limits: { tokens_per_minute: 160000 }')
    expect(written()).toContain(
      'targets: [{ provider: azure, model: gpt-35-1 }, { provider: azure-2, model: gpt-35-2 }]',
    )
    expect(written()).toContain('strategy: weighted')
    expect(lineAt(report, 'model_list[0].litellm_params.tpm')?.outcome).toBe('changed')
  })

  test('says what is dropped by its path, and never prints a secret', async () => {
    const { out, error } = await gatehouse('import', ['litellm', litellm('load_balancer.yaml'), '--dry-run'])
    expect(error).toBeUndefined()
    expect(out).toContain('dropped  model_list[3].litellm_params.model: provider "mistralai" is not known')
    expect(out).toContain('dropped  model_list[0].rpm: other deployments of gpt-3.5-turbo have no such limit')
    expect(out).toContain('dropped  environment_variables:')
    expect(out).toMatch(
      /OPENAI_API_KEY_[0-9A-F]{6} {2}model_list\[1\]\.litellm_params\.api_key \(written there in plain\)/,
    )
    for (const secret of ['uj6F', 'Imn', 'eYVX71']) expect(out).not.toContain(secret)
    expect(() => written()).toThrow()
  })

  test('drops values that are not valid here, says so, and carries the rest', async () => {
    const source = write(
      'odd.yaml',
      `model_list:
  - model_name: team/gpt.5
    litellm_params: { model: openai/gpt-5, timeout: 0, weight: 2 }
  - model_name: team/gpt.5
    litellm_params: { model: openai/gpt-5-mini, stream_timeout: 0, timeout: 20, weight: -1 }
litellm_settings: { max_budget: 5, budget_duration: 30d }
general_settings: { global_max_parallel_requests: -1 }
`,
    )
    const report = await importOf('litellm', source)
    await expectValid(report)
    const dropped = report.lines.filter(({ why }) => why?.startsWith('value not accepted: '))
    expect(dropped.map(({ outcome, from, to }) => [outcome, from, to])).toEqual([
      ['dropped', 'general_settings.global_max_parallel_requests', undefined],
      ['dropped', 'models."team/gpt.5".targets[0].timeouts.total_seconds', undefined],
      ['dropped', 'models."team/gpt.5".targets[1].weight', undefined],
      ['dropped', 'models."team/gpt.5".targets[1].timeouts.first_byte_seconds', undefined],
    ])
    expect(parseYaml(written())).toMatchObject({
      budgets: [{ amount: 5, window: 'month' }],
      models: {
        'team/gpt.5': {
          targets: [
            { model: 'gpt-5', weight: 2 },
            { model: 'gpt-5-mini', timeouts: { total_seconds: 20 } },
          ],
        },
      },
    })
  })

  test('reads fallbacks, aliases, tags, prices, budgets and timeouts', async () => {
    const source = write(
      'config.yaml',
      `
model_list:
  - model_name: small
    litellm_params: { model: openai/gpt-5-mini, input_cost_per_token: 0.00000025, order: 2, tags: [cheap], timeout: 20 }
  - model_name: small
    litellm_params: { model: groq/llama, api_key: os.environ/GROQ, order: 1, weight: 3 }
  - model_name: large
    litellm_params: { model: anthropic/claude-opus, max_tokens: 4096, future_member: 1 }
    model_info: { mode: chat, max_input_tokens: 200000 }
router_settings:
  routing_strategy: least-busy
  model_group_alias: { tiny: small }
  fallbacks: [{ small: [large, missing] }]
litellm_settings: { max_budget: 90, budget_duration: 60d, default_fallbacks: [small] }
general_settings: { global_max_parallel_requests: 50 }
`,
    )
    const report = await importOf('litellm', source)
    await expectValid(report)
    const config = loadConfig({
      environment: { GATEHOUSE_DISCOVER: 'off', GROQ: 'x', OPENAI_API_KEY: 'x', ANTHROPIC_API_KEY: 'x' },
      cwd: directory,
      flags: {},
    })
    expect(config.models.small).toMatchObject({
      targets: [
        {
          provider: 'openai',
          model: 'gpt-5-mini',
          priority: 1,
          when: { tags: ['cheap'] },
          timeouts: { total_seconds: 20 },
        },
        { provider: 'groq', model: 'llama', priority: 0, weight: 3 },
      ],
      prices: { input: 0.25 },
      fallbacks: { unavailable: ['large'] },
    })
    expect(config.models.large).toMatchObject({ context_tokens: 200_000, fallbacks: { unavailable: ['small'] } })
    expect(config.models.tiny).toMatchObject({ alias_of: 'small' })
    expect(config.rate_limits).toEqual({ concurrent_requests: 50 })
    expect(config.budgets).toMatchObject([{ amount: 45, window: 'month' }])
    expect(lineAt(report, 'model_list[2].litellm_params.future_member')).toEqual({
      outcome: 'dropped',
      from: 'model_list[2].litellm_params.future_member',
      why: 'this import does not know it',
    })
  })

  const atHost = (host: string, name: string, key: string) =>
    `  - { model_name: ${name}, litellm_params: { model: openai/x, api_base: "https://${host}.example/v1", api_key: ${key} } }`
  const providerOf = (name: string) => {
    const { models, providers } = parseYaml(written()) as {
      models: Record<string, { targets: { provider: string }[] }>
      providers: Record<string, { base_url: string; key: string }>
    }
    const provider = providers[models[name]?.targets[0]?.provider ?? '']
    return { base_url: provider?.base_url, key: provider?.key.slice(2, -1) ?? '' }
  }
  const secretsIn = (name: string) => parseEnvironmentFile(readFileSync(join(directory, name), 'utf8'), name)

  test('a key in plain is never the value of a variable that another deployment names', async () => {
    const list = ['model_list:', atHost('a', 'a', 'sk-of-a'), atHost('b', 'b', 'os.environ/OPENAI_API_KEY')]
    await importOf('litellm', write('config.yaml', list.join('\n')), '--secrets', 'secrets.env')
    expect(providerOf('b')).toEqual({ base_url: 'https://b.example/v1', key: 'OPENAI_API_KEY' })
    expect(secretsIn('secrets.env')).toEqual({ [providerOf('a').key]: 'sk-of-a' })
    expect(providerOf('a')).toEqual({
      base_url: 'https://a.example/v1',
      key: expect.stringMatching(/^OPENAI_API_KEY_/),
    })
  })

  test('each model keeps the address and the key of its deployment, whatever a later import finds before it', async () => {
    const first = ['model_list:', atHost('a', 'prod', 'sk-of-a')]
    await importOf('litellm', write('config.yaml', first.join('\n')), '--secrets', 'first.env')
    const later = ['model_list:', atHost('b', 'fresh', 'sk-of-b'), ...first.slice(1)]
    await importOf('litellm', write('config.yaml', later.join('\n')), '--secrets', 'later.env')
    for (const [name, host] of [
      ['prod', 'a'],
      ['fresh', 'b'],
    ] as const) {
      const { base_url, key } = providerOf(name)
      expect([name, base_url, secretsIn('later.env')[key]]).toEqual([
        name,
        `https://${host}.example/v1`,
        `sk-of-${host}`,
      ])
    }
  })

  test('a provider that the file has under the same name is used only where it is the same account', async () => {
    const own =
      'providers:\n  openai: { preset: openai, base_url: "https://b.example/v1", key: "${OWN}", discover: false }\n'
    write('gatehouse.yaml', own)
    const list = ['model_list:', atHost('b', 'same', 'os.environ/OWN'), atHost('a', 'other', 'os.environ/OTHER')]
    await importOf('litellm', write('config.yaml', list.join('\n')))
    expect(written()).toContain('same:\n    targets: [{ provider: openai, model: x }]')
    expect(providerOf('other')).toEqual({ base_url: 'https://a.example/v1', key: 'OTHER' })
  })

  test('a later deployment of a model with other prices and defaults is not silently charged as the first one', async () => {
    const of = (model: string, input: string, temperature: number) =>
      `  - { model_name: m, litellm_params: { model: ${model}, input_cost_per_token: ${input}, temperature: ${temperature} } }`
    const list = ['model_list:', of('openai/a', '0.000001', 0), of('anthropic/b', '0.00009', 1)]
    const report = await importOf('litellm', write('config.yaml', list.join('\n')))
    expect(written()).toContain('{ provider: anthropic, model: b, prices: { input: 90 } }')
    expect(written()).toContain('prices: { input: 1 }')
    const outcomes = ['input_cost_per_token', 'temperature'].map(
      (name) => lineAt(report, `model_list[1].litellm_params.${name}`)?.outcome,
    )
    expect(outcomes).toEqual(['changed', 'dropped'])
    await expectValid(report)
  })

  test('a name with line breaks and codes of a terminal is one line without them', async () => {
    const list = ['model_list:', String.raw`  - { model_name: "a\n\ecarried  x", litellm_params: { model: openai/x } }`]
    const { out } = await gatehouse('import', ['litellm', write('config.yaml', list.join('\n')), '--dry-run'])
    expect(out).not.toContain('\u001b')
    expect(out.split('\n').some((line) => line.startsWith('carried  x'))).toBe(false)
  })

  test('a default fallback that is no model is reported', async () => {
    const list = ['model_list:', atHost('a', 'a', 'os.environ/A'), 'litellm_settings: { default_fallbacks: [missing] }']
    const report = await importOf('litellm', write('config.yaml', list.join('\n')))
    expect(lineAt(report, 'litellm_settings.default_fallbacks')).toMatchObject({ outcome: 'dropped' })
  })

  test('clients keep their keys, with their projects, limits, budgets and spend', async () => {
    const vendor = startVendor()
    vendor.otherwise(whole(completion('hi')))
    const source = write(
      'config.yaml',
      `model_list: [{ model_name: gpt-4o, litellm_params: { model: openai/m, api_base: "${vendor.url}", api_key: sk-of-the-vendor } }]`,
    )
    const report = await importOf('litellm', source, '--secrets', 'secrets.env')
    expect(written()).not.toContain('sk-of-the-vendor')
    expect(statSync(join(directory, 'secrets.env')).mode & 0o777).toBe(0o600)
    const secrets = parseEnvironmentFile(readFileSync(join(directory, 'secrets.env'), 'utf8'), 'secrets.env')
    expect(report.variables).toMatchObject([
      { name: expect.stringMatching(/^OPENAI_API_KEY_[0-9A-F]{6}$/), in_plain: true },
    ])
    expect((await importOf('litellm', litellm('dump.sql'))).accounts).toMatchObject([
      { kind: 'project', name: 'Search', outcome: 'added' },
      { kind: 'project', name: 'Closed', outcome: 'added' },
      { kind: 'project', name: 'ada@example.com', outcome: 'added' },
      { kind: 'token', name: 'search-ci', outcome: 'added' },
      { kind: 'token', name: 'ada-laptop', outcome: 'added' },
      { kind: 'token', name: 'blocked', outcome: 'added' },
      { kind: 'token', name: 'free', outcome: 'added' },
      { kind: 'token', name: 'info only', outcome: 'added' },
    ])
    expect((await importOf('litellm', litellm('dump.sql'))).accounts).toEqual([])
    const environment = { GATEHOUSE_DISCOVER: 'off', ...secrets }
    const { providers, models } = loadConfig({ environment, cwd: directory, flags: {} })
    const priced = { ...models, 'gpt-4o': { ...models['gpt-4o'], prices: { input: 1, output: 1 } } }
    const gateway = await startGateway(configOf({ providers, models: priced }), {
      store_url: `sqlite:${join(directory, 'gatehouse.db')}`,
    })
    const call = async (secret: string) => {
      const json = { model: 'gpt-4o', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
      const response = await gateway.chat(json, { headers: { authorization: `Bearer ${secret}` } })
      const body = await response.text()
      return response.status === 200 ? 200 : JSON.parse(body).error.code
    }
    try {
      expect(await call('sk-search-ci-0123456789abcdefghij')).toBe(200)
      expect(vendor.requests[0]?.headers.authorization).toBe('Bearer sk-of-the-vendor')
      expect(await call('sk-ada-laptop-0123456789abcdefg')).toBe('insufficient_quota')
      for (const secret of [
        'sk-blocked-0123456789abcdefghijk',
        'sk-info-0123456789abcdefghijklmn',
        'sk-old-00123456789abcdefghijklmn',
        'sk-dash-0123456789abcdefghijklmn',
      ]) {
        expect(await call(secret)).toBe('invalid_api_key')
      }
    } finally {
      await gateway[Symbol.asyncDispose]()
      vendor.stop()
    }
  })

  test('lets no key do more than before where its row is not as usual', async () => {
    const key = (sign: string, row: object) => ({ token: sign.repeat(64), key_alias: sign, ...row })
    const rows = [
      key('a', { expires: '2020-01-01 00:00:00+00' }),
      key('b', { expires: 'infinity' }),
      key('c', { team_id: 'not-dumped' }),
      key('d', { blocked: 'True' }),
      key('e', { max_budget: 5, budget_duration: 'fortnight' }),
      key('0', { expires: '2020-01-01 00:00:00.5 +0000 UTC' }),
      key('f', { allowed_routes: ['/v1/audio/speech', '/audio/transcriptions'], expires: '2126-01-01 00:00:00.5+00' }),
    ]
    const source = write('tables.json', JSON.stringify({ LiteLLM_VerificationToken: rows }))
    const report = await importOf('litellm', source)
    const whyOf = (sign: string) => lineAt(report, `LiteLLM_VerificationToken[${sign}]`)?.why
    expect(['a', 'b', '0'].map(whyOf)).toEqual(['it has expired', 'its expiry is no time', 'it has expired'])
    expect(whyOf('c')).toBe('its team is not in the source: dump LiteLLM_TeamTable too')
    expect(report.accounts.map(({ name }) => name)).toEqual(['d', 'e', 'f'])
    const { out } = await gatehouse('token', ['list', '--json'])
    const tokens = (JSON.parse(out) as { tokens: Record<string, unknown>[] }).tokens
    const [d, e, f] = ['d', 'e', 'f'].map((name) => tokens.find((one) => one.name === name))
    expect(d).toMatchObject({ disabled: true })
    expect(e).toMatchObject({ budgets: [{ amount: 5, window: 'total' }] })
    expect(f).toMatchObject({ families: ['audio-speech', 'audio-transcription'], expires_at: 4_922_899_200 })
  })

  test('writes each secret in one line, and none that has several', async () => {
    const json = '{\n "type": "service_account",\n "key": "a\\nb"\n}'
    const list = [
      { model_name: 'a', litellm_params: { model: 'vertex_ai/gemini', vertex_credentials: json } },
      {
        model_name: 'b',
        litellm_params: { model: 'vertex_ai/m', vertex_credentials: 'x\nGATEHOUSE_ADMIN_TOKEN=mine' },
      },
    ]
    await importOf('litellm', write('config.json', JSON.stringify({ model_list: list })), '--secrets', 'secrets.env')
    const text = readFileSync(join(directory, 'secrets.env'), 'utf8')
    expect(text).not.toContain('GATEHOUSE_ADMIN_TOKEN')
    const secrets = parseEnvironmentFile(text, 'secrets.env')
    expect(Object.values(secrets).map((one) => JSON.parse(one))).toEqual([JSON.parse(json)])
  })

  test('leaves a token revoked that was revoked here', async () => {
    await importOf('litellm', litellm('dump.sql'))
    await gatehouse('token', ['revoke', 'search-ci'])
    expect((await importOf('litellm', litellm('dump.sql'))).accounts).toEqual([])
    const { out } = await gatehouse('token', ['list'])
    expect(out).toMatch(/search-ci .*revoked/)
  })

  test('reads no row out of a text of another row', async () => {
    const hash = 'a'.repeat(64)
    const source = write(
      'dump.sql',
      `INSERT INTO public."LiteLLM_SpendLogs" VALUES ('x', '
INSERT INTO "LiteLLM_VerificationToken" (token, key_alias) VALUES (''${hash}'', ''forged'');
');
INSERT INTO "LiteLLM_VerificationToken" (token, key_alias) VALUES ('${'b'.repeat(64)}', 'real''s');
`,
    )
    const report = await importOf('litellm', source, '--dry-run')
    const read = report.lines.filter(({ why }) => why !== 'the source has no such table, or nothing of it')
    expect(read.map(({ from }) => from)).toEqual(["LiteLLM_VerificationToken[real's]", 'LiteLLM_SpendLogs'])
    expect(report.lines.map(({ from }) => from)).toContain('LiteLLM_TeamTable')
  })

  test.each([
    ['without a table to read', 'CREATE TABLE other (id int);\n', 'none of the tables LiteLLM_VerificationToken'],
    [
      'that was cut off',
      '-- PostgreSQL database dump\nCREATE TABLE "LiteLLM_TeamTable" (team_id text);\n',
      'was cut off',
    ],
    ['in UTF-16', Buffer.from('\uFEFFCREATE TABLE "LiteLLM_TeamTable" (team_id text);', 'utf16le'), 'UTF-8'],
  ])('refuses a dump %s', async (_, text, message) => {
    writeFileSync(join(directory, 'dump.sql'), text)
    expect((await gatehouse('import', ['litellm', 'dump.sql'])).error).toContain(message)
  })

  test.each([
    ['an alias that is in itself', 'a: &a [*a, *a]\n', 'nested too deeply or has too many values'],
    ['a bomb of aliases', bomb(), 'nested too deeply or has too many values'],
    ['a list', '[1, 2]\n', 'must be an object'],
    ['broken YAML', 'model_list: [secret-text\n', 'line 2'],
    ['a deep document', `${'['.repeat(5_000)}`, 'cannot be read'],
  ])('refuses %s', async (_, text, message) => {
    const { error = '' } = await gatehouse('import', ['litellm', write('config.yaml', text)])
    expect(error).toContain(message)
    expect(error).not.toContain('secret-text')
  })

  test('says where it takes no more than a number of targets, fallbacks and models of a key', async () => {
    const names = Array.from({ length: 1_001 }, (_, at) => `m-${at}`)
    const one = (model_name: string, at: number) => ({ model_name, litellm_params: { model: `openai/x-${at}` } })
    const model_list = [...names.slice(0, 22).map(one), ...names.slice(0, 101).map((_, at) => one('wide', at))]
    const router_settings = { fallbacks: [{ 'm-0': names.slice(1, 22) }] }
    const report = await importOf('litellm', write('c.json', JSON.stringify({ model_list, router_settings })))
    expect(lineAt(report, 'models.wide.targets')?.why).toBe('it has 101, and only the first 100 are carried')
    const cut = report.lines.filter(({ why }) => why?.includes('only the first 20 '))
    expect(cut.map(({ from }) => from)).toEqual(['router_settings.fallbacks[0].m-0'])
    const key = { token: 'a'.repeat(64), key_alias: 'k', models: names }
    const keys = await importOf('litellm', write('keys.json', JSON.stringify({ LiteLLM_VerificationToken: [key] })))
    expect(keys.lines.find(({ why }) => why?.includes('only the first 1000'))?.outcome).toBe('dropped')
  })

  test('says what is wrong with its arguments', async () => {
    expect((await gatehouse('import', ['litelm', 'x'])).error).toContain('did you mean "litellm"?')
    expect((await gatehouse('import', ['litellm', 'missing.yaml'])).error).toBe(
      'missing.yaml cannot be read: there is no such file',
    )
  })
})

function bomb(): string {
  const levels = Array.from({ length: 12 }, (_, at) => {
    const items =
      at === 0
        ? '1'
        : Array(10)
            .fill(`*l${at - 1}`)
            .join(', ')
    return `l${at}: &l${at} [${items}]\n`
  })
  return levels.join('')
}
