/** `budgets: { hold: likely }`: calls hold what they probably cost, once enough answers were seen. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { Budget } from '../src/spec/rate-limit.ts'
import { startGateway } from './kit/gateway.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Output costs 1 USD a token, input nothing. */
async function start(budgets: NonNullable<Parameters<typeof startGateway>[0]>['budgets']) {
  const vendor = startVendor()
  const gateway = await startGateway({
    providers: { v: { base_url: vendor.url } },
    models: {
      'v/m': { prices: { input: 0, output: 1_000_000 } },
      'v/other': { prices: { input: 0, output: 1_000_000 } },
    },
    ...(budgets && { budgets }),
  })
  closing.push(vendor.stop, () => gateway[Symbol.asyncDispose]())
  const issue = async (name: string, list: Budget[]) => {
    const { secret } = await gateway.instance.tokens.issue({ name, budgets: list })
    return { authorization: `Bearer ${secret}` }
  }
  type Called = { answer?: number | undefined; max_tokens?: number | undefined; model?: string; usage?: boolean }
  async function call(headers: { authorization: string }, { answer = 4, usage = true, ...body }: Called) {
    const counts = { prompt_tokens: 1, completion_tokens: answer, total_tokens: 1 + answer }
    vendor.otherwise(whole(usage ? completion('hi', { usage: counts }) : completion('hi', { usage: undefined })))
    const json = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }], ...body }
    const response = await gateway.chat(json, { headers })
    await response.text()
    return response.status
  }
  const learn = async (headers: { authorization: string }, more: Called = {}) => {
    for (let answer = 0; answer < 100; answer++) expect(await call(headers, { max_tokens: 4, ...more })).toBe(200)
  }
  return { gateway, issue, call, learn }
}

const TOTAL = (amount: number): Budget => ({ amount: amount + 0.001, window: 'total' })
const LIKELY = { hold: 'likely' } as const

describe('a call with budgets', () => {
  it('holds the most that it can cost, whatever was answered before', async () => {
    for (const budgets of [undefined, [TOTAL(1e6)], { hold: 'most' as const, installation: [TOTAL(1e6)] }]) {
      const { issue, call, learn } = await start(budgets)
      const token = await issue('a', [TOTAL(500)])
      await learn(token)
      expect(await call(token, { max_tokens: 101 })).toBe(429)
      expect(await call(token, { max_tokens: 100 })).toBe(200)
    }
  })

  it('holds what 99 of 100 answers of the model to the token cost, where the operator allows it', async () => {
    const { issue, call, learn } = await start(LIKELY)
    const [token, other] = [await issue('a', [TOTAL(410)]), await issue('b', [TOTAL(10)])]
    for (let answer = 0; answer < 99; answer++) await call(token, { max_tokens: 4 })
    expect(await call(token, { max_tokens: 1_000 })).toBe(429)
    expect(await call(token, { max_tokens: 4 })).toBe(200)
    expect(await call(token, { max_tokens: 1_000 })).toBe(200)
    expect(await call(token, {})).toBe(200)
    // 408 of 410 USD are used: a likely answer of 4 tokens costs more than is left, a shorter one does not.
    expect(await call(token, {})).toBe(429)
    expect(await call(token, { max_tokens: 2 })).toBe(200)
    expect(await call(other, { max_tokens: 1_000 })).toBe(429)
    const fresh = await issue('c', [TOTAL(1_000)])
    await learn(fresh)
    expect(await call(fresh, { max_tokens: 1_000 })).toBe(200)
    expect(await call(fresh, { max_tokens: 1_000, model: 'v/other' })).toBe(429)
  })

  it('is charged all that it costs, also beyond the budget, which then admits nothing', async () => {
    const { issue, call, learn } = await start(LIKELY)
    const token = await issue('a', [TOTAL(410)])
    await learn(token)
    expect(await call(token, { max_tokens: 1_000, answer: 700 })).toBe(200)
    expect(await call(token, { max_tokens: 1, answer: 1 })).toBe(429)
  })

  it('learns nothing from estimates', async () => {
    const { issue, call, learn } = await start(LIKELY)
    const token = await issue('a', [TOTAL(1_000)])
    await learn(token, { usage: false })
    expect(await call(token, { max_tokens: 2_000 })).toBe(429)
  })

  it('counts towards budgets of the installation that are written beside hold', async () => {
    const { issue, call } = await start({ hold: 'likely', installation: [TOTAL(5)] })
    const token = await issue('a', [])
    expect(await call(token, { max_tokens: 6 })).toBe(429)
    expect(await call(token, { max_tokens: 5 })).toBe(200)
  })
})
