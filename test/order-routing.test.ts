/** Orders through a whole gateway: which target and key they are sent to, and with which key everything after it is done. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig, ProviderConfig } from '../src/config/schema/schema.ts'
import { configOf, startGateway, type TestGateway } from './kit/gateway.ts'
import { type Answer, failure, hangUp, startVendor, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const keyOf = ({ headers }: { headers: Record<string, string> }) => headers.authorization?.replace('Bearer ', '')
const ordersOf = ({ requests }: Vendor) =>
  requests.filter(({ method, path }) => method === 'POST' && !/cancel/.test(path))
const KEYS = [{ key: 'first-key-0001', name: 'main' }, { key: 'second-key-0002' }]

/** A vendor of videos that never ends one; `answers` are for its first orders. */
function videoVendor(...answers: Answer[]): Vendor {
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  let count = 0
  vendor.otherwise((wire) => {
    const { method, path } = wire.request
    const isOrder = method === 'POST' && !path.includes('cancel')
    const scripted = isOrder ? answers.shift() : undefined
    const id = isOrder ? `job-${++count}` : (path.split('/').at(-1) ?? '')
    return (scripted ?? whole({ id, object: 'video', status: 'in_progress', model: 'clip-1', progress: 1 }))(wire)
  })
  return vendor
}

const providerOf = ({ url }: Vendor, rest: Partial<ProviderConfig> = {}): ProviderConfig => ({
  kind: 'chatcompat-video',
  base_url: url,
  options: { api: 'videos', cancel: 'delete', list: 'no' },
  ...rest,
})

type Target = NonNullable<ModelConfig['targets']>[number]

const modelsOf = (targets: Target[], rest: Partial<ModelConfig> = {}) => ({
  'v/clip': { families: ['video-generation' as const], targets, ...rest },
})

async function gatewayOf(providers: Record<string, ProviderConfig>, models: Record<string, ModelConfig>) {
  const gateway = await startGateway({ providers, models, sandbox: false })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

/** Of some milliseconds, in which the thread of the HTTP client runs too. */
const turn = () => new Promise((resolve) => setTimeout(resolve, 1))

/** Lets the worker run, while the clock advances slowly beside its connections, until the condition holds. */
async function until(gateway: TestGateway, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 3_000; i++) {
    if (await holds()) return
    gateway.clock.advance(250)
    for (let turns = 0; turns < 3; turns++) await turn()
  }
  throw new Error('it did not happen')
}

async function order(gateway: TestGateway, headers: Record<string, string> = {}, more: object = {}): Promise<string> {
  const response = await gateway.call('/v1/video/generations', {
    json: { model: 'v/clip', prompt: 'a cat', ...more },
    headers,
  })
  const { data } = (await response.json()) as { data: { task_id: string } }
  expect(response.status).toBe(200)
  return data.task_id
}

const taskOf = async (gateway: TestGateway, task_id: string) => {
  const response = await gateway.call(`/v1/video/generations/${task_id}`)
  return ((await response.json()) as { data: { status: string; fail_code: string; fail_reason: string } }).data
}

/** So many orders, one after another. */
async function orders(gateway: TestGateway, vendors: Vendor[], times: number): Promise<void> {
  const count = () => vendors.reduce((sum, vendor) => sum + ordersOf(vendor).length, 0)
  for (let i = 0; i < times; i++) {
    const before = count()
    await order(gateway)
    await until(gateway, () => count() > before)
  }
}

const acmeTarget = { provider: 'acme', model: 'clip-1' }
const filmTarget = { provider: 'film', model: 'clip-1' }

describe('an order with x-gatehouse-timeout', () => {
  it('has this time until its deadline, where it is before the one of the configuration', async () => {
    const acme = videoVendor()
    const gateway = await gatewayOf({ acme: providerOf(acme) }, modelsOf([acmeTarget]))
    const started = gateway.clock.now()
    const id = await order(gateway, { 'x-gatehouse-timeout': '20.5' })
    await until(gateway, async () => (await taskOf(gateway, id)).status === 'FAILURE')
    const seconds = (gateway.clock.now() - started) / 1000
    expect(seconds).toBeGreaterThanOrEqual(20)
    expect(seconds).toBeLessThan(40)
    expect((await taskOf(gateway, id)).fail_code).toBe('timeout')
    expect(ordersOf(acme)).toHaveLength(1)
  })
})

describe('orders at a provider with several keys', () => {
  it('share the keys, and each is polled and canceled with the key that it was sent with', async () => {
    const acme = videoVendor()
    const gateway = await gatewayOf({ acme: providerOf(acme, { keys: KEYS }) }, modelsOf([acmeTarget]))
    const ids = [await order(gateway), await order(gateway)]
    await until(gateway, () => ordersOf(acme).length === 2 && acme.requests.length >= 6)
    expect(ordersOf(acme).map(keyOf).sort()).toEqual(['first-key-0001', 'second-key-0002'])
    for (const id of ids) await gateway.call(`/v1/video/generations/${id}/cancel`, { method: 'POST' })
    await until(gateway, () => acme.requests.filter(({ method }) => method === 'DELETE').length === 2)
    for (const [index, key] of ordersOf(acme).map(keyOf).entries()) {
      const later = acme.requests.filter(({ path }) => path.endsWith(`job-${index + 1}`))
      expect(later.map(({ method }) => method)).toContain('DELETE')
      expect(new Set(later.map(keyOf))).toEqual(new Set([key]))
    }
  })

  it('go to the other key where one is refused, which is then avoided by further orders', async () => {
    const acme = videoVendor(failure(401))
    const gateway = await gatewayOf({ acme: providerOf(acme, { keys: KEYS }) }, modelsOf([acmeTarget]))
    await orders(gateway, [acme], 1)
    await until(gateway, () => ordersOf(acme).length === 2)
    await orders(gateway, [acme], 3)
    expect(ordersOf(acme).map(keyOf)).toEqual(['first-key-0001', ...Array(4).fill('second-key-0002')])
    expect(gateway.logged()).toContain('"event":"target key refused","target":"acme/clip-1#main"')
    expect(gateway.logged()).not.toContain('first-key-0001')
  })

  it('are polled with another key where theirs was removed, which is logged once', async () => {
    const acme = videoVendor()
    const models = modelsOf([acmeTarget])
    const gateway = await gatewayOf({ acme: providerOf(acme, { keys: KEYS }) }, models)
    await order(gateway)
    await until(gateway, () => ordersOf(acme).length === 1)
    const keys = [{ key: 'third-key-0003', name: 'new' }]
    await gateway.instance.reload(configOf({ providers: { acme: providerOf(acme, { keys }) }, models }))
    const before = acme.requests.length
    await until(gateway, () => acme.requests.length >= before + 3)
    expect(new Set(acme.requests.slice(before).map(keyOf))).toEqual(new Set(['third-key-0003']))
    expect(ordersOf(acme)).toHaveLength(1)
    expect(gateway.logged().split('tasks use another key')).toHaveLength(2)
    expect(gateway.logged()).toContain('"provider":"acme","key":"main"')
  })

  it('that are not sent yet go with a key that is configured now', async () => {
    const acme = videoVendor(failure(429))
    const models = modelsOf([acmeTarget])
    const keys = [{ key: 'first-key-0001', name: 'main' }]
    const gateway = await gatewayOf({ acme: providerOf(acme, { keys }) }, models)
    const id = await order(gateway)
    await until(gateway, () => ordersOf(acme).length === 1 && gateway.logged().includes('order refused'))
    const renamed = [{ key: 'third-key-0003', name: 'new' }]
    await gateway.instance.reload(configOf({ providers: { acme: providerOf(acme, { keys: renamed }) }, models }))
    await until(gateway, () => acme.requests.length >= 4)
    expect(acme.requests.map(keyOf)).toEqual(['first-key-0001', ...acme.requests.slice(1).map(() => 'third-key-0003')])
    expect(ordersOf(acme)).toHaveLength(2)
    expect(gateway.logged()).not.toContain('tasks use another key')
    expect((await taskOf(gateway, id)).status).toBe('IN_PROGRESS')
  })

  it('go to no other key where the first may have accepted them', async () => {
    const acme = videoVendor(hangUp())
    const gateway = await gatewayOf({ acme: providerOf(acme, { keys: KEYS }) }, modelsOf([acmeTarget]))
    const id = await order(gateway)
    await until(gateway, async () => (await taskOf(gateway, id)).status === 'FAILURE')
    expect((await taskOf(gateway, id)).fail_code).toBe('submit_outcome_unknown')
    expect(ordersOf(acme)).toHaveLength(1)
  })
})

describe('orders of a model with several targets', () => {
  it('share them by weight', async () => {
    const [acme, film] = [videoVendor(), videoVendor()]
    const gateway = await gatewayOf(
      { acme: providerOf(acme), film: providerOf(film) },
      modelsOf([
        { ...acmeTarget, weight: 3 },
        { ...filmTarget, weight: 1 },
      ]),
    )
    await orders(gateway, [acme, film], 8)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([6, 2])
  })

  it('avoid a target that rests after a 429, and return to it', async () => {
    const [acme, film] = [videoVendor(failure(429, {}, { 'retry-after': '60' })), videoVendor()]
    const gateway = await gatewayOf(
      { acme: providerOf(acme), film: providerOf(film) },
      modelsOf([acmeTarget, filmTarget]),
    )
    await orders(gateway, [film], 1)
    await orders(gateway, [film], 2)
    expect(ordersOf(acme)).toHaveLength(1)
    gateway.clock.advance(60_000)
    await orders(gateway, [acme], 1)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([2, 3])
  })

  it('avoid a target that refuses connections', async () => {
    const film = videoVendor()
    const gateway = await gatewayOf(
      { acme: { ...providerOf(film), base_url: 'http://127.0.0.1:9/v1' }, film: providerOf(film) },
      modelsOf([acmeTarget, filmTarget]),
    )
    await orders(gateway, [film], 1)
    expect(gateway.logged()).toContain('"event":"target ejected","target":"acme/clip-1"')
    const refused = () => gateway.logged().split('"event":"order refused"').length - 1
    expect(refused()).toBe(1)
    await orders(gateway, [film], 1)
    expect(refused()).toBe(1)
  })

  it('go to the target whose tags they have', async () => {
    const [acme, film] = [videoVendor(), videoVendor()]
    const gateway = await gatewayOf(
      { acme: providerOf(acme), film: providerOf(film) },
      modelsOf([{ ...acmeTarget, when: { tags: ['draft'] } }, filmTarget]),
    )
    await order(gateway)
    await until(gateway, () => ordersOf(film).length === 1)
    await order(gateway, { 'x-gatehouse-tags': 'draft' })
    await until(gateway, () => ordersOf(acme).length === 1)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([1, 1])
  })

  it('go to the target that takes images where they have one', async () => {
    const [acme, film] = [videoVendor(), videoVendor()]
    const gateway = await gatewayOf(
      { acme: providerOf(acme), film: providerOf(film) },
      modelsOf([
        { ...acmeTarget, when: { images: true } },
        { ...filmTarget, when: { images: false } },
      ]),
    )
    await order(gateway)
    await until(gateway, () => ordersOf(film).length === 1)
    await order(gateway, {}, { image: PIXEL })
    await until(gateway, () => ordersOf(acme).length === 1)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([1, 1])
  })

  it('are refused at once where no target takes them, and stored nowhere', async () => {
    const acme = videoVendor()
    const gateway = await gatewayOf(
      { acme: providerOf(acme) },
      modelsOf([{ ...acmeTarget, when: { tags: ['draft'] } }]),
    )
    const response = await gateway.call('/v1/video/generations', { json: { model: 'v/clip', prompt: 'a cat' } })
    expect(response.status).toBe(503)
    expect(await response.text()).toContain('it must have the tag \\"draft\\"')
    expect((await gateway.instance.tasks.health()).unfinished).toBe(0)
  })

  it('go to no second one with x-gatehouse-no-fallback', async () => {
    const [acme, film] = [videoVendor(failure(429)), videoVendor()]
    const gateway = await gatewayOf(
      { acme: providerOf(acme), film: providerOf(film) },
      modelsOf([acmeTarget, filmTarget]),
    )
    const id = await order(gateway, { 'x-gatehouse-no-fallback': '1' })
    await until(gateway, async () => (await taskOf(gateway, id)).status === 'FAILURE')
    expect((await taskOf(gateway, id)).fail_code).toBe('upstream_rate_limited')
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([1, 0])
  })
})

/** One transparent pixel. */
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

it('an order to a provider with a certificate that nobody trusts raises an alert', async () => {
  const files = `${import.meta.dir}/fixtures/tls/files.example.com`
  const tls = { key: await Bun.file(`${files}.key`).text(), cert: await Bun.file(`${files}.crt`).text() }
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => new Response('never') })
  closing.push(() => server.stop(true))
  const url = `https://127.0.0.1:${server.port}`
  const operator = startVendor()
  closing.push(() => operator.stop())
  const gateway = await startGateway({
    providers: { v: { kind: 'chatcompat-video', base_url: url, key: 'k', options: { api: 'videos', list: 'no' } } },
    models: modelsOf([{ provider: 'v', model: 'clip-1' }]),
    alerts: { webhook: { url: `${operator.url}/alerts` } },
  })
  closing.push(() => gateway[Symbol.asyncDispose]())
  await order(gateway)
  await until(gateway, () => operator.requests.length > 0)
  expect(operator.requests[0]?.json()).toMatchObject({
    type: 'provider.certificate_invalid',
    data: { provider: 'v', target: 'v/clip-1', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  })
})
