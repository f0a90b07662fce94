/** Faults of other gateways in what they charge, and in what their budgets hold. */
import { afterEach, describe, expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { chunks, completion, failure, reset, startVendor, stream, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const BUDGET = 1_000

/** A token of output costs 1 USD, and so does a second of video. */
async function setUp(amount = BUDGET) {
  const vendor = startVendor()
  const gateway = await startGateway({
    providers: { v: { base_url: vendor.url } },
    models: {
      'v/m': { prices: { input: 0, output: 1_000_000 } },
      'v/video': {
        families: ['video-generation'],
        targets: [{ provider: 'sandbox', model: 'text-to-video' }],
        prices: { video_second: 1 },
      },
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose](), vendor.stop)
  // What a call can cost is rounded up by some nano-units.
  const budgets = [{ amount: amount + 0.00001, window: 'total' as const }]
  const { secret } = await gateway.instance.tokens.issue({ name: 'customer', budgets })
  const headers = { authorization: `Bearer ${secret}` }
  const chat = (body: object, signal?: AbortSignal) => {
    const json = { model: 'v/m', messages: [{ role: 'user', content: 'Hi' }], ...body }
    return gateway.chat(json, signal ? { headers, signal } : { headers })
  }
  const status = async (body: object) => {
    const response = await chat(body)
    await response.text()
    return response.status
  }
  /** What the budget has counted, once every ended call and task is in the ledger. */
  async function used(): Promise<number> {
    for (let turn = 0; turn < 8; turn++) {
      gateway.clock.advance(60)
      await settled()
    }
    const answer = (await (await gateway.call('/v1/limits', { headers })).json()) as { budgets: { used: number }[] }
    return answer.budgets[0]?.used ?? Number.NaN
  }
  const video = (prompt: string) =>
    gateway.call('/v1/video/generations', {
      json: { model: 'v/video', prompt, aspect_ratio: '16:9', duration: 4 },
      headers,
    })
  /** Until no task is unfinished; nobody asks for one meanwhile. */
  async function tasksEnded(): Promise<void> {
    while ((await gateway.instance.tasks.health()).unfinished > 0) {
      gateway.clock.advance(5_000)
      await settled()
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  return { gateway, vendor, chat, status, used, video, tasksEnded }
}

const usage = (completion_tokens: number) => ({
  usage: { prompt_tokens: 1, completion_tokens, total_tokens: 1 + completion_tokens },
})

describe('what is charged', () => {
  // https://github.com/theopenco/llmgateway/pull/3331: leaving before the last event was free.
  // https://github.com/maximhq/bifrost/issues/6972: whether it was charged was left to chance.
  it('a stream that its client leaves is charged for what was delivered, each time', async () => {
    const { vendor, chat, used } = await setUp()
    const charges: number[] = []
    for (let before = 0, round = 0; round < 5; round++) {
      vendor.answer(stream(chunks('One two three four five six seven eight. ', 'never sent'), { hangAfter: 2 }))
      const leaving = new AbortController()
      const response = await chat({ stream: true, max_tokens: 50 }, leaving.signal)
      const reader = response.body?.getReader()
      for (let text = ''; !text.includes('eight'); ) text += new TextDecoder().decode((await reader?.read())?.value)
      leaving.abort()
      await reader?.cancel().catch(() => {})
      let after = before
      while (after === before) after = await used()
      charges.push(after - before)
      before = after
    }
    expect(charges[0]).toBeGreaterThanOrEqual(5)
    expect(charges[0]).toBeLessThan(50)
    expect(new Set(charges).size).toBe(1)
  })

  // https://github.com/QuantumNous/new-api/issues/4168: charged though nothing was delivered.
  it('a call that delivered nothing is charged nothing', async () => {
    const { vendor, status, used } = await setUp()
    for (const answer of [failure(500), failure(400), failure(429), reset()]) {
      vendor.otherwise(answer)
      expect(await status({ max_tokens: 50 })).toBeGreaterThanOrEqual(400)
      expect(await status({ max_tokens: 50, stream: true })).toBeGreaterThanOrEqual(400)
    }
    expect(await used()).toBe(0)
  })

  // https://github.com/QuantumNous/new-api/issues/2050: a failed video was charged.
  // https://github.com/QuantumNous/new-api/issues/4211: its refund was more than it had been charged.
  it('a video that fails is charged nothing, and gives nothing back either', async () => {
    const { video, tasksEnded, used, status, vendor } = await setUp(10)
    vendor.otherwise(whole(completion('Hi', usage(3))))
    expect(await status({ max_tokens: 3 })).toBe(200)
    expect(await used()).toBe(3)
    expect((await video('a cat\n@sandbox quick=1 fail=content_policy_violation')).status).toBe(200)
    await tasksEnded()
    expect(await used()).toBe(3)
    expect(await status({ max_tokens: 8 })).toBe(429)
    vendor.otherwise(whole(completion('Hi', usage(7))))
    expect(await status({ max_tokens: 7 })).toBe(200)
  })

  // https://github.com/Wei-Shaw/sub2api/issues/6373: a task that its client never asked for was not charged.
  it('a video that nobody asks for is charged', async () => {
    const { video, tasksEnded, used } = await setUp()
    expect((await video('a cat\n@sandbox quick=1')).status).toBe(200)
    await tasksEnded()
    expect(await used()).toBe(4)
  })
})

describe('what budgets hold', () => {
  // https://github.com/BerriAI/litellm/issues/34732: calls at the same time used more than the budget.
  it('calls at the same time use no more than the budget', async () => {
    const { vendor, status, used } = await setUp(10)
    vendor.otherwise(whole(completion('Hi', usage(3))))
    const statuses = await Promise.all(Array.from({ length: 20 }, () => status({ max_tokens: 3 })))
    const admitted = statuses.filter((one) => one === 200).length
    expect(admitted).toBeGreaterThan(0)
    expect(admitted).toBeLessThanOrEqual(3)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect(await used()).toBe(admitted * 3)
  })

  // https://github.com/BerriAI/litellm/issues/27639, https://github.com/BerriAI/litellm/issues/30460
  it.each([
    ['nothing', whole(completion('Hi', usage(0)))],
    ['an error of the provider', failure(500)],
    ['an error of the request', failure(400)],
    ['a lost connection', reset()],
    ['an unreadable response', whole('not JSON')],
  ])('calls that ended with %s hold nothing: the rest of the budget can be used after them', async (_, answer) => {
    const { vendor, status, used } = await setUp(10)
    vendor.otherwise(answer)
    for (const isStream of [false, true]) await status({ max_tokens: 9, stream: isStream }).catch(() => {})
    const before = await used()
    vendor.otherwise(whole(completion('Hi', usage(1))))
    expect(await status({ max_tokens: Math.floor(10 - before) })).toBe(200)
  })
})
