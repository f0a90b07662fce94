import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLimiter, createLimiters, type Release } from './concurrency.ts'

type Limits = Parameters<typeof createLimiter>[1]

function setUp(limits: Limits) {
  const clock = manualClock()
  const limiter = createLimiter('acme', limits, clock)
  const order: string[] = []
  const releases: Release[] = []
  /** A call of a token, which notes when it may be sent. */
  function call(token_id: string, signal = new AbortController().signal, at_most_ms = Number.POSITIVE_INFINITY) {
    return Promise.try(async () => {
      releases.push(await limiter.enter({ token_id, signal, at_most_ms }))
      order.push(token_id)
    }).catch((error: unknown) => error)
  }
  return { limiter, clock, call, order, releases }
}

/** Lets everything run that waits for no clock. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

describe('a fixed limit', () => {
  test('lets so many calls through, and the next when one has ended', async () => {
    const { limiter, call, order, releases } = setUp({ max: 2 })
    for (const token of ['a', 'b', 'c']) void call(token)
    await settled()
    expect([order, limiter.isFree(), limiter.waiting()]).toEqual([['a', 'b'], false, 1])
    releases[0]?.()
    await settled()
    expect([order, limiter.waiting()]).toEqual([['a', 'b', 'c'], 0])
    releases[1]?.()
    releases[2]?.()
    expect(limiter.isFree()).toBe(true)
  })

  test('returns a function at once where there is room', () => {
    const { limiter } = setUp({ max: 1 })
    const { signal } = new AbortController()
    expect(limiter.enter({ token_id: 'a', signal, at_most_ms: 1_000 })).toBeFunction()
  })

  test('counts a call that ends twice once', async () => {
    const { limiter, call, releases } = setUp({ max: 1 })
    await call('a')
    releases[0]?.()
    releases[0]?.()
    void call('b')
    void call('c')
    await settled()
    expect(limiter.waiting()).toBe(1)
  })

  test('lets the tokens take turns', async () => {
    const { call, order, releases } = setUp({ max: 1 })
    for (const token of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) void call(token)
    for (let i = 0; i < 6; i++) {
      await settled()
      releases[i]?.()
    }
    await settled()
    expect(order.join('')).toBe('aabcaba')
  })

  test('accepts as many waiting calls as configured, and refuses one more', async () => {
    const { call, limiter } = setUp({ max: 1, queue: { length: 2 } })
    for (let i = 0; i < 3; i++) void call('a')
    await settled()
    expect(limiter.waiting()).toBe(2)
    expect(await call('b')).toMatchObject({
      code: 'rate_limit_exceeded',
      detail: { retry_after: 1, accepted: 'no' },
      message: 'The provider "acme" has as many open calls as it may, and 2 more wait.',
    })
  })

  test('refuses a call that has waited too long, and not before', async () => {
    const { call, clock, limiter } = setUp({ max: 1, queue: { seconds: 5 } })
    await call('a')
    const late = call('b')
    clock.advance(4_999)
    expect(limiter.waiting()).toBe(1)
    clock.advance(1)
    expect(await late).toMatchObject({ code: 'rate_limit_exceeded', detail: { retry_after: 5 } })
    expect(limiter.waiting()).toBe(0)
  })

  test('refuses a call at its own deadline', async () => {
    const { call, clock } = setUp({ max: 1, queue: { seconds: 5 } })
    await call('a')
    const late = call('b', undefined, 2_000)
    clock.advance(2_000)
    expect(await late).toMatchObject({ code: 'rate_limit_exceeded' })
  })

  test('forgets a call whose client leaves', async () => {
    const { call, limiter, releases, order } = setUp({ max: 1 })
    const client = new AbortController()
    await call('a')
    const gone = call('b', client.signal)
    void call('c')
    await settled()
    client.abort(new Error('It left.'))
    expect(await gone).toMatchObject({ message: 'It left.' })
    expect(limiter.waiting()).toBe(1)
    releases[0]?.()
    await settled()
    expect(order).toEqual(['a', 'c'])
    expect(await call('d', client.signal)).toMatchObject({ message: 'It left.' })
  })
})

describe('the adaptive limit', () => {
  /** As many calls at once as it allows, each answered after the time that the provider takes at that load. */
  async function run(rounds: number, latency: (open: number) => number | 'failed') {
    const { limiter, call, releases } = setUp({ max: 'adaptive', queue: { length: 0 } })
    for (let round = 0; round < rounds; round++) {
      releases.length = 0
      const open = limiter.limit()
      await Promise.all(Array.from({ length: open }, () => call('a')))
      for (const release of releases.splice(0)) release(latency(open))
    }
    return limiter.limit()
  }

  test('rises while the provider does not slow down', async () => {
    expect(await run(40, () => 100)).toBeGreaterThan(60)
  })

  test('stays near the number of calls that a provider serves without queueing', async () => {
    const capacity = 50
    const found = await run(300, (open) => 100 * Math.max(1, open / capacity))
    expect(found).toBeGreaterThan(capacity / 2)
    expect(found).toBeLessThan(capacity * 3)
  })

  test('recovers where the provider has become slower for good', async () => {
    let calls = 0
    const found = await run(1_000, () => (calls++ < 2_000 ? 100 : 1_000))
    expect(found).toBeGreaterThan(20)
  })

  test('falls with errors, never below two', async () => {
    expect(await run(40, () => 'failed')).toBe(2)
  })
})

describe('the limits of providers', () => {
  const signal = new AbortController().signal
  const enter = { token_id: 'a', signal, at_most_ms: 1_000 }
  const targetOf = (id: string, callLimits: Limits) => ({ provider: { id, kind: 'test', callLimits }, model: 'm' })

  test('are those of each provider, where two have one settings object', () => {
    const limiterOf = createLimiters(manualClock())
    const limits = { max: 1 }
    limiterOf(targetOf('a', limits))?.enter(enter)
    expect(limiterOf(targetOf('a', limits))?.isFree()).toBe(false)
    expect(limiterOf(targetOf('b', limits))?.isFree()).toBe(true)
  })

  test('count the open calls after a reload', () => {
    const limiterOf = createLimiters(manualClock())
    limiterOf(targetOf('a', { max: 1 }))?.enter(enter)
    expect(limiterOf(targetOf('a', { max: 1 }))?.isFree()).toBe(false)
    expect(limiterOf(targetOf('a', { max: 2 }))?.isFree()).toBe(true)
  })
})
