/** Fallback models: which model serves a call that the requested one cannot serve. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig } from '../src/config/schema/schema.ts'
import { startGateway } from './kit/gateway.ts'
import { failure, startVendor, type Vendor } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A gateway with the models `v/first`, `v/second` and `v/third`, each at a vendor of its own. */
async function setUp(first: Partial<ModelConfig>, second: Partial<ModelConfig> = {}) {
  const vendors = { first: startVendor(), second: startVendor(), third: startVendor() }
  const ids = Object.keys(vendors) as (keyof typeof vendors)[]
  const target = (id: string) => ({ targets: [{ provider: id, model: id }] })
  const gateway = await startGateway({
    providers: Object.fromEntries(ids.map((id) => [id, { base_url: vendors[id].url }])),
    models: {
      'v/first': { ...target('first'), ...first },
      'v/second': { ...target('second'), ...second },
      'v/third': target('third'),
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose](), ...ids.map((id) => () => vendors[id].stop()))
  async function ask(fields: object = {}, token = gateway.token) {
    const body = { model: 'v/first', messages: [{ role: 'user', content: 'hi' }], ...fields }
    const response = await gateway.chat(body, { headers: { authorization: `Bearer ${token}` } })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text }
  }
  return { ...vendors, gateway, ask }
}

const counts = (...vendors: Vendor[]) => vendors.map(({ requests }) => requests.length)
const TOO_LONG = failure(400, { message: 'maximum context length is 10 tokens', code: 'context_length_exceeded' })
const AGAINST_POLICY = failure(400, { message: 'against the content policy', code: 'content_policy_violation' })

describe('a model with fallbacks', () => {
  it('is served by the first one that answers, which the response names', async () => {
    const { first, second, third, ask } = await setUp({ fallbacks: ['v/second', 'v/third'] })
    first.otherwise(failure(500))
    second.otherwise(failure(503))
    const { status, headers, text } = await ask()
    expect(status).toBe(200)
    expect(JSON.parse(text).model).toBe('v/third')
    expect(headers.get('x-model-requested')).toBe('v/first')
    expect(headers.get('x-model-served')).toBe('v/third')
    expect(headers.get('x-gatehouse-attempts')).toBe('3')
    expect(third.requests[0]?.json().model).toBe('third')
    expect(counts(first, second, third)).toEqual([1, 1, 1])
  })

  it('streams from a fallback', async () => {
    const { first, ask } = await setUp({ fallbacks: ['v/second'] })
    first.otherwise(failure(500))
    const { status, headers, text } = await ask({ stream: true })
    expect(status).toBe(200)
    expect(headers.get('x-model-served')).toBe('v/second')
    expect(text).toContain('"model":"v/second"')
    expect(text).toContain('[DONE]')
  })

  it('fails with the last error when no fallback answers', async () => {
    const { first, second, ask } = await setUp({ fallbacks: ['v/second'] })
    first.otherwise(failure(500))
    second.otherwise(failure(429, {}, { 'retry-after': '7' }))
    const { status, headers } = await ask()
    expect([status, headers.get('retry-after')]).toEqual([429, '7'])
  })

  it('keeps a limit that only the fallback has', async () => {
    const limited = { rate_limits: { requests_per_minute: 1 } }
    const { first, second, gateway, ask } = await setUp({ fallbacks: ['v/second'] }, limited)
    first.otherwise(failure(500))
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 502])
    expect(counts(first, second)).toEqual([2, 1])
    gateway.clock.advance(61_000)
    expect([(await ask()).status, counts(first, second)]).toEqual([200, [3, 2]])
  })

  it('records the usage with the model that served', async () => {
    const { first, gateway, ask } = await setUp({ fallbacks: ['v/second'] })
    first.otherwise(failure(500))
    await ask()
    await gateway.instance.drain({ deadline_ms: 60_000 })
    gateway.clock.advance(2_000)
    expect((await gateway.instance.usage({ limit: 10 })).map(({ model, requests }) => [model, requests])).toEqual([
      ['v/first', 0],
      ['v/second', 1],
    ])
  })

  it.each([
    ['context_length', TOO_LONG],
    ['content_policy', AGAINST_POLICY],
  ] as const)('has a list for %s alone', async (reason, answer) => {
    const { first, second, third, ask } = await setUp({
      fallbacks: { [reason]: ['v/third'], unavailable: ['v/second'] },
    })
    first.answer(answer)
    expect((await ask()).headers.get('x-model-served')).toBe('v/third')
    first.answer(failure(500))
    expect((await ask()).headers.get('x-model-served')).toBe('v/second')
    expect(counts(first, second, third)).toEqual([2, 1, 1])
  })

  it('returns content that the provider rejects as an error, unless a fallback is named for that', async () => {
    const { first, second, ask } = await setUp({ fallbacks: ['v/second'] })
    first.otherwise(AGAINST_POLICY)
    expect((await ask()).status).toBe(400)
    expect(counts(second)).toEqual([0])
  })

  it('returns a mistake of the caller as an error', async () => {
    const { first, second, ask } = await setUp({ fallbacks: ['v/second'] })
    first.otherwise(failure(400, { message: 'bad request' }))
    expect((await ask()).status).toBe(400)
    expect(counts(second)).toEqual([0])
  })

  it('is not asked at all with an input that certainly exceeds its context window', async () => {
    const { first, second, ask } = await setUp({ context_tokens: 100, fallbacks: { context_length: ['v/second'] } })
    const messages = [{ role: 'user', content: 'word '.repeat(170) }]
    expect((await ask({ messages })).headers.get('x-model-served')).toBe('v/second')
    expect(counts(first, second)).toEqual([0, 1])
    await ask()
    expect(counts(first, second)).toEqual([1, 1])
  })

  it('is served by its fallback once it is deprecated', async () => {
    const { first, second, ask } = await setUp({ status: 'deprecated', fallbacks: { deprecated: ['v/second'] } })
    expect((await ask()).headers.get('x-model-served')).toBe('v/second')
    expect(counts(first, second)).toEqual([0, 1])
  })

  it('follows no fallbacks of a fallback', async () => {
    const { first, second, third, ask } = await setUp({ fallbacks: ['v/second'] }, { fallbacks: ['v/third'] })
    first.otherwise(failure(500))
    second.otherwise(failure(500))
    expect((await ask()).status).toBe(502)
    expect(counts(first, second, third)).toEqual([1, 1, 0])
  })

  it('passes over a fallback that the token may not use', async () => {
    const { first, second, gateway, ask } = await setUp({ fallbacks: ['v/second', 'v/third'] })
    first.otherwise(failure(500))
    const { secret } = await gateway.instance.tokens.issue({ name: 'limited', models: ['v/first', 'v/third'] })
    expect((await ask({}, secret)).headers.get('x-model-served')).toBe('v/third')
    const { secret: narrow } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['v/first'] })
    expect((await ask({}, narrow)).status).toBe(502)
    expect(counts(second)).toEqual([0])
  })

  it('passes over a fallback that does not accept the request', async () => {
    const { first, second, ask } = await setUp(
      { fallbacks: ['v/second', 'v/third'] },
      { limits: { max_tokens: { maximum: 10 } } },
    )
    first.otherwise(failure(500))
    expect((await ask({ max_tokens: 20 })).headers.get('x-model-served')).toBe('v/third')
    expect(counts(second)).toEqual([0])
  })

  it('costs the time of a dead model once, not with every call', async () => {
    const { first, second, third, ask } = await setUp({ fallbacks: ['v/second', 'v/third'] })
    first.otherwise(failure(429, {}, { 'retry-after': '60' }))
    const attempts: (string | null)[] = []
    for (let i = 0; i < 3; i++) attempts.push((await ask()).headers.get('x-gatehouse-attempts'))
    expect(attempts).toEqual(['2', '1', '1'])
    expect(counts(first, second, third)).toEqual([1, 3, 0])
  })

  it('is tried while it is avoided when no fallback serves the request', async () => {
    const { first, second, third, gateway, ask } = await setUp({ fallbacks: ['v/second'] })
    first.answer(failure(429, {}, { 'retry-after': '60' }))
    const { secret } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['v/first'] })
    expect((await ask({}, secret)).status).toBe(429)
    expect((await ask({}, secret)).status).toBe(200)
    expect(counts(first, second, third)).toEqual([2, 0, 0])
  })

  it('is tried while it is avoided rather than none, as the last one of all', async () => {
    const { first, second, third, ask } = await setUp({ fallbacks: ['v/second', 'v/third'] })
    for (const vendor of [first, second, third]) vendor.answer(failure(429, {}, { 'retry-after': '60' }))
    expect((await ask()).status).toBe(429)
    expect((await ask()).headers.get('x-model-served')).toBe('v/third')
    expect(counts(first, second, third)).toEqual([1, 1, 2])
  })

  it('makes no more tries in all than the requested model allows', async () => {
    const { first, second, third, ask } = await setUp({ routing: { tries: 2 }, fallbacks: ['v/second', 'v/third'] })
    first.otherwise(failure(429, {}, { 'retry-after': '60' }))
    second.otherwise(failure(500))
    expect((await ask()).status).toBe(502)
    expect(counts(first, second, third)).toEqual([1, 1, 0])
  })
})
