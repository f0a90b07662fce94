/** Failing providers behind a whole gateway: every upstream call is bounded, and is in the access log. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig, ProviderConfig } from '../src/config/schema/schema.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type Answer, chunks, failure, hangUp, reset, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

function vendor(): Vendor {
  const started = startVendor()
  closing.push(() => started.stop())
  return started
}

/** A gateway in which the model `v/m` has one target at each vendor. */
async function gatewayOf(
  vendors: Vendor[],
  options: Partial<ModelConfig> = {},
  provider: Partial<ProviderConfig> = {},
) {
  const ids = vendors.map((_, index) => `p${index}`)
  const gateway = await startGateway({
    providers: Object.fromEntries(vendors.map(({ url }, index) => [`p${index}`, { base_url: url, ...provider }])),
    models: {
      'v/m': { targets: ids.map((id) => ({ provider: id, model: 'm' })), ...options },
      'v/other': { targets: [{ provider: 'p0', model: 'other' }] },
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const QUESTION = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }] }
const sent = (vendors: Vendor[]) => vendors.map(({ requests }) => requests.length)
const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)

/** How many upstream calls the access log has, for each provider. */
function logged(gateway: TestGateway, vendors: Vendor[]): number[] {
  const attempts = gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
    .flatMap((line) => {
      const { target, attempts } = JSON.parse(line) as { target?: string; attempts?: { target: string }[] }
      return attempts?.map((one) => one.target) ?? (target ? [target] : [])
    })
  return vendors.map((_, index) => attempts.filter((name) => name.startsWith(`p${index}/`)).length)
}

async function ask(gateway: TestGateway, calls: number, body: object = QUESTION): Promise<number[]> {
  const answers = await Promise.all(
    Array.from({ length: calls }, async () => {
      const response = await gateway.chat(body)
      await response.text().catch(() => '')
      return response.status
    }),
  )
  return answers
}

const HTML = whole('<html><body>502 Bad Gateway</body></html>', { headers: { 'content-type': 'text/html' } })
const CUT_JSON = whole('{"id":"chatcmpl-1","choices":[{"index":0,"mess')
const BROKEN: [string, Answer][] = [
  ['an error', failure(500)],
  ['overload', failure(503)],
  ['429', failure(429)],
  ['HTML', HTML],
  ['cut JSON', CUT_JSON],
  ['no answer at all', hangUp()],
  ['a reset connection', reset()],
]

describe('every upstream call is in the access log', () => {
  it.each(BROKEN)('with %s from the first provider, and the second one serves', async (_, answer) => {
    const vendors = [vendor(), vendor()]
    vendors[0]?.otherwise(answer)
    const gateway = await gatewayOf(vendors)
    for (let i = 0; i < 10; i++) {
      expect(await ask(gateway, 3)).toEqual([200, 200, 200])
      gateway.clock.advance(1_500)
    }
    expect(logged(gateway, vendors)).toEqual(sent(vendors))
    expect(sent(vendors)[0]).toBeLessThan(30)
  })

  it('while a provider flaps and another one limits its calls', async () => {
    const vendors = [vendor(), vendor(), vendor()]
    for (let i = 0; i < 30; i++) vendors[0]?.answer(i % 2 ? failure(500) : reset(), whole({ wrong: true }))
    vendors[1]?.otherwise(failure(429, {}, { 'retry-after': '2' }))
    const gateway = await gatewayOf(vendors)
    const statuses: number[] = []
    for (let i = 0; i < 20; i++) {
      statuses.push(...(await ask(gateway, 4)))
      gateway.clock.advance(700)
    }
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(logged(gateway, vendors)).toEqual(sent(vendors))
  })
})

describe('what users of other gateways complain about', () => {
  // https://github.com/BerriAI/litellm-docs/pull/734
  it('retries are not multiplied by fallbacks: (1+N)^2', async () => {
    const vendors = [vendor(), vendor()]
    for (const one of vendors) one.otherwise(failure(503))
    const gateway = await gatewayOf(vendors, { routing: { tries: 3 }, fallbacks: ['v/other'] })
    let status = 0
    const asking = ask(gateway, 1).then(([one = 0]) => {
      status = one
    })
    const third = vendor()
    while (status === 0) {
      gateway.clock.advance(100)
      // As long as a call takes: the clock must not reach the end of one that waits for its answer.
      await (await fetch(third.url)).text()
    }
    await asking
    expect(status).toBeGreaterThanOrEqual(500)
    expect(sum(sent(vendors))).toBe(3)
    expect(logged(gateway, vendors)).toEqual(sent(vendors))
  })

  // https://github.com/maximhq/bifrost/issues/6966
  it('a fallback does not return to the provider that has failed', async () => {
    const vendors = [vendor(), vendor()]
    vendors[0]?.otherwise(failure(500))
    const gateway = await gatewayOf(vendors)
    await ask(gateway, 1)
    expect(sent(vendors)).toEqual([1, 1])
  })

  // https://github.com/maximhq/bifrost/issues/6973
  it('no header of one attempt is in the next one', async () => {
    const vendors = [vendor(), vendor()]
    vendors[0]?.otherwise(failure(500, {}, { 'set-cookie': 'session=1', 'x-vendor': 'first' }))
    const gateway = await startGateway({
      providers: {
        p0: { base_url: vendors[0]?.url ?? '', key: 'first-key-0001', headers: { 'x-only-first': 'yes' } },
        p1: { base_url: vendors[1]?.url ?? '', key: 'second-key-0002' },
      },
      models: { 'v/m': { targets: ['p0', 'p1'].map((provider) => ({ provider, model: 'm' })) } },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    const { headers: answered } = await gateway.chat(QUESTION)
    const headers = vendors[1]?.requests[0]?.headers ?? {}
    expect(vendors[0]?.requests[0]?.headers).toMatchObject({ 'x-only-first': 'yes' })
    expect(headers.authorization).toBe('Bearer second-key-0002')
    expect(JSON.stringify(headers)).not.toMatch(/first|session/)
    expect(answered.get('x-vendor')).toBeNull()
    expect(answered.get('set-cookie')).toBeNull()
  })

  it('a 429 of one model does not ban the other models of its provider', async () => {
    const vendors = [vendor(), vendor()]
    vendors[0]?.answer(failure(429, {}, { 'retry-after': '60' }))
    const gateway = await gatewayOf(vendors)
    await ask(gateway, 2)
    expect(await ask(gateway, 1, { ...QUESTION, model: 'v/other' })).toEqual([200])
    expect(vendors[0]?.requests.at(-1)?.json().model).toBe('other')
  })

  it('clients that leave open no circuit breaker', async () => {
    const vendors = [vendor(), vendor()]
    const gateway = await gatewayOf(vendors)
    for (let i = 0; i < 12; i++) {
      vendors[0]?.answer((wire) => wire.aborted)
      const client = new AbortController()
      const call = gateway.chat(QUESTION, { signal: client.signal })
      await vendors[0]?.request(i + 1)
      client.abort()
      await Promise.resolve(call).catch(() => {})
    }
    expect(await ask(gateway, 1)).toEqual([200])
    expect(sent(vendors)).toEqual([13, 0])
  })

  it('a stream that breaks after its first byte is not sent a second time', async () => {
    const vendors = [vendor(), vendor()]
    const gateway = await gatewayOf(vendors, { routing: { tries: 5 } })
    for (let i = 0; i < 3; i++) {
      const held = Promise.withResolvers<void>()
      const [role = {}, first = {}, ...others] = chunks('Hel', 'lo')
      vendors[0]?.answer(stream([role, first, held.promise, ...others], { cutAfter: 2 }))
      const response = await gateway.chat({ ...QUESTION, stream: true })
      const reader = response.body?.getReader()
      await reader?.read()
      held.resolve()
      while ((await reader?.read().catch(() => undefined))?.done === false) {}
    }
    expect(sent(vendors)).toEqual([3, 0])
    await gateway.instance.drain({ deadline_ms: 60_000 })
    expect(logged(gateway, vendors)).toEqual([3, 0])
  })
})

const DIALECTS: [string, string, object][] = [
  ['Messages', '/v1/messages', { model: 'v/m', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }] }],
  ['Responses', '/v1/responses', { model: 'v/m', input: 'hi', store: false }],
]

describe.each(DIALECTS)('the same through the %s API', (_, path, question) => {
  const call = async (gateway: TestGateway, more: object = {}, signal?: AbortSignal) => {
    const response = await gateway.call(path, { json: { ...question, ...more }, ...(signal && { signal }) })
    await response.text().catch(() => '')
    return response.status
  }

  it.each(BROKEN)(
    'with %s from the first provider, the second one serves, and each call is in the log',
    async (_, answer) => {
      const vendors = [vendor(), vendor()]
      vendors[0]?.otherwise(answer)
      const gateway = await gatewayOf(vendors)
      for (let i = 0; i < 8; i++) {
        expect(await call(gateway)).toBe(200)
        gateway.clock.advance(1_500)
      }
      expect(logged(gateway, vendors)).toEqual(sent(vendors))
      expect(sent(vendors)[0]).toBeLessThan(8)
      expect(sent(vendors)[1]).toBe(8)
    },
  )

  it('each provider is called once, where all fail', async () => {
    const vendors = [vendor(), vendor(), vendor()]
    for (const one of vendors) one.otherwise(failure(503))
    const gateway = await gatewayOf(vendors)
    expect(await call(gateway)).toBeGreaterThanOrEqual(500)
    expect(sent(vendors)).toEqual([1, 1, 1])
    expect(logged(gateway, vendors)).toEqual([1, 1, 1])
  })

  it('clients that leave open no circuit breaker', async () => {
    const vendors = [vendor(), vendor()]
    const gateway = await gatewayOf(vendors)
    for (let i = 0; i < 7; i++) {
      vendors[0]?.answer((wire) => wire.aborted)
      const client = new AbortController()
      const open = call(gateway, {}, client.signal)
      await vendors[0]?.request(i + 1)
      client.abort()
      await open.catch(() => {})
    }
    expect(await call(gateway)).toBe(200)
    expect(sent(vendors)).toEqual([8, 0])
  })
})
