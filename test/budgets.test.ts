/** Budgets through the whole gateway: of the installation, of tokens, of end users, and of tasks. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { Budget } from '../src/spec/rate-limit.ts'
import { startGateway } from './kit/gateway.ts'
import { completion, hang, startVendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Output costs 1 USD a token, so that the most that a call can cost is a number that can be read: max_tokens. */
async function setUp(settings: Parameters<typeof startGateway>[0] = {}) {
  const vendor = startVendor()
  const gateway = await startGateway({
    providers: { v: { base_url: vendor.url } },
    models: {
      'v/m': { prices: { input: 0, output: 1_000_000 } },
      'v/unknown': {},
      'v/video': {
        families: ['video-generation'],
        targets: [{ provider: 'sandbox', model: 'text-to-video' }],
        prices: { video_second: 1 },
      },
    },
    ...settings,
  })
  closing.push(() => gateway[Symbol.asyncDispose](), vendor.stop)
  const tokenOf = async (budgets: Budget[], more: object = {}) =>
    (await gateway.instance.tokens.issue({ name: 'limited', budgets, ...more })).secret
  /** A call that may cost `most` and costs `cost`. */
  async function call(
    secret: string,
    { most, cost, model = 'v/m', ...body }: { most: number; cost: number; model?: string; user?: string },
  ) {
    vendor.otherwise(
      whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: cost, total_tokens: 1 + cost } })),
    )
    const json = { model, max_tokens: most, messages: [{ role: 'user', content: 'hi' }], ...body }
    const response = await gateway.chat(json, { headers: { authorization: `Bearer ${secret}` } })
    const answer = (await response.json()) as { error?: { message: string; type: string; code: string } }
    return { status: response.status, headers: response.headers, error: answer.error }
  }
  return { gateway, vendor, tokenOf, call }
}

/** What a call can cost is rounded up by some nano-units. */
const TOTAL = (amount: number): Budget => ({ amount: amount + 0.00001, window: 'total' })

describe('the budget of a token', () => {
  it('refuses a call that may cost more than is left, as OpenAI does', async () => {
    const { call, tokenOf, vendor } = await setUp()
    const token = await tokenOf([TOTAL(10)])
    expect((await call(token, { most: 6, cost: 4 })).status).toBe(200)
    const sent = vendor.requests.length
    const { status, error, headers } = await call(token, { most: 7, cost: 1 })
    expect([status, error?.type, error?.code]).toEqual([429, 'insufficient_quota', 'insufficient_quota'])
    expect(error?.message).toContain('The budget of the token "limited" is 10.00001 USD in all; 4 USD is used')
    expect(headers.get('x-should-retry')).toBe('false')
    expect(vendor.requests).toHaveLength(sent)
    expect((await call(token, { most: 6, cost: 6 })).status).toBe(200)
    expect((await call(token, { most: 1, cost: 1 })).status).toBe(429)
  })

  it('counts a call in the day that has admitted it, also where the clock is set meanwhile', async () => {
    const { call, tokenOf, vendor, gateway } = await setUp()
    const token = await tokenOf([{ amount: 10.00001, window: 'day' }])
    const answer = whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: 10, total_tokens: 11 } }))
    vendor.answer((...given) => {
      gateway.clock.jump(86_400_000)
      return answer(...given)
    })
    expect((await call(token, { most: 10, cost: 10 })).status).toBe(200)
    expect((await call(token, { most: 1, cost: 1 })).status).toBe(429)
    gateway.clock.jump(-86_400_000)
    gateway.clock.advance(86_400_000)
    await settled()
    expect((await call(token, { most: 10, cost: 10 })).status).toBe(200)
  })

  it('holds what open calls may cost', async () => {
    const { call, tokenOf, vendor, gateway } = await setUp()
    const token = await tokenOf([TOTAL(10)])
    const answered = Promise.withResolvers<void>()
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
    vendor.answer((wire) => answered.promise.then(() => whole(completion('hi', { usage }))(wire)))
    const json = { model: 'v/m', max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] }
    const open = gateway.chat(json, { headers: { authorization: `Bearer ${token}` } })
    await vendor.request(1)
    const refused = await call(token, { most: 3, cost: 1 })
    expect(refused).toMatchObject({ status: 429, error: { code: 'insufficient_quota' } })
    // Libraries may try again, since the rest is only held.
    expect([refused.headers.get('retry-after'), refused.headers.get('x-should-retry')]).toEqual(['1', 'true'])
    answered.resolve()
    expect((await open).status).toBe(200)
    expect((await call(token, { most: 8, cost: 3 })).status).toBe(200)
  })

  it('counts a call that its client leaves at the most that it can have cost, so that it cannot be repeated', async () => {
    const { call, tokenOf, vendor, gateway } = await setUp()
    const token = await tokenOf([TOTAL(10)])
    const statuses: number[] = []
    for (let repeated = 0; repeated < 3; repeated++) {
      vendor.answer(hang())
      const leaving = new AbortController()
      const json = { model: 'v/m', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
      const headers = { authorization: `Bearer ${token}` }
      const open = gateway.chat(json, { headers, signal: leaving.signal })
      const arrived = vendor.request(repeated + 1).then(() => 'arrived')
      if ((await Promise.race([arrived, open])) === 'arrived') {
        leaving.abort()
        await open.catch(() => {})
        while (gateway.logged().split('"error":"client_closed_request","stream"').length < repeated + 2) await settled()
      } else statuses.push((await open).status)
    }
    expect(statuses).toEqual([429])
    expect((await call(token, { most: 1, cost: 1 })).status).toBe(429)
  })

  it('counts calls that were charged before it was set', async () => {
    const { call, tokenOf, gateway } = await setUp()
    const token = await tokenOf([])
    await call(token, { most: 9, cost: 9 })
    gateway.clock.advance(60)
    await settled()
    await gateway.instance.tokens.update('limited', { budgets: [TOTAL(10)] } as never)
    expect((await call(token, { most: 2, cost: 1 })).error?.message).toContain('9 USD is used')
    expect((await call(token, { most: 1, cost: 1 })).status).toBe(200)
  })

  it('lets calls pass whose price is not known, or refuses them where the operator says so', async () => {
    const unknown = { most: 5, cost: 5, model: 'v/unknown' }
    const lenient = await setUp()
    expect((await lenient.call(await lenient.tokenOf([TOTAL(1)]), unknown)).status).toBe(200)
    const ledger = { currency: 'USD', exchange_rates: {}, unknown_price: 'refuse' } as const
    const strict = await setUp({ ledger } as never)
    const { status, error } = await strict.call(await strict.tokenOf([TOTAL(1)]), unknown)
    expect([status, error?.message]).toEqual([
      429,
      'The price of the model "v/unknown" is not known, so its calls cannot be counted towards a budget. The operator of the gateway can set its prices (0 where it is free).',
    ])
    expect((await strict.call(await strict.tokenOf([]), unknown)).status).toBe(200)
  })
})

describe('budgets of the installation and of end users', () => {
  it('count for every token, and for each end user', async () => {
    const { call, tokenOf } = await setUp({
      budgets: [TOTAL(10)],
      tokens: { models: ['*'], end_users: { budgets: [TOTAL(3)] } },
    })
    const [one, two] = [await tokenOf([]), await tokenOf([], { name: 'other' })]
    expect((await call(one, { most: 3, cost: 3, user: 'ann' })).status).toBe(200)
    expect((await call(one, { most: 1, cost: 1, user: 'ann' })).error?.message).toContain('the end user "ann"')
    expect((await call(one, { most: 3, cost: 3, user: 'bob' })).status).toBe(200)
    expect((await call(two, { most: 5, cost: 4 })).error?.message).toContain('The budget of the installation')
    expect((await call(two, { most: 4, cost: 4 })).status).toBe(200)
  })
})

describe('a threshold', () => {
  it('is told to the webhook of the operator, signed, and logged', async () => {
    const hook = startVendor()
    closing.push(hook.stop)
    hook.otherwise(whole({}))
    const secret = `whsec_${Buffer.from('a secret of thirty-two bytes, ok').toString('base64')}`
    const { call, tokenOf, gateway } = await setUp({ alerts: { webhook: { url: `${hook.origin}/alerts`, secret } } })
    const token = await tokenOf([TOTAL(10)])
    await call(token, { most: 6, cost: 6 })
    gateway.clock.advance(60)
    await settled()
    gateway.clock.advance(5_000)
    const { headers, json } = await hook.request(1)
    expect(headers['webhook-signature']).toStartWith('v1,')
    expect(json()).toMatchObject({
      type: 'budget.threshold_reached',
      data: {
        threshold: 50,
        owner: 'the token "limited"',
        window: 'total',
        amount: 10.00001,
        used: 6,
        currency: 'USD',
      },
    })
    expect(gateway.logged()).toContain('a budget has reached a threshold')
  })
})

describe('a video', () => {
  it('that may cost more than is left is refused before it is stored', async () => {
    const { gateway, tokenOf } = await setUp()
    const token = await tokenOf([TOTAL(8)])
    const order = () =>
      gateway.call('/v1/video/generations', {
        json: { model: 'v/video', prompt: 'a cat', aspect_ratio: '16:9', duration: 4 },
        headers: { authorization: `Bearer ${token}` },
      })
    const statuses = [(await order()).status, (await order()).status, (await order()).status]
    expect(statuses).toEqual([200, 200, 429])
    const health = await gateway.instance.tasks.health()
    expect(health.unfinished).toBe(2)
  })
})
