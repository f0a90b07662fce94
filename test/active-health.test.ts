/** Probes of providers through a whole gateway: who is probed, with what, and what the probes change. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { configOf, startGateway, type TestGateway } from './kit/gateway.ts'
import { type Answer, failure, startVendor, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const QUESTION = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }] }
const isProbe = ({ method }: { method: string }) => method === 'GET'
const probesOf = ({ requests }: Vendor) => requests.filter(isProbe)
const callsOf = ({ requests }: Vendor) => requests.filter((one) => !isProbe(one)).length

/** A vendor whose answers to probes and to calls a test sets. */
function local(): { vendor: Vendor; probes(answer: Answer): void; calls(answer: Answer): void } {
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  let onProbe: Answer = whole({ object: 'list', data: [{ id: 'm', object: 'model' }] })
  let onCall: Answer = whole({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] })
  vendor.otherwise((wire) => (isProbe(wire.request) ? onProbe(wire) : onCall(wire)))
  const probes = (answer: Answer) => {
    onProbe = answer
  }
  const calls = (answer: Answer) => {
    onCall = answer
  }
  return { vendor, probes, calls }
}

const MODELS = {
  'v/m': {
    targets: [
      { provider: 'local', model: 'm' },
      { provider: 'cloud', model: 'm' },
    ],
  },
}

const providersOf = (first: Vendor, second: Vendor, health: ProviderConfig['health']) => ({
  local: { base_url: first.url, key: 'local-key-0001', headers: { 'x-own': 'yes' }, ...(health ? { health } : {}) },
  cloud: { base_url: second.url },
})

async function gatewayOf(first: Vendor, second: Vendor, health: ProviderConfig['health'] = {}) {
  const gateway = await startGateway({ providers: providersOf(first, second, health), models: MODELS })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Lets probes end, until so many changes of health were logged. */
async function untilLogged(gateway: TestGateway, event: string, times = 1): Promise<void> {
  while (gateway.logged().split(`"event":"${event}"`).length <= times) await turn()
}

/** Advances to the next probe, and waits until it has ended: then its successor is scheduled. */
async function probed(gateway: TestGateway, vendor: Vendor, seconds = 10): Promise<void> {
  const before = probesOf(vendor).length
  const timers = gateway.clock.waiting()
  gateway.clock.advance(seconds * 1000)
  for (let i = 1; probesOf(vendor).length === before; i++) {
    // The one before it had not ended yet, and the interval begins at its end.
    if (i % 1000 === 0) gateway.clock.advance(seconds * 1000)
    await turn()
  }
  for (let i = 0; i < 1000 && gateway.clock.waiting() !== timers; i++) await turn()
  for (let i = 0; i < 20; i++) await turn()
}

async function targetOf(gateway: TestGateway): Promise<string | null> {
  const response = await gateway.chat(QUESTION)
  await response.text()
  expect(response.status).toBe(200)
  return response.headers.get('x-gatehouse-target')
}

const changes = (gateway: TestGateway) =>
  gateway
    .logged()
    .match(/"event":"provider (?:un)?healthy"/g)
    ?.map((one) => one.slice(18, -1)) ?? []

describe('a probe of a provider that redirects it', () => {
  it.each([301, 302, 307, 308])(
    'is not sent elsewhere (%d), nor is the key, and the provider counts as down',
    async (status) => {
      const [one, other, inside] = [local(), local(), local()]
      one.probes(whole('', { status, headers: { location: `${inside.vendor.url}/latest/meta-data/` } }))
      const gateway = await gatewayOf(one.vendor, other.vendor)
      for (let i = 0; i < 5; i++) await probed(gateway, one.vendor)
      expect(inside.vendor.requests).toHaveLength(0)
      expect(await targetOf(gateway)).toStartWith('cloud/')
      expect(gateway.logged()).not.toContain('meta-data')
    },
  )
})

describe('a provider with health', () => {
  it('is avoided while its probes fail, without a call that waits for it, and used when they succeed', async () => {
    const [first, second] = [local(), local()]
    const gateway = await gatewayOf(first.vendor, second.vendor)
    expect(await targetOf(gateway)).toBe('local/m')
    first.probes(failure(503))
    first.calls(() => new Promise(() => {})) // a call would wait
    await probed(gateway, first.vendor)
    await probed(gateway, first.vendor)
    await untilLogged(gateway, 'provider unhealthy')
    for (let i = 0; i < 3; i++) expect(await targetOf(gateway)).toBe('cloud/m')
    expect(callsOf(first.vendor)).toBe(1)
    first.probes(whole({ object: 'list', data: [] }))
    first.calls(whole({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] }))
    await probed(gateway, first.vendor)
    await untilLogged(gateway, 'provider healthy')
    expect(await targetOf(gateway)).toBe('local/m')
    expect(changes(gateway)).toEqual(['unhealthy', 'healthy'])
    expect(gateway.logged()).not.toContain('"event":"upstream')
  })

  it('is in the decision that is explained, as unhealthy', async () => {
    const [first, second] = [local(), local()]
    first.probes(failure(500))
    const gateway = await gatewayOf(first.vendor, second.vendor, { unhealthy_after: 1 })
    await untilLogged(gateway, 'provider unhealthy')
    for (let i = 0; i < 2; i++) {
      const { targets } = gateway.instance.explain({ model: 'v/m', is_stream: false })
      expect(targets[0]).toMatchObject({ available: false, reason: 'unhealthy', order: null, available_in_seconds: 10 })
      expect(targets[1]).toMatchObject({ available: true, order: 1 })
      expect(await targetOf(gateway)).toBe('cloud/m')
    }
  })

  it('is called all the same where every provider is avoided', async () => {
    const [first, second] = [local(), local()]
    first.probes(failure(500))
    const gateway = await startGateway({
      providers: providersOf(first.vendor, second.vendor, { unhealthy_after: 1 }),
      models: { 'v/m': { targets: [{ provider: 'local', model: 'm' }] } },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    await untilLogged(gateway, 'provider unhealthy')
    expect(await targetOf(gateway)).toBe('local/m')
  })

  it('returns at once after a success, also where failed calls had ejected it for longer', async () => {
    const [first, second] = [local(), local()]
    const gateway = await gatewayOf(first.vendor, second.vendor, { unhealthy_after: 1, interval_seconds: 1 })
    first.calls(failure(500))
    for (let i = 0; i < 6; i++) await targetOf(gateway)
    expect(callsOf(first.vendor)).toBe(5)
    expect(gateway.logged()).toContain('"event":"target ejected"')
    first.probes(failure(500))
    await probed(gateway, first.vendor, 1)
    await untilLogged(gateway, 'provider unhealthy')
    first.probes(whole({ object: 'list', data: [] }))
    first.calls(whole({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] }))
    await probed(gateway, first.vendor, 1)
    await untilLogged(gateway, 'provider healthy')
    expect(await targetOf(gateway)).toBe('local/m')
  })

  it('is ejected by failed calls while its probes succeed', async () => {
    const [first, second] = [local(), local()]
    first.calls(failure(500))
    const gateway = await gatewayOf(first.vendor, second.vendor)
    for (let i = 0; i < 8; i++) await targetOf(gateway)
    expect(callsOf(first.vendor)).toBe(5)
    expect(changes(gateway)).toEqual([])
  })
})

describe('what a probe sends', () => {
  it('is a request of the model list, with the key and the headers of the provider, and no body', async () => {
    const [first, second] = [local(), local()]
    await gatewayOf(first.vendor, second.vendor)
    const request = await first.vendor.request()
    expect([request.method, request.path, request.body]).toEqual(['GET', '/v1/models', ''])
    expect(request.headers).toMatchObject({ authorization: 'Bearer local-key-0001', 'x-own': 'yes' })
  })

  it('is the path, at the host of base_url, without the key and the headers; anything but 2xx is a failure', async () => {
    const [first, second] = [local(), local()]
    first.probes(failure(404))
    const gateway = await gatewayOf(first.vendor, second.vendor, { path: '/health?full=1', unhealthy_after: 1 })
    const request = await first.vendor.request()
    expect([request.method, request.path, request.body]).toEqual(['GET', '/health?full=1', ''])
    expect(request.headers.authorization).toBeUndefined()
    expect(request.headers['x-own']).toBeUndefined()
    await untilLogged(gateway, 'provider unhealthy')
    expect(gateway.logged()).toContain('"why":"/health?full=1 answered 404"')
  })

  it('goes to no other host: a redirect is a failure', async () => {
    const [first, second] = [local(), local()]
    first.probes(whole('', { status: 302, headers: { location: `${second.vendor.origin}/health` } }))
    const gateway = await gatewayOf(first.vendor, second.vendor, { path: '/health', unhealthy_after: 1 })
    await untilLogged(gateway, 'provider unhealthy')
    expect(second.vendor.requests).toEqual([])
  })

  it('uses the first of several keys', async () => {
    const first = local()
    const keys = [{ key: 'first-key-0001' }, { key: 'second-key-0002' }]
    const gateway = await startGateway({
      providers: { local: { base_url: first.vendor.url, keys, health: {} } },
      models: { 'v/m': { targets: [{ provider: 'local', model: 'm' }] } },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    expect((await first.vendor.request()).headers.authorization).toBe('Bearer first-key-0001')
  })
})

describe('no probe is sent', () => {
  it('to a provider that is not configured for it', async () => {
    const [first, second] = [local(), local()]
    const gateway = await gatewayOf(first.vendor, second.vendor)
    for (let i = 0; i < 3; i++) await probed(gateway, first.vendor)
    expect(probesOf(first.vendor).length).toBeGreaterThanOrEqual(3)
    expect(second.vendor.requests).toEqual([])
  })

  it('after a reload without it; then nothing is known of the provider', async () => {
    const [first, second] = [local(), local()]
    first.probes(failure(500))
    const gateway = await gatewayOf(first.vendor, second.vendor, { unhealthy_after: 1 })
    await untilLogged(gateway, 'provider unhealthy')
    expect(await targetOf(gateway)).toBe('cloud/m')
    const count = probesOf(first.vendor).length
    const { health: _, ...plain } = providersOf(first.vendor, second.vendor, {}).local
    await gateway.instance.reload(
      configOf({ providers: { local: plain, cloud: { base_url: second.vendor.url } }, models: MODELS }),
    )
    expect(await targetOf(gateway)).toBe('local/m')
    gateway.clock.advance(60_000)
    for (let i = 0; i < 20; i++) await turn()
    expect(probesOf(first.vendor)).toHaveLength(count)
  })

  it('after a close, and an open one is aborted', async () => {
    const [first, second] = [local(), local()]
    first.probes(() => new Promise(() => {}))
    const gateway = await startGateway({ providers: providersOf(first.vendor, second.vendor, {}), models: MODELS })
    const request = await first.vendor.request()
    await gateway[Symbol.asyncDispose]()
    await request.aborted
    gateway.clock.advance(60_000)
    for (let i = 0; i < 20; i++) await turn()
    expect(first.vendor.requests).toHaveLength(1)
    expect(changes(gateway)).toEqual([])
  })
})

describe('a reload', () => {
  it('that leaves the provider alone keeps what its probes have shown, and the interval', async () => {
    const [first, second] = [local(), local()]
    first.probes(failure(500))
    const gateway = await gatewayOf(first.vendor, second.vendor, { unhealthy_after: 1 })
    await untilLogged(gateway, 'provider unhealthy')
    const count = probesOf(first.vendor).length
    const providers = providersOf(first.vendor, second.vendor, { unhealthy_after: 1 })
    await gateway.instance.reload(configOf({ providers, models: MODELS, when_retired: 'serve' }))
    await gateway.instance.discovery
    expect(await targetOf(gateway)).toBe('cloud/m')
    expect(probesOf(first.vendor)).toHaveLength(count)
  })

  it('that adds it probes the provider from then on', async () => {
    const [first, second] = [local(), local()]
    first.probes(failure(500))
    const gateway = await gatewayOf(second.vendor, second.vendor, undefined)
    const providers = providersOf(first.vendor, second.vendor, { unhealthy_after: 1 })
    await gateway.instance.reload(configOf({ providers, models: MODELS }))
    await untilLogged(gateway, 'provider unhealthy')
    expect(await targetOf(gateway)).toBe('cloud/m')
  })

  it('is refused where the API of the provider has no model list and no path is set', async () => {
    const [first, second] = [local(), local()]
    const gateway = await gatewayOf(first.vendor, second.vendor)
    const meshy = { kind: 'meshy' as const, key: 'meshy-key-0001', health: {} }
    const providers = { ...providersOf(first.vendor, second.vendor, {}), meshy }
    expect(gateway.instance.reload(configOf({ providers, models: MODELS }))).rejects.toThrow(
      'providers.meshy.health needs `path`: its API has no list of models',
    )
  })
})
