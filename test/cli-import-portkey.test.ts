/** `gatehouse import portkey`: from configs and responses of its admin API in the form of its documentation. */
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importDirectory, lineOf } from './kit/imports.ts'

const FIXTURES = join(import.meta.dir, 'fixtures/import/portkey')

describe('gatehouse import portkey', () => {
  test('makes one model of a config with targets within targets, and prints no secret', async () => {
    using directory = importDirectory()
    const report = await directory.report(['portkey', join(FIXTURES, 'config.json'), '--secrets', 'secrets.env'])
    const file = directory.file()
    expect(file).toContain('  gpt-4o:')
    expect(file).toContain('{ provider: azure-openai, model: gpt-4o-eu, priority: 0, weight: 0.2 }')
    expect(file).toContain(
      '{ provider: anthropic, model: claude-sonnet-4-5, priority: 1, timeouts: { total_seconds: 30 } }',
    )
    expect(file).toContain('cache: { requests: all, ttl_seconds: 3600 }')
    expect(lineOf(report, 'retry.attempts')?.to).toBe('models.gpt-4o.routing.tries: 4')
    expect(lineOf(report, 'targets[0].targets[0].override_params.temperature')?.outcome).toBe('dropped')
    for (const secret of ['sk-plain-of-openai', 'azure-plain']) {
      expect(file + JSON.stringify(report)).not.toContain(secret)
      expect(readFileSync(join(directory.path, 'secrets.env'), 'utf8')).toContain(secret)
    }
    const values = Object.fromEntries(report.variables.map(({ name }) => [name, 'a-key-of-the-provider']))
    expect((await directory.check(values)).code).toBe(0)
    expect(await directory.report(['portkey', join(FIXTURES, 'config.json')])).toMatchObject({ written: false })
  })

  test('carries the integrations of the conf.json of a gateway', async () => {
    using directory = importDirectory()
    const report = await directory.report(['portkey', join(FIXTURES, 'gateway.json')])
    expect(directory.file()).toContain('rate_limits: { requests_per_hour: 3, tokens_per_hour: 3000 }')
    expect(directory.file()).toContain('  dev-team-anthropic/claude-sonnet-4-5:')
    expect(lineOf(report, 'integrations[dev_team_anthropic].models[claude-2]')?.why).toBe('its status is archived')
    expect(lineOf(report, 'admin_token')?.outcome).toBe('dropped')
  })

  test('carries virtual keys and configs from responses of the admin API, and says how to replace API keys', async () => {
    using directory = importDirectory()
    const report = await directory.report(['portkey', join(FIXTURES, 'admin-api')])
    expect(directory.file()).toContain(
      'targets: [{ provider: main-258f4d, model: gpt-4o, priority: 0 }, { provider: azure-test-4110dd, model: gpt-4o-eu, priority: 1 }]',
    )
    expect(report.variables.map(({ name }) => name)).toEqual(['MAIN_258F4D_API_KEY', 'AZURE_TEST_4110DD_API_KEY'])
    expect(lineOf(report, 'configs[pc-listed-1]')?.why).toContain('has no contents')
    expect(lineOf(report, 'configs[pc-retries-1]')?.why).toContain('no target of it names a model')
    expect(lineOf(report, 'api-keys[Development]')?.why).toContain(
      "gatehouse token create --name 'Development' --limit requests_per_minute=100 --budget 10/month",
    )
  })

  test('shares calls between a target and the first of a fallback, as the published examples do, and says what it drops', async () => {
    using directory = importDirectory()
    const vendors = { 'anthropic-vk': 'anthropic', 'openai-vk': 'openai', 'azure-vk': 'openai' }
    const keys = Object.entries(vendors).map(([slug, provider]) => ({ slug, ai_provider_name: provider }))
    const configs = JSON.parse(readFileSync(join(FIXTURES, 'cookbook.json'), 'utf8'))
    writeFileSync(join(directory.path, 'virtual-keys.json'), JSON.stringify({ data: keys }))
    writeFileSync(join(directory.path, 'configs.json'), JSON.stringify({ data: configs }))
    const report = await directory.report(['portkey', '.'])
    expect(directory.file()).toContain(
      'targets: [{ provider: anthropic-vk, model: claude-3-opus-20240229, priority: 0, weight: 0.5 }, { provider: openai-vk, model: gpt-4o, priority: 0, weight: 0.5 }, { provider: azure-vk, model: gpt-4o-eu, priority: 1, weight: 0.5 }]',
    )
    const said = report.lines
      .filter(({ outcome, from }) => outcome === 'dropped' && from.startsWith('configs'))
      .map(({ from }) => from)
    expect(said).toEqual([
      'configs[nested].targets[0].override_params.max_tokens',
      'configs[conditional].strategy.conditions',
      'configs[guarded].before_request_hooks',
      'configs[guarded].after_request_hooks',
      'configs[guarded].output_guardrails',
      'configs[retries].retry',
      'configs[retries]',
    ])
  })

  test('turns no cache on for false, and says what a gateway without integrations has', async () => {
    using directory = importDirectory()
    const target = { provider: 'openai', override_params: { model: 'gpt-4o' }, cache: false }
    writeFileSync(join(directory.path, 'one.json'), JSON.stringify(target))
    await directory.report(['portkey', 'one.json'])
    expect(directory.file()).not.toContain('cache')
    const conf = { plugins_enabled: ['default'], credentials: { portkey: { apiKey: '...' } }, cache: false }
    writeFileSync(join(directory.path, 'conf.json'), JSON.stringify(conf))
    const { lines } = await directory.report(['portkey', 'conf.json'])
    expect(lines.map(({ from }) => from)).toEqual(['plugins_enabled', 'credentials', 'config'])
    expect(lines[0]?.why).toBe('write them as guards')
  })

  test('prints a command in which a shell reads nothing of the name of a key', async () => {
    using directory = importDirectory()
    const data = [{ name: "$(id) `id` 'x'", status: 'active' }]
    writeFileSync(join(directory.path, 'api-keys.json'), JSON.stringify({ object: 'list', data }))
    const report = await directory.report(['portkey', '.'])
    expect(report.lines[0]?.why).toContain("--name '$(id) `id` '\\''x'\\'''")
  })

  test('refuses configs that are nested without an end, and targets of vendors that are not known', async () => {
    using directory = importDirectory()
    let config: Record<string, unknown> = { provider: 'nobody', api_key: 'a' }
    writeFileSync(join(directory.path, 'one.json'), JSON.stringify(config))
    const report = await directory.report(['portkey', 'one.json'])
    expect(lineOf(report, 'config')?.why).toContain('provider "nobody" is not known')
    for (let depth = 0; depth < 12; depth++) config = { strategy: { mode: 'fallback' }, targets: [config] }
    writeFileSync(join(directory.path, 'deep.json'), JSON.stringify(config))
    expect((await directory.import(['portkey', 'deep.json'])).code).toContain('nested too deeply')
  })
})
