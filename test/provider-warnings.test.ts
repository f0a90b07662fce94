/** Warnings of `gatehouse check` and of a start about providers that are valid and cannot serve anything. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/check.ts'
import { startGateway } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { startVendor, whole } from './kit/vendor.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-warnings-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

type Given = { yaml: unknown; args?: string[]; environment?: Record<string, string> }

/** Runs `gatehouse check` on a file with this content (JSON is YAML). */
async function check({ yaml, args = [], environment = {} }: Given) {
  writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify(yaml))
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const code = await run(args, terminal)
  return { ...printed, code }
}

async function logOf(settings: Parameters<typeof startGateway>[0], environment: Record<string, string> = {}) {
  const gateway = await startGateway({ sandbox: false, ...settings }, { environment })
  open.push(() => gateway[Symbol.asyncDispose]())
  await gateway.instance.discovery
  return gateway.logged()
}

function vendorOf(...ids: string[]) {
  const vendor = startVendor()
  vendor.otherwise(whole({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) }))
  open.push(vendor.stop)
  return vendor
}

const used = (provider: string) => ({ 'team/x': { targets: [{ provider, model: 'x' }] } })

describe('a preset without a key', () => {
  const NO_KEY = 'providers.o has no key'
  const file = (provider: object) => ({ providers: { o: provider }, models: used('o') })

  test('is a warning of `check` that names the variable, and of the log at start', async () => {
    const { out, err, code } = await check({ yaml: file({ preset: 'openai' }) })
    expect([out, code]).toEqual(['gatehouse.yaml is valid: 1 provider, 1 model.\n', 0])
    expect(err).toBe(
      'warning: providers.o has no key, so its API refuses every request: write key, or set OPENAI_API_KEY\n',
    )
    const logged = await logOf(file({ preset: 'openai' }))
    expect(logged).toContain('provider without a key')
    expect(logged).toContain(NO_KEY)
    expect(logged.split(NO_KEY)).toHaveLength(2)
  })

  test.each([
    ['a key in the file', { preset: 'openai', key: 'sk-0123456789' }, {}],
    ['a key in the environment', { preset: 'openai' }, { OPENAI_API_KEY: 'sk-0123456789' }],
    ['a header of its own for the key', { preset: 'openai', headers: { Authorization: 'Bearer x' } }, {}],
    ['an address of its own, which may need no key', { preset: 'openai', base_url: 'http://127.0.0.1:9/v1' }, {}],
    ['a preset that needs no key', { preset: 'ollama' }, {}],
  ])('is not reported with %s', async (_, provider, environment) => {
    expect((await check({ yaml: file(provider), environment })).err).toBe('')
    expect(await logOf(file(provider), environment)).not.toContain(NO_KEY)
  })

  test('is reported where the variable is empty', async () => {
    expect((await check({ yaml: file({ preset: 'openai' }), environment: { OPENAI_API_KEY: '' } })).err).toContain(
      NO_KEY,
    )
  })
})

describe('a provider without models', () => {
  const provider = { base_url: 'http://127.0.0.1:9/v1' }
  const WITHOUT = 'providers.w serves no model'

  test('is a warning of `check` and of the log at start, with what to write', async () => {
    const { err, code } = await check({ yaml: { providers: { w: provider } } })
    expect(code).toBe(0)
    expect(err).toBe('warning: providers.w serves no model: write discover: true, or a model with a target of w\n')
    const logged = await logOf({ providers: { w: provider } })
    expect(logged).toContain('provider without models')
    expect(logged.split(WITHOUT)).toHaveLength(2)
  })

  test('gets no advice to discover models where its API has no list of them', async () => {
    const { err } = await check({ yaml: { providers: { w: { preset: 'meshy', key: 'msy_0123456789' } } } })
    expect(err).toBe('warning: providers.w serves no model: write a model with a target of w\n')
    const { err: discovering } = await check({
      yaml: { providers: { w: { preset: 'meshy', key: 'msy_0123456789', discover: true } } },
    })
    expect(discovering).toBe(err)
  })

  test.each([
    ['a target', { providers: { w: provider }, models: used('w') }],
    ['a model of its own name', { providers: { w: provider }, models: { 'w/x': {} } }],
  ])('is not reported with %s', async (_, file) => {
    expect((await check({ yaml: file })).err).toBe('')
    expect(await logOf(file)).not.toContain(WITHOUT)
  })

  test('is reported by the log when its own list names none', async () => {
    const vendor = vendorOf()
    const file = { providers: { w: { base_url: vendor.url, discover: true } } }
    expect((await check({ yaml: file })).err).toBe('')
    expect(await logOf(file)).toContain('providers.w serves no model: its list has none that the gateway serves')
  })

  test('is not reported twice when discovery failed', async () => {
    const logged = await logOf({ providers: { w: { ...provider, discover: true } } })
    expect(logged).toContain('model discovery failed')
    expect(logged).not.toContain(WITHOUT)
  })
})

describe('a provider that cannot be created', () => {
  test('is a problem of `check`, as it is of a start', async () => {
    const file = { providers: { f: { preset: 'fal' }, w: { base_url: 'http://127.0.0.1:9/v1' } }, models: used('w') }
    const { out, err, code } = await check({ yaml: file })
    expect([out, code]).toEqual(['', 1])
    expect(err).toBe(
      'gatehouse.yaml  providers.f needs a key: write key, or set FAL_KEY or FAL_API_KEY\n\n' +
        'The configuration is not valid: 1 problem.\n',
    )
    const asJson = await check({ yaml: file, args: ['--json'] })
    expect(JSON.parse(asJson.out)).toMatchObject({
      valid: false,
      problems: [{ file: 'gatehouse.yaml', message: expect.stringContaining('needs a key') }],
    })
    await expect(logOf(file)).rejects.toThrow('providers.f needs a key')
  })
})
