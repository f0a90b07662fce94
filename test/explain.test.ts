/** `x-gatehouse-explain: 1`: the routing decision in the response, for the tokens that may have it. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { CallRecord } from '../src/calls/call.ts'
import { explanationText } from '../src/families/shared/explanation.ts'
import { headerValue } from '../src/kit/header-value.ts'
import { configOf, startGateway, type TestGateway } from './kit/gateway.ts'
import { failure, hang, startVendor, type Vendor } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Settings = NonNullable<Parameters<typeof startGateway>[0]>

const SECRET = 'first-key-0001'
const EXPLAIN = { 'x-gatehouse-explain': '1' }
const QUESTION = { model: 'house/fast', messages: [{ role: 'user', content: 'hi' }] }

/** The model `house/fast` at two vendors, the first with two keys; `house/other` is its fallback. */
async function setUp(
  explain_tokens = ['*'],
): Promise<{ one: Vendor; two: Vendor; gateway: TestGateway; settings: Settings }> {
  const [one, two] = [startVendor(), startVendor()]
  const settings = {
    server: { explain_tokens },
    providers: {
      one: { base_url: one.url, keys: [{ key: SECRET, name: 'main' }, { key: 'second-key-0002' }] },
      two: { base_url: two.url, key: 'third-key-0003' },
    },
    models: {
      'house/fast': {
        targets: [
          { provider: 'one', model: 'm1' },
          { provider: 'two', model: 'm2' },
        ],
        fallbacks: ['house/other'],
      },
      'house/other': { targets: [{ provider: 'two', model: 'm3' }] },
    },
  }
  const gateway = await startGateway(settings)
  closing.push(
    () => gateway[Symbol.asyncDispose](),
    () => one.stop(),
    () => two.stop(),
  )
  return { one, two, gateway, settings }
}

const headerOf = ({ headers }: Response) => JSON.parse(headers.get('x-gatehouse-explain') ?? 'null')
const commentOf = (text: string) => {
  const last = text.trimEnd().split('\n').at(-1) ?? ''
  expect(last).toStartWith(': x-gatehouse-explain ')
  return JSON.parse(last.slice(': x-gatehouse-explain '.length))
}

describe('x-gatehouse-explain: 1, of targets that are left out', () => {
  /** `v/m` with these targets, at vendors of their names. */
  async function ofTargets(
    targets: Record<string, object>,
    { routing = {}, calls, rate_limits }: { routing?: object; calls?: object; rate_limits?: object } = {},
  ) {
    const vendors = Object.keys(targets).map((id) => ({ id, ...startVendor() }))
    const gateway = await startGateway({
      server: { explain_tokens: ['*'] },
      providers: Object.fromEntries(
        vendors.map(({ id, url }) => [
          id,
          { base_url: url, ...(calls ? { calls: { ...calls } } : {}), ...(rate_limits ? { rate_limits } : {}) },
        ]),
      ) as never,
      models: {
        'v/m': {
          targets: Object.entries(targets).map(([provider, rules]) => ({ provider, model: 'm', ...rules })),
          routing,
        },
      },
    })
    closing.push(() => gateway[Symbol.asyncDispose](), ...vendors.map(({ stop }) => stop))
    const ask = (fields: object = {}, options: { signal?: AbortSignal } = {}) => {
      const body = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }], ...fields }
      return gateway.chat(body, { headers: EXPLAIN, ...options })
    }
    const decisionOf = (response: Response) => headerOf(response).decisions[0]
    return { vendors, gateway, ask, decisionOf }
  }

  it('says which condition or preference leaves each of them out', async () => {
    const { ask, decisionOf } = await ofTargets({ one: { when: { tools: true } }, two: {}, three: {} })
    const { targets } = decisionOf(await ask({ provider: { ignore: ['two'] } }))
    expect(targets).toMatchObject([
      { target: 'three/m', order: 1, available: true },
      { target: 'one/m', order: null, available: false, reason: 'it must have tools' },
      { target: 'two/m', order: null, available: false, reason: 'in "provider.ignore"' },
    ])
  })

  it('says it of a request that no target takes', async () => {
    const { ask, decisionOf } = await ofTargets({ one: { when: { tools: true } } })
    const response = await ask()
    expect(response.status).toBe(503)
    expect(decisionOf(response).targets).toMatchObject([{ target: 'one/m', order: null, reason: 'it must have tools' }])
  })

  it('shows a target whose queue is full', async () => {
    const { vendors, ask, decisionOf } = await ofTargets(
      { one: {}, two: {} },
      { calls: { max: 1, queue: { length: 0 } } },
    )
    vendors[0]?.answer(hang())
    const client = new AbortController()
    const held = ask({}, { signal: client.signal })
    await vendors[0]?.request(1)
    const { targets } = decisionOf(await ask())
    expect(targets).toMatchObject([
      { target: 'one/m', order: 2, available: false, reason: 'queue full', is_full: true },
      { target: 'two/m', order: 1, available: true },
    ])
    client.abort()
    await held
  })

  it('shows one whose provider is at its rate limit, also where no other is left', async () => {
    const { vendors, gateway, ask, decisionOf } = await ofTargets(
      { one: {}, two: {} },
      { rate_limits: { requests_per_minute: 1 } },
    )
    expect(decisionOf(await ask()).targets).toMatchObject([{ available: true }, { available: true }])
    const reason = (id: string) => `rate limit: requests_per_minute of provider ${id} is 1`
    expect(decisionOf(await ask()).targets).toMatchObject([
      { target: 'two/m', order: 1, available: true },
      { target: 'one/m', order: null, available: false, reason: reason('one') },
    ])
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(decisionOf(refused).targets.map((one: { reason: string }) => one.reason)).toEqual([
      reason('one'),
      reason('two'),
    ])
    const { targets } = gateway.instance.explain({ model: 'v/m', is_stream: false })
    expect(targets.map((one) => one.reason)).toEqual([reason('one'), reason('two')])
    expect(vendors.map(({ requests }) => requests.length)).toEqual([1, 1])
    gateway.clock.advance(61_000)
    expect(gateway.instance.explain({ model: 'v/m', is_stream: false }).targets).toMatchObject([
      { available: true },
      { available: true },
    ])
  })

  it('shows the order and the expected costs of the strategy cheapest, and that of `provider.sort`', async () => {
    const targets = { one: { prices: { input: 2, output: 4 } }, two: { prices: { input: 1, output: 2 } }, three: {} }
    const { ask, decisionOf } = await ofTargets(targets)
    const usual = decisionOf(await ask())
    expect(usual.targets[0]).not.toHaveProperty('expected_cost')
    const sorted = decisionOf(await ask({ provider: { sort: 'price' } }))
    expect(sorted.strategy).toBe('cheapest')
    expect(sorted.targets.map(({ order }: { order: number }) => order)).toEqual([2, 1, 3])
    const [one, two, three] = sorted.targets.map(({ expected_cost }: { expected_cost: number }) => expected_cost)
    expect([one / two, three]).toEqual([2, null])
    const single = decisionOf(await ask({ provider: { sort: 'price', allow_fallbacks: false } }))
    expect(single.targets.map(({ order }: { order: number }) => order)).toEqual([null, 1, null])
  })
})

describe('x-gatehouse-explain: 1', () => {
  it('returns the candidates, the attempts, and why the next one was made', async () => {
    const { one, gateway } = await setUp()
    one.answer(failure(401), failure(503))
    const response = await gateway.chat(QUESTION, { headers: EXPLAIN })
    expect(response.status).toBe(200)
    const { model, attempts, decisions } = headerOf(response)
    expect(model).toBe('house/fast')
    expect(attempts).toEqual([
      { target: 'one/m1', key: 'main', error: 'upstream_auth', upstream_status: 401, ms: 0, next: 'other_key' },
      { target: 'one/m1', key: '2', error: 'server_is_overloaded', upstream_status: 503, ms: 0, next: 'other_target' },
      { target: 'two/m2', ms: 0 },
    ])
    expect(decisions).toHaveLength(1)
    expect(decisions[0]).toMatchObject({ model: 'house/fast', strategy: 'priority', order: 'shared', tries: 5 })
    const shown = decisions[0].targets.map(({ target, key, order }: Record<string, unknown>) => [target, key, order])
    expect(shown).toEqual([
      ['one/m1', 'main', 1],
      ['one/m1', '2', 2],
      ['two/m2', undefined, 3],
    ])
  })

  it('says why a target is avoided', async () => {
    const { one, gateway } = await setUp()
    one.answer(failure(401))
    await gateway.chat(QUESTION)
    const { decisions } = headerOf(await gateway.chat(QUESTION, { headers: EXPLAIN }))
    expect(decisions[0].targets[0]).toMatchObject({
      key: 'main',
      available: false,
      reason: 'key refused',
      available_in_seconds: 300,
      order: null,
    })
  })

  it('explains a failure, with each model that was asked', async () => {
    const { one, two, gateway } = await setUp()
    one.otherwise(failure(500))
    two.otherwise(failure(500))
    const response = await gateway.chat(QUESTION, { headers: EXPLAIN })
    expect(response.status).toBe(502)
    const { requested, model, error, attempts, decisions } = headerOf(response)
    expect({ requested, model, error }).toEqual({
      requested: 'house/fast',
      model: 'house/other',
      error: 'bad_upstream_response',
    })
    expect(attempts.map(({ next }: { next: string }) => next)).toEqual([
      'other_key',
      'other_target',
      'fallback_model',
      'none_left',
    ])
    expect(decisions.map((one: { model: string }) => one.model)).toEqual(['house/fast', 'house/other'])
  })

  it('follows a stream as its last comment', async () => {
    const { one, gateway } = await setUp()
    one.answer(failure(503))
    const response = await gateway.chat({ ...QUESTION, stream: true }, { headers: EXPLAIN })
    const text = await response.text()
    expect(text).toContain('data: [DONE]')
    expect(commentOf(text).attempts.map(({ next }: { next?: string }) => next)).toEqual(['other_key', undefined])
    expect(commentOf(text)).toEqual(headerOf(response))
  })

  it('is ignored without the right', async () => {
    const { gateway } = await setUp(['tok_another'])
    const whole = await gateway.chat(QUESTION, { headers: EXPLAIN })
    expect(whole.headers.get('x-gatehouse-explain')).toBeNull()
    const stream = await gateway.chat({ ...QUESTION, stream: true }, { headers: EXPLAIN })
    expect(await stream.text()).not.toContain('explain')
  })

  it('is a right of the tokens that are named, from a reload on', async () => {
    const { gateway, settings } = await setUp([])
    const [token] = await gateway.instance.tokens.list()
    const explain_tokens = [token?.token_id ?? '']
    await gateway.instance.reload(configOf({ ...settings, server: { explain_tokens } }))
    expect(headerOf(await gateway.chat(QUESTION, { headers: EXPLAIN })).model).toBe('house/fast')
  })

  it('needs the value 1', async () => {
    const { gateway } = await setUp()
    for (const value of ['0', 'true', '']) {
      const { headers } = await gateway.chat(QUESTION, { headers: { 'x-gatehouse-explain': value } })
      expect(headers.get('x-gatehouse-explain')).toBeNull()
    }
    expect((await gateway.chat(QUESTION)).headers.get('x-gatehouse-explain')).toBeNull()
  })

  it('contains no key', async () => {
    const { one, gateway } = await setUp()
    one.otherwise(failure(401, { message: `Incorrect API key provided: ${SECRET}` }))
    const { headers } = await gateway.chat(QUESTION, { headers: EXPLAIN })
    expect(headers.get('x-gatehouse-explain')).toContain('upstream_auth')
    expect(headers.get('x-gatehouse-explain')).not.toContain(SECRET)
  })
})

describe('the access log', () => {
  it('says of each attempt why the next one was made', async () => {
    const { one, gateway } = await setUp()
    one.answer(failure(429), failure(500))
    await gateway.chat(QUESTION)
    const line =
      gateway
        .logged()
        .split('\n')
        .find((text) => text.includes('"event":"request"')) ?? ''
    expect(JSON.parse(line).attempts.map(({ next }: { next?: string }) => next)).toEqual([
      'other_key',
      'other_target',
      undefined,
    ])
  })
})

describe('the text of an explanation', () => {
  const target = (name: string) => ({
    target: name,
    priority: 0,
    weight: 1,
    order: 1,
    available: true,
    first_byte_seconds: 15,
    open_calls: 0,
  })
  const record = (names: string[]): CallRecord => {
    const signal = new AbortController().signal
    const caller = { token_id: 't', mayUseModel: () => true, mayUseFamily: () => true }
    return {
      call: { request_id: 'r', caller, signal, arrived: 0, is_explained: true },
      family: 'chatcompat',
      model: 'm',
      at: 0,
      attempts: [],
      is_stream: false,
      error: undefined,
      decisions: [
        {
          model: 'm',
          strategy: 'priority',
          sticky: null,
          hedge: false,
          tries: 5,
          deadline_seconds: null,
          order: 'fixed',
          targets: names.map(target),
        },
      ],
    }
  }
  const names = (count: number) => Array.from({ length: count }, (_, at) => `vendor/model-${at}`)

  it('is valid in a header whatever the names are', () => {
    const text = explanationText(record(['vendor/modèle-\u{1f600}\r\nx: y']), 4096) ?? ''
    expect(headerValue(text)).toBe(text)
    expect(JSON.parse(text).decisions[0].targets[0].target).toBe('vendor/modèle-\u{1f600}\r\nx: y')
  })

  it('is cut at the end of the longest list where it is too long, and says so', () => {
    const whole = explanationText(record(names(30)), 1_000_000) ?? ''
    expect(JSON.parse(whole)).not.toHaveProperty('cut')
    expect(explanationText(record(names(30)), whole.length)).toBe(whole)
    const cut = explanationText(record(names(30)), whole.length - 1) ?? ''
    expect(cut.length).toBeLessThan(whole.length)
    expect(JSON.parse(cut)).toMatchObject({ cut: true })
    expect(JSON.parse(cut).decisions[0].targets).toHaveLength(29)
  })
})
