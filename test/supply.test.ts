/** The sources of models: the file, the environment, and model discovery, at start and at a reload. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configOf, startGateway } from './kit/gateway.ts'
import { startVendor, whole } from './kit/vendor.ts'

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

const listOf = (...ids: string[]) => whole({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) })

async function start(...given: Parameters<typeof startGateway>) {
  const gateway = await startGateway(...given)
  open.push(() => gateway[Symbol.asyncDispose]())
  const ids = () => gateway.instance.summary().models.map((model) => model.id)
  return { gateway, ids }
}

function vendorOf(...ids: string[]) {
  const vendor = startVendor()
  vendor.otherwise(listOf(...ids))
  open.push(vendor.stop)
  return vendor
}

describe('a provider with discover: true', () => {
  test('adds its models under its own name, beside the configured ones', async () => {
    const vendor = vendorOf('one', 'two')
    const { gateway, ids } = await start({
      sandbox: false,
      providers: { v: { base_url: vendor.url, discover: true } },
      models: { 'v/two': { replaced_by: 'v/one', status: 'deprecated' } },
    })
    expect(ids()).toEqual(['v/two'])
    const found = await gateway.instance.discovery
    expect(found).toEqual([{ id: 'v', kind: 'chatcompat', found_by: 'file', models: 2 }])
    expect(ids()).toEqual(['v/one', 'v/two'])
    expect(gateway.instance.summary().models[1]?.status).toBe('deprecated')
  })

  test('adds nothing if it does not respond, and the log reports it without its address', async () => {
    const { gateway, ids } = await start({ providers: { v: { base_url: 'http://127.0.0.1:9/v1', discover: true } } })
    await gateway.instance.discovery
    expect(ids().every((id) => id.startsWith('sandbox/'))).toBe(true)
    expect(gateway.logged()).toContain('model discovery failed')
    expect(gateway.logged()).not.toContain('127.0.0.1:9')
  })

  test('adds its models later where the store cannot be read when they are known', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-supply-'))
    const path = join(directory, 'gatehouse.db')
    const vendor = vendorOf('one')
    const [asked, known] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    vendor.otherwise(async (wire) => {
      asked.resolve()
      await known.promise
      return listOf('one')(wire)
    })
    const providers = { v: { base_url: vendor.url, discover: true } }
    const { gateway, ids } = await start({ sandbox: false, providers }, { store_url: `sqlite:${path}` })
    await asked.promise
    using database = new Database(path)
    database.run('alter table models rename to away')
    known.resolve()
    await gateway.instance.discovery
    expect([ids(), gateway.logged()]).toEqual([[], expect.stringContaining('discovered models are not served yet')])
    database.run('alter table away rename to models')
    gateway.clock.advance(30_000)
    while (ids().length === 0) await Bun.sleep(0)
    expect(ids()).toEqual(['v/one'])
    rmSync(directory, { recursive: true })
  })
})

describe('a provider key', () => {
  const started = async (key: string) => {
    const { gateway } = await start({ providers: { v: { base_url: 'http://127.0.0.1:9/v1', key } } })
    return gateway.logged()
  }

  test('that looks like an ordinary word is reported at start, without the key itself', async () => {
    const logged = await started('Sunflower')
    expect(logged).toContain('providers.v.key looks like an ordinary word')
    expect(logged).not.toContain('Sunflower')
  })

  test.each(['sk-Sunflower', 'short', 'sunflower7', 'not-needed', 'abcdefghijklmnopqrstuvwxyz'])(
    'such as %s is not reported',
    async (key) => {
      expect(await started(key)).not.toContain('ordinary word')
    },
  )
})

describe('a well-known vendor', () => {
  const deepseek = (base_url: string) => ({ preset: 'deepseek', base_url, key: 'k', discover: true })

  test('serves its well-known models while model discovery fails', async () => {
    const { gateway, ids } = await start({ sandbox: false, providers: { d: deepseek('http://127.0.0.1:9/v1') } })
    expect(ids()).toEqual(['d/deepseek-v4-pro'])
    await gateway.instance.discovery
    expect(ids()).toEqual(['d/deepseek-v4-pro'])
    expect(gateway.instance.summary().models[0]).toMatchObject({ created: Date.parse('2026-04-24') / 1000 })
  })

  test('serves only the models in its list, with their known properties', async () => {
    const vendor = vendorOf('deepseek-v4-pro', 'deepseek-new')
    const { gateway, ids } = await start({ sandbox: false, providers: { d: deepseek(vendor.url) } })
    await gateway.instance.discovery
    expect(ids()).toEqual(['d/deepseek-new', 'd/deepseek-v4-pro'])
    const response = await gateway.call('/v1/models', { headers: { 'anthropic-version': '2023-06-01' } })
    const { data } = (await response.json()) as { data: { max_input_tokens: number | null }[] }
    expect(data.map((model) => model.max_input_tokens)).toEqual([null, 1_000_000])
  })

  test('serves no well-known models if the operator configured models without discovery', async () => {
    const { ids } = await start({
      sandbox: false,
      providers: { d: { preset: 'deepseek', key: 'k' } },
      models: { 'd/mine': {} },
    })
    expect(ids()).toEqual(['d/mine'])
  })
})

describe('a reload', () => {
  test('replaces models in one step and discovers models again', async () => {
    const vendor = vendorOf('found')
    const { gateway, ids } = await start({
      sandbox: false,
      providers: { a: { base_url: vendor.url } },
      models: { 'a/x': {} },
    })
    await gateway.instance.discovery
    const next = configOf({
      sandbox: false,
      providers: { b: { base_url: vendor.url, discover: true } },
      models: { 'b/y': {} },
      server: { delta_mirror: false },
    })
    await gateway.instance.reload(next)
    expect(ids()).toEqual(['b/y'])
    await gateway.instance.discovery
    expect(ids()).toEqual(['b/found', 'b/y'])
    expect((await gateway.call('/v1/models/a/x')).status).toBe(404)
  })

  test('of an invalid configuration changes nothing', async () => {
    const { gateway, ids } = await start({
      sandbox: false,
      providers: { a: { base_url: 'http://127.0.0.1:9/v1' } },
      models: { 'a/x': {} },
    })
    const invalid = [
      configOf({ sandbox: false, models: { 'nobody/x': {} } }),
      configOf({ sandbox: false, providers: { p: { preset: 'no-such-preset' } } }),
      configOf({
        models: { 'sandbox/general': { replaced_by: 'sandbox/nothing-at-all' }, 'x/y': { replaced_by: 'gone' } },
      }),
    ]
    for (const config of invalid) {
      expect(gateway.instance.reload(config)).rejects.toThrow()
      await gateway.instance.reload(config).catch(() => {})
      expect(ids()).toEqual(['a/x'])
    }
  })

  test('does not affect a request in flight', async () => {
    const vendor = startVendor()
    open.push(vendor.stop)
    const gate = Promise.withResolvers<void>()
    vendor.answer(async (wire) => {
      await gate.promise
      await whole({ choices: [{ message: { role: 'assistant', content: 'still here' }, finish_reason: 'stop' }] })(wire)
    })
    const { gateway } = await start({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
    const answer = gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: 'hi' }] })
    await vendor.request()
    await gateway.instance.reload(configOf({}))
    gate.resolve()
    expect((await (await answer).json()).choices[0].message.content).toBe('still here')
    expect((await gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: 'hi' }] })).status).toBe(404)
  })
})
