/** Rate limits through a whole gateway. */
import { afterEach, describe, expect, it } from 'bun:test'
import { DEFAULT_LIMITS } from '../src/config/config.ts'
import type { RateLimits } from '../src/spec/rate-limit.ts'
import type { CallOptions, TestGateway } from './kit/gateway.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { chunk, completion, failure, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

type Setup = { rate_limits?: RateLimits; model?: RateLimits; tokens?: object; limits?: object }

function settingsOf({ url }: Vendor, { rate_limits = {}, model = {}, tokens = {}, limits = {} }: Setup) {
  return {
    providers: { acme: { base_url: url, key: 'k' } },
    models: {
      'house/fast': { targets: [{ provider: 'acme', model: 'fast' }], rate_limits: model },
      'house/other': { targets: [{ provider: 'acme', model: 'fast' }] },
    },
    rate_limits,
    tokens: { models: ['*'], ...tokens },
    limits: { ...DEFAULT_LIMITS, ...limits },
  }
}

async function start(setup: Setup): Promise<{ acme: Vendor; gateway: TestGateway }> {
  const acme = startVendor()
  closing.push(() => acme.stop())
  const gateway = await startGateway(settingsOf(acme, setup))
  closing.push(() => gateway[Symbol.asyncDispose]())
  return { acme, gateway }
}

const MESSAGES = [{ role: 'user', content: 'hi' }]
const QUESTION = { model: 'house/fast', messages: MESSAGES }
async function ask(gateway: TestGateway, options?: CallOptions) {
  const response = await gateway.chat(QUESTION, options)
  return { response, body: (await response.json()) as { error?: Record<string, unknown> } }
}
const limitHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit') || name.startsWith('retry-after')))

describe('rate limits', () => {
  it('tell OpenAI clients where they stand, on success and on refusal', async () => {
    const { gateway, acme } = await start({ rate_limits: { requests_per_minute: 2, tokens_per_day: 1_000 } })
    const first = await ask(gateway)
    expect(first.response.status).toBe(200)
    expect(limitHeaders(first.response)).toMatchObject({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-limit-tokens': '1000',
    })
    expect(Number(limitHeaders(first.response)['x-ratelimit-remaining-tokens'])).toBeLessThan(1_000)
    expect(limitHeaders(first.response)['x-ratelimit-reset-requests']).toMatch(/^1m0(\.\d+)?s$/)
    await ask(gateway)
    const { response, body } = await ask(gateway)
    expect(response.status).toBe(429)
    expect(limitHeaders(response)).toMatchObject({
      'retry-after': expect.stringMatching(/^6[01]$/),
      'retry-after-ms': expect.stringMatching(/^60\d\d\d$/),
      'x-ratelimit-remaining-requests': '0',
    })
    expect(body.error).toMatchObject({ code: 'rate_limit_exceeded', type: 'rate_limit_error' })
    expect(String(body.error?.message)).toContain('the installation: requests_per_minute is 2')
    expect(acme.requests).toHaveLength(2)
    gateway.clock.advance(61_000)
    expect((await ask(gateway)).response.status).toBe(200)
  })

  it('tell Anthropic clients in their own headers', async () => {
    const { gateway } = await start({
      rate_limits: { requests_per_minute: 1, input_tokens_per_minute: 1_000, output_tokens_per_minute: 500 },
    })
    const body = { model: 'house/fast', max_tokens: 5, messages: MESSAGES }
    const ok = await gateway.call('/v1/messages', { json: body })
    expect(ok.status).toBe(200)
    const headers = limitHeaders(ok)
    expect(headers).toMatchObject({
      'anthropic-ratelimit-requests-limit': '1',
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': '2026-01-01T00:01:01Z',
      'anthropic-ratelimit-input-tokens-limit': '1000',
      'anthropic-ratelimit-output-tokens-limit': '500',
    })
    expect(Object.keys(headers).some((name) => name.startsWith('x-'))).toBe(false)
    const refused = await gateway.call('/v1/messages', { json: body })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('61')
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } })
  })

  it('show nothing without limits, and nothing of the limits of a provider', async () => {
    const { gateway, acme } = await start({})
    const theirs = { 'x-ratelimit-limit-requests': '7', 'anthropic-ratelimit-requests-limit': '7' }
    acme.otherwise(whole(completion('hello'), { headers: theirs }))
    const { response } = await ask(gateway)
    expect(response.status).toBe(200)
    expect(limitHeaders(response)).toEqual({})
  })

  it('count a stream when it has ended', async () => {
    const { gateway, acme } = await start({ rate_limits: { tokens_per_day: 100 } })
    const usage = { prompt_tokens: 60, completion_tokens: 40, total_tokens: 100 }
    acme.otherwise(stream([chunk({ content: 'hello' }), { ...chunk({}, 'stop'), usage }]))
    const body = { ...QUESTION, max_tokens: 5, stream: true }
    const response = await gateway.chat(body)
    expect(response.headers.get('x-ratelimit-limit-tokens')).toBe('100')
    await response.text()
    const next = await gateway.chat(body)
    expect(next.headers.get('x-ratelimit-remaining-tokens')).toBe('0')
    await next.text()
  })

  it('release an open call when it has failed', async () => {
    const { gateway, acme } = await start({ model: { concurrent_requests: 1 } })
    acme.otherwise(failure(500))
    for (let count = 0; count < 5; count++) expect((await ask(gateway)).response.status).toBe(502)
    acme.otherwise(whole(completion('hello')))
    gateway.clock.advance(60_000)
    expect((await ask(gateway)).response.status).toBe(200)
  })

  it('change with the configuration, and keep what was counted', async () => {
    const setup = { rate_limits: { requests_per_day: 1 } }
    const { gateway, acme } = await start(setup)
    await ask(gateway)
    expect((await ask(gateway)).response.status).toBe(429)
    await gateway.instance.reload(configOf(settingsOf(acme, { rate_limits: { requests_per_day: 2 } })))
    expect((await ask(gateway)).response.status).toBe(200)
    expect((await ask(gateway)).response.status).toBe(429)
    await gateway.instance.reload(configOf(settingsOf(acme, {})))
    expect((await ask(gateway)).response.status).toBe(200)
  })

  it('make a call wait where the operator wants it', async () => {
    const { gateway, acme } = await start({ rate_limits: { requests_per_second: 1 }, limits: { queue_seconds: 5 } })
    await ask(gateway)
    const waiting = ask(gateway)
    for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    expect(acme.requests).toHaveLength(1)
    gateway.clock.advance(1_100)
    expect((await waiting).response.status).toBe(200)
    expect(gateway.logged()).toMatch(/"queued_ms":1\d\d\d/)
  })
})

describe('the limits of a provider', () => {
  const target = (provider: string) => ({ provider, model: 'fast' })

  async function startTwo(rate_limits: RateLimits) {
    const [one, two] = [startVendor(), startVendor()]
    closing.push(
      () => one.stop(),
      () => two.stop(),
    )
    const gateway = await startGateway({
      providers: { one: { base_url: one.url, key: 'k', rate_limits }, two: { base_url: two.url, key: 'k' } },
      models: { 'house/fast': { targets: [target('one'), target('two')] }, 'house/one': { targets: [target('one')] } },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    return { one, two, gateway }
  }

  it('pass its calls to the next target without using a try, and refuse where there is none', async () => {
    const { one, two, gateway } = await startTwo({ requests_per_minute: 2 })
    for (let count = 0; count < 5; count++) {
      const { response } = await ask(gateway)
      expect(response.status).toBe(200)
      expect(response.headers.get('x-gatehouse-attempts')).toBe('1')
    }
    expect([one.requests.length, two.requests.length]).toEqual([2, 3])
    const refused = await gateway.chat({ ...QUESTION, model: 'house/one' })
    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('provider one: requests_per_minute is 2')
    gateway.clock.advance(61_000)
    expect((await gateway.chat({ ...QUESTION, model: 'house/one' })).status).toBe(200)
  })

  it('admit the first call at the first target where several targets have limits', async () => {
    const [one, two] = [startVendor(), startVendor()]
    closing.push(
      () => one.stop(),
      () => two.stop(),
    )
    const rate_limits = { requests_per_minute: 5 }
    const gateway = await startGateway({
      providers: { one: { base_url: one.url, rate_limits }, two: { base_url: two.url, rate_limits } },
      models: { 'house/fast': { targets: [target('one'), target('two')] } },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    const { response } = await ask(gateway)
    expect([response.status, response.headers.get('x-gatehouse-attempts')]).toEqual([200, '1'])
    expect([one.requests.length, two.requests.length]).toEqual([1, 0])
  })

  it('release an open call when it has ended, or failed', async () => {
    const { one, two, gateway } = await startTwo({ concurrent_requests: 1 })
    for (let count = 0; count < 4; count++) expect((await ask(gateway)).response.status).toBe(200)
    expect([one.requests.length, two.requests.length]).toEqual([4, 0])
    one.otherwise(failure(500))
    for (let count = 0; count < 4; count++) {
      expect((await gateway.chat({ ...QUESTION, model: 'house/one' })).status).toBe(502)
      gateway.clock.advance(400_000)
    }
  })

  it('count the tokens that its calls have used', async () => {
    const { one, two, gateway } = await startTwo({ tokens_per_day: 50_000 })
    const usage = { prompt_tokens: 30_000, completion_tokens: 19_999, total_tokens: 49_999 }
    one.otherwise(whole(completion('hello', { usage })))
    for (let count = 0; count < 3; count++) {
      expect((await gateway.chat({ ...QUESTION, max_tokens: 10 })).status).toBe(200)
    }
    expect([one.requests.length, two.requests.length]).toEqual([1, 2])
  })
})

describe('tasks_in_flight', () => {
  it.each([
    ['the installation', (limits: RateLimits) => ({ rate_limits: limits })],
    ['token tok_', (limits: RateLimits) => ({ tokens: { models: ['*'], rate_limits: limits } })],
  ] as const)('of %s refuses a task at the limit', async (name, settingsFor) => {
    const gateway = await startGateway(settingsFor({ tasks_in_flight: 2 }))
    closing.push(() => gateway[Symbol.asyncDispose]())
    const submit = () =>
      gateway.call('/v1/video/generations', { json: { model: 'sandbox/text-to-video', prompt: 'a cat' } })
    const answers = await Promise.all([submit(), submit(), submit()])
    const refused = answers.filter(({ status }) => status === 429)
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 429])
    expect(refused[0]?.headers.get('retry-after')).toBe('5')
    expect(await refused[0]?.text()).toContain(`${name}`)
    expect((await gateway.chat({ model: 'sandbox/general', messages: MESSAGES })).status).toBe(200)
  })
})
