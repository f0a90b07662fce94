/** Routing through a whole gateway: keys, targets, what is remembered, and what the response and the log tell of it. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig, ProviderConfig } from '../src/config/schema/schema.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { failure, startVendor, stream, type Vendor, type Wire, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

function vendor(): Vendor {
  const started = startVendor()
  closing.push(() => started.stop())
  return started
}

async function gatewayOf(
  providers: Record<string, ProviderConfig>,
  models: Record<string, ModelConfig>,
  server = {},
): Promise<TestGateway> {
  const gateway = await startGateway({ providers, models, server })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const QUESTION = { model: 'house/fast', messages: [{ role: 'user', content: 'hi' }] }
const keysOf = ({ requests }: Vendor) => requests.map(({ headers }) => headers.authorization?.replace('Bearer ', ''))
/** The request lines of the access log. */
const lines = (gateway: TestGateway) =>
  gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe('several keys of one provider', () => {
  const keys = [{ key: 'first-key-0001', name: 'main' }, { key: 'second-key-0002' }]
  const models = { 'house/fast': { targets: [{ provider: 'acme', model: 'fast' }] } }

  it('share the calls', async () => {
    const acme = vendor()
    const gateway = await gatewayOf({ acme: { base_url: acme.url, keys } }, models)
    for (let i = 0; i < 6; i++) expect((await gateway.chat(QUESTION)).status).toBe(200)
    expect(keysOf(acme).filter((key) => key === 'first-key-0001')).toHaveLength(3)
    expect(keysOf(acme).filter((key) => key === 'second-key-0002')).toHaveLength(3)
  })

  it.each([401, 403])('take a key out that the provider answers with %d, and never name it', async (status) => {
    const acme = vendor()
    acme.answer(failure(status, { message: 'Incorrect API key provided: first-key-0001' }))
    const gateway = await gatewayOf({ acme: { base_url: acme.url, keys } }, models)
    for (let i = 0; i < 4; i++) {
      const response = await gateway.chat(QUESTION)
      expect(response.status).toBe(200)
      expect(response.headers.get('x-gatehouse-attempts')).toBe(i === 0 ? '2' : '1')
    }
    expect(keysOf(acme)).toEqual(['first-key-0001', ...Array(4).fill('second-key-0002')])
    expect(lines(gateway)[0]?.attempts).toEqual([
      { target: 'acme/fast', key: 'main', error: 'upstream_auth', upstream_status: status, ms: 0, next: 'other_key' },
      { target: 'acme/fast', key: '2', ms: 0 },
    ])
    expect(gateway.logged()).not.toContain('first-key-0001')
    expect(gateway.logged()).toContain('"event":"target key refused","target":"acme/fast#main"')
  })

  it('let a limited key rest for that model alone', async () => {
    const acme = vendor()
    acme.answer(failure(429, { message: 'Slow down.' }, { 'retry-after': '30' }))
    const two = { ...models, 'house/other': { targets: [{ provider: 'acme', model: 'other' }] } }
    const gateway = await gatewayOf({ acme: { base_url: acme.url, keys } }, two)
    for (let i = 0; i < 3; i++) await gateway.chat(QUESTION)
    expect(keysOf(acme)).toEqual(['first-key-0001', ...Array(3).fill('second-key-0002')])
    await gateway.chat({ ...QUESTION, model: 'house/other' })
    expect(keysOf(acme).at(-1)).toBe('first-key-0001')
  })

  it('send an order, and read it, with the first key that may call the model', async () => {
    const acme = vendor()
    const job = { id: 'job-1', object: 'video', status: 'in_progress', model: 'clip-1', progress: 1, created_at: 1 }
    acme.otherwise(whole(job))
    const video = [
      { key: 'first-key-0001', models: ['fast'] },
      { key: 'second-key-0002', models: ['clip-*'] },
    ]
    const gateway = await gatewayOf(
      { acme: { kind: 'chatcompat-video', base_url: acme.url, keys: video, options: { api: 'videos' } } },
      { 'house/clip': { families: ['video-generation'], targets: [{ provider: 'acme', model: 'clip-1' }] } },
    )
    const ordered = await gateway.call('/v1/video/generations', { json: { model: 'house/clip', prompt: 'a cat' } })
    expect(ordered.status).toBe(200)
    for (let i = 0; i < 2_000 && acme.requests.length < 2; i++) {
      gateway.clock.advance(500)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(new Set(keysOf(acme))).toEqual(new Set(['second-key-0002']))
  })

  it('remove every key from what the provider answers', async () => {
    const acme = vendor()
    const text = 'first-key-0001 second-key-0002'
    acme.answer(whole({ choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }] }))
    const gateway = await gatewayOf({ acme: { base_url: acme.url, keys } }, models)
    expect(await (await gateway.chat(QUESTION)).text()).toContain('[redacted] [redacted]')
  })
})

describe('a limit of open calls', () => {
  const held = () => {
    const gate = Promise.withResolvers<void>()
    const answer = whole({ choices: [{ message: { role: 'assistant', content: 'held' }, finish_reason: 'stop' }] })
    const late = async (wire: Wire) => {
      await gate.promise
      await answer(wire)
    }
    return { answer: late, open: gate.resolve }
  }

  it('sends further calls to another target, and lets them wait where there is none', async () => {
    const [one, two] = [vendor(), vendor()]
    const gates = [held(), held(), held()]
    one.answer(gates[0]?.answer ?? whole({}))
    two.answer(gates[1]?.answer ?? whole({}))
    const targets = [
      { provider: 'one', model: 'm' },
      { provider: 'two', model: 'm' },
    ]
    const gateway = await gatewayOf(
      { one: { base_url: one.url, calls: { max: 1 } }, two: { base_url: two.url, calls: { max: 1 } } },
      { 'house/fast': { targets } },
    )
    const first = gateway.chat(QUESTION)
    await one.request(1)
    const second = gateway.chat(QUESTION)
    await two.request(1)
    const third = gateway.chat(QUESTION)
    gates[0]?.open()
    expect((await first).status).toBe(200)
    expect((await third).headers.get('x-gatehouse-target')).toBe('one/m')
    gates[1]?.open()
    expect((await second).headers.get('x-gatehouse-target')).toBe('two/m')
    expect([one.requests.length, two.requests.length]).toEqual([2, 1])
  })

  it('refuses with 429 and retry-after where nothing may wait, without a call to the provider', async () => {
    const one = vendor()
    const gate = held()
    one.answer(gate.answer)
    const gateway = await gatewayOf(
      { one: { base_url: one.url, calls: { max: 1, queue: { length: 0 } } } },
      { 'house/fast': { targets: [{ provider: 'one', model: 'm' }] } },
    )
    const first = gateway.chat(QUESTION)
    await one.request(1)
    const refused = await gateway.chat(QUESTION)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    gate.open()
    expect((await first).status).toBe(200)
    expect((await gateway.chat(QUESTION)).status).toBe(200)
    expect(one.requests.length).toBe(2)
  })

  it('counts a stream until it has ended', async () => {
    const one = vendor()
    const gateway = await gatewayOf(
      { one: { base_url: one.url, calls: { max: 1, queue: { length: 0 } } } },
      { 'house/fast': { targets: [{ provider: 'one', model: 'm' }] } },
    )
    const client = new AbortController()
    one.answer(stream(['data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'], { hangAfter: 1, done: false }))
    const open = await gateway.chat({ ...QUESTION, stream: true }, { signal: client.signal })
    expect(open.status).toBe(200)
    expect((await gateway.chat(QUESTION)).status).toBe(429)
    client.abort()
    await open.body?.cancel().catch(() => {})
    await one.idle()
    expect((await gateway.chat(QUESTION)).status).toBe(200)
  })
})

describe('several targets', () => {
  const twoTargets = (options: Partial<ModelConfig> = {}) => ({
    'house/fast': {
      targets: [
        { provider: 'one', model: 'm1' },
        { provider: 'two', model: 'm2' },
      ],
      ...options,
    },
  })
  const providersOf = (one: string, two: string) => ({ one: { base_url: one }, two: { base_url: two } })

  it('cost the time of a dead first target once, not with every call', async () => {
    const [one, two] = [vendor(), vendor()]
    await one.stop()
    const gateway = await gatewayOf(providersOf(one.url, two.url), twoTargets())
    const attempts: (string | null)[] = []
    for (let i = 0; i < 4; i++) {
      const { headers } = await gateway.chat(QUESTION)
      attempts.push(headers.get('x-gatehouse-attempts'))
      expect(headers.get('x-gatehouse-target')).toBe('two/m2')
    }
    expect(attempts).toEqual(['2', '1', '1', '1'])
  })

  it('share the calls by weight', async () => {
    const [one, two] = [vendor(), vendor()]
    const models = twoTargets()
    const targets = models['house/fast'].targets.map((target, index) => ({ ...target, weight: index === 0 ? 3 : 1 }))
    const gateway = await gatewayOf(providersOf(one.url, two.url), { 'house/fast': { targets } })
    for (let i = 0; i < 8; i++) await gateway.chat(QUESTION)
    expect([one.requests.length, two.requests.length]).toEqual([6, 2])
  })

  it('are named in the response and the log, in a failure too', async () => {
    const [one, two] = [vendor(), vendor()]
    one.otherwise(failure(500))
    two.otherwise(failure(503))
    const gateway = await gatewayOf(providersOf(one.url, two.url), twoTargets())
    const response = await gateway.chat(QUESTION)
    expect(response.status).toBe(503)
    expect(response.headers.get('x-gatehouse-target')).toBe('two/m2')
    expect(response.headers.get('x-gatehouse-attempts')).toBe('2')
    await gateway.instance.drain({ deadline_ms: 60_000 }) // a failure does not wait for its record
    expect(lines(gateway)[0]?.attempts).toMatchObject([
      { target: 'one/m1', error: 'bad_upstream_response', upstream_status: 500 },
      { target: 'two/m2', error: 'server_is_overloaded', upstream_status: 503 },
    ])
  })

  it('are hidden from callers, not from the log, with server.show_target: false', async () => {
    const [one, two] = [vendor(), vendor()]
    const gateway = await gatewayOf(providersOf(one.url, two.url), twoTargets(), { show_target: false })
    const { headers } = await gateway.chat(QUESTION)
    expect([...headers.keys()].filter((name) => name.startsWith('x-gatehouse'))).toEqual(['x-gatehouse-cost'])
    expect(lines(gateway)[0]).toMatchObject({ target: 'one/m1' })
  })

  it('do not count a client that leaves', async () => {
    const [one, two] = [vendor(), vendor()]
    const gateway = await gatewayOf(providersOf(one.url, two.url), twoTargets())
    for (let i = 0; i < 8; i++) {
      one.answer(() => new Promise(() => {}))
      const client = new AbortController()
      const call = gateway.chat(QUESTION, { signal: client.signal })
      await one.request(i + 1)
      client.abort()
      await Promise.resolve(call).catch(() => {})
    }
    const { headers } = await gateway.chat(QUESTION)
    expect(headers.get('x-gatehouse-target')).toBe('one/m1')
    expect(two.requests).toHaveLength(0)
  })

  it('keep the deadline of the model, over all of them', async () => {
    const [one, two] = [vendor(), vendor()]
    one.answer(() => new Promise(() => {}))
    two.answer(() => new Promise(() => {}))
    const routing = { deadline_seconds: 20, first_byte_seconds: 15 }
    const gateway = await gatewayOf(providersOf(one.url, two.url), twoTargets({ routing }))
    const call = gateway.chat(QUESTION)
    await one.request(1)
    gateway.clock.advance(15_000)
    await two.request(1)
    gateway.clock.advance(5_000)
    const response = await call
    expect(response.status).toBe(504)
    expect(await response.text()).toContain('sent nothing within 5 s')
  })
})
