/** GET /v1/limits: what a token can see of what is left to it. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { RateLimits } from '../src/spec/rate-limit.ts'
import { startGateway } from './kit/gateway.ts'
import { startPostgres } from './kit/postgres.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Each call uses one token of input and three of output, and costs 3 USD. */
async function setUp(store_url = 'sqlite::memory:', tokens: { rate_limits?: RateLimits } = {}) {
  const vendor = startVendor()
  vendor.otherwise(whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 } })))
  const gateway = await startGateway(
    {
      providers: { v: { base_url: vendor.url } },
      models: { 'v/m': { prices: { input: 0, output: 1_000_000 } } },
      tokens: { models: ['*'], ...tokens },
    },
    { store_url },
  )
  closing.push(() => gateway[Symbol.asyncDispose](), vendor.stop)
  const { instance, clock } = gateway
  const headersOf = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })
  const limits = async (secret: string) => (await gateway.call('/v1/limits', headersOf(secret))).json()
  async function chat(secret: string) {
    const json = { model: 'v/m', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
    const response = await gateway.chat(json, headersOf(secret))
    await response.text()
    return response.status
  }
  /** Until the ledger has added the charges to the budgets. */
  async function charged(secret: string, used: number) {
    for (;;) {
      const [budget] = (await limits(secret)).budgets
      if (budget?.used === used) return
      clock.advance(1)
      await settled()
    }
  }
  return { gateway, instance, limits, chat, charged }
}

const ENGINES: [string, () => Promise<string>][] = [
  ['sqlite', async () => 'sqlite::memory:'],
  ['postgres', async () => (await startPostgres()).createDatabase()],
]

describe('GET /v1/limits', () => {
  it('returns no limits for a token that has none', async () => {
    const { gateway, limits } = await setUp()
    expect(await limits(gateway.token)).toEqual({
      object: 'limits',
      token_id: expect.stringMatching(/^tok_/),
      currency: 'USD',
      rate_limits: [],
      budgets: [],
      project: null,
    })
  })

  it.each(ENGINES)('tells what is left of the token and its project on %s', async (_, urlOf) => {
    const { instance, limits, chat, charged } = await setUp(await urlOf())
    const project = await instance.projects.create({
      name: 'team',
      rate_limits: { tokens_per_day: 1_000 },
      budgets: [{ amount: 100, window: 'month' }],
    })
    const own = {
      project_id: project.project_id,
      rate_limits: { requests_per_minute: 10, concurrent_requests: 2 },
      budgets: [{ amount: 20, window: 'total' as const, soft: true }],
    }
    const { secret } = await instance.tokens.issue({ name: 'own', ...own })
    const { secret: other } = await instance.tokens.issue({ name: 'other', ...own })
    const fresh = await limits(secret)
    expect(fresh.rate_limits).toEqual([
      { limit: 'requests_per_minute', amount: 10, remaining: 10, reset_seconds: 0 },
      { limit: 'concurrent_requests', amount: 2, remaining: 2, reset_seconds: null },
    ])
    expect(fresh.budgets).toEqual([
      {
        amount: 20,
        window: 'total',
        soft: true,
        used: 0,
        credit: 0,
        held: 0,
        remaining: 20,
        window_start: 0,
        window_end: null,
      },
    ])
    expect([await chat(secret), await chat(secret), await chat(other)]).toEqual([200, 200, 200])
    await charged(secret, 6)
    await charged(other, 3)
    const left = await limits(secret)
    expect(left.budgets).toMatchObject([{ used: 6, remaining: 14 }])
    expect(left.project).toMatchObject({
      project_id: project.project_id,
      rate_limits: [{ limit: 'tokens_per_day', amount: 1_000, remaining: 988 }],
      budgets: [
        {
          amount: 100,
          used: 9,
          remaining: 91,
          window_start: Date.UTC(2026, 0, 1) / 1000,
          window_end: Date.UTC(2026, 1, 1) / 1000,
        },
      ],
    })
    expect(left.project.budgets[0].held).toBeGreaterThan(0)
    expect((await limits(other)).budgets).toMatchObject([{ used: 3, remaining: 17 }])
  })

  it('counts down the windows of the token, with the defaults of the configuration', async () => {
    const { gateway, limits, chat } = await setUp('sqlite::memory:', { rate_limits: { requests_per_minute: 2 } })
    expect(await chat(gateway.token)).toBe(200)
    expect((await limits(gateway.token)).rate_limits).toMatchObject([{ remaining: 1 }])
    expect(await chat(gateway.token)).toBe(200)
    const [full] = (await limits(gateway.token)).rate_limits
    expect(full).toMatchObject({ limit: 'requests_per_minute', amount: 2, remaining: 0 })
    expect(full.reset_seconds).toBeGreaterThanOrEqual(60)
    expect(await chat(gateway.token)).toBe(429)
    gateway.clock.advance(62_000)
    expect((await limits(gateway.token)).rate_limits).toMatchObject([{ remaining: 2, reset_seconds: 0 }])
  })
})
