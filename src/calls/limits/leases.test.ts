/** Several processes on one store share limits: simulated in virtual time, on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { Clock } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { GatewayError } from '../../spec/error.ts'
import type { RateLimits } from '../../spec/rate-limit.ts'
import { NO_UNITS } from '../../spec/usage.ts'
import type { Store } from '../../store/store.ts'
import { LEASE_LAPSES_MS, type RateLimitStore } from '../../store/tokens/lease-store.ts'
import type { WhenStoreFails } from './leases.ts'
import { createRateLimiter } from './rate-limits.ts'

type Admitted = { at: number; amount: number }

/** The most that any window of this length holds. */
function most(calls: Admitted[], length: number): number {
  let [first, sum, highest] = [0, 0, 0]
  for (const call of calls) {
    sum += call.amount
    for (let old = calls[first]; old && old.at + length <= call.at; old = calls[++first]) sum -= old.amount
    highest = Math.max(highest, sum)
  }
  return highest
}

/** A generator of numbers from 0 to 1 that repeats with its seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** Lets everything that was begun end: exchanges with the store take real time. */
async function settle(open: ReadonlySet<Promise<unknown>>): Promise<void> {
  do {
    await Promise.allSettled([...open])
    await new Promise<void>((resolve) => setImmediate(resolve))
  } while (open.size > 0)
}

function cluster(store: Store, rate_limits: RateLimits, when_store_fails: WhenStoreFails = 'share') {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const open = new Set<Promise<unknown>>()
  const admitted: Admitted[] = []
  let exchanges = 0
  const fault: { isDown: boolean; slow?: Promise<void> } = { isDown: false }
  function note<T>(promise: Promise<T>, own?: Set<Promise<unknown>>): Promise<T> {
    open.add(promise)
    own?.add(promise)
    const end = () => {
      open.delete(promise)
      own?.delete(promise)
    }
    promise.then(end, end)
    return promise
  }

  /** What one process is: killing it ends its timers and its writes. */
  function start() {
    const state = { isDead: false }
    const own_open = new Set<Promise<unknown>>()
    const own: Clock = {
      now: clock.now,
      steady: clock.steady,
      after: (ms, work) => clock.after(ms, () => void (state.isDead || work())),
    }
    const through: RateLimitStore = {
      exchange(...wanted) {
        exchanges++
        if (state.isDead) return new Promise(() => {})
        if (fault.isDown) return Promise.reject(new GatewayError('storage_unavailable', 'down'))
        return note(
          fault.slow
            ? fault.slow.then(() => store.rateLimits.exchange(...wanted))
            : store.rateLimits.exchange(...wanted),
        )
      },
    }
    const config = {
      rate_limits,
      models: { rare: { rate_limits: { requests_per_minute: 1_000 } } },
      tokens: {},
      limits: { queue_seconds: 0, max_end_users: 100, when_store_fails },
    }
    const limiter = createRateLimiter({
      config: () => config,
      clock: own,
      log,
      shared: { store: through, process_id: randomAlphanumerics(16) },
    })
    /** Whether a call was admitted; its hold. */
    async function call(amount = 1, model = 'm') {
      const expected = { ...NO_UNITS, input_tokens: amount }
      const request = {
        call: { caller: { token_id: 'tok_a' }, signal: new AbortController().signal },
        model: { id: model },
        estimate: { expected, most: expected },
      }
      try {
        const hold = await limiter.admit(request)
        admitted.push({ at: clock.steady(), amount })
        return hold
      } catch (thrown) {
        if (thrown instanceof GatewayError) return undefined
        throw thrown
      }
    }
    return {
      call: (amount?: number, model?: string) => note(call(amount, model), own_open),
      close: () => limiter.close(),
      kill() {
        state.isDead = true
        for (const one of own_open) open.delete(one) // nobody waits for what it had begun
      },
    }
  }

  return {
    clock,
    start,
    admitted,
    fault,
    settle: () => settle(open),
    exchanges: () => exchanges,
    sum: () => admitted.reduce((sum, { amount }) => sum + amount, 0),
  }
}

for (const { name, open, cleanup } of ENGINES) {
  describe(`limits that several processes share on ${name}`, () => {
    afterEach(cleanup)

    it.each([
      ['requests_per_second', 1_000, 60],
      ['requests_per_minute', 60_000, 600],
      ['tokens_per_minute', 60_000, 50_000],
    ] as const)('never exceed %s, though processes are killed and started', async (key, length, limit) => {
      const set = cluster(await open(), { [key]: limit })
      const random = randomFrom(limit)
      const amount = () => (key === 'tokens_per_minute' ? 1 + Math.floor(random() * 100) : 1)
      let processes = [set.start(), set.start(), set.start(), set.start()]
      for (let step = 0; step < 600; step++) {
        for (let count = 0; count < 6; count++) void processes[Math.floor(random() * 4)]?.call(amount())
        if (random() < 0.02) {
          const index = Math.floor(random() * 4)
          processes[index]?.kill()
          processes = processes.with(index, set.start())
        }
        await set.settle()
        set.clock.advance(Math.floor(random() * 250))
        await set.settle()
      }
      expect(most(set.admitted, length)).toBeLessThanOrEqual(limit)
      expect(set.sum()).toBeGreaterThan(limit)
    })

    it('exceed the limit of a day by at most 1 %, though processes are killed', async () => {
      const limit = 20_000
      const set = cluster(await open(), { tokens_per_day: limit })
      const random = randomFrom(7)
      let processes = [set.start(), set.start(), set.start(), set.start()]
      for (let step = 0; step < 400; step++) {
        void processes[Math.floor(random() * 4)]?.call(1 + Math.floor(random() * 150))
        if (step % 100 === 99) {
          const index = Math.floor(random() * 4)
          processes[index]?.kill()
          processes = processes.with(index, set.start())
        }
        await set.settle()
        set.clock.advance(500)
        await set.settle()
      }
      set.clock.advance(LEASE_LAPSES_MS)
      for (let count = 0; count < 50; count++) await processes[count % 4]?.call(100)
      expect(set.sum()).toBeLessThanOrEqual(limit * 1.01)
      expect(set.sum()).toBeGreaterThan(limit * 0.95)
    })

    it('can be used up by one process, when the others are idle', async () => {
      const set = cluster(await open(), { requests_per_minute: 1_000 })
      const [one, other] = [set.start(), set.start()]
      await other.call()
      for (let second = 0; second < 4; second++) {
        set.clock.advance(1_000)
        await set.settle()
      }
      for (let count = 0; count < 1_100; count++) await one.call()
      expect(set.sum()).toBe(1_000)
    })

    it('survive a restart, and a kill', async () => {
      const store = await open()
      const set = cluster(store, { requests_per_day: 100 })
      const first = set.start()
      for (let count = 0; count < 60; count++) await first.call()
      await first.close()
      const second = set.start()
      for (let count = 0; count < 30; count++) await second.call()
      set.clock.advance(1_000)
      await set.settle()
      second.kill()
      set.clock.advance(LEASE_LAPSES_MS)
      const third = set.start()
      for (let count = 0; count < 50; count++) await third.call()
      expect(set.sum()).toBe(100)
      set.clock.advance(90_000_000)
      for (let count = 0; count < 150; count++) await third.call()
      expect(set.sum()).toBe(200)
    })

    it('count open calls of all processes, and forget those of one that was killed', async () => {
      const set = cluster(await open(), { concurrent_requests: 4 })
      const [one, other] = [set.start(), set.start()]
      const holds = [await one.call(), await one.call(), await other.call(), await other.call()]
      expect(holds.every((hold) => hold !== undefined)).toBe(true)
      expect(await one.call()).toBeUndefined()
      for (let second = 0; second < 20; second++) {
        set.clock.advance(1_000)
        await set.settle()
      }
      expect(await other.call()).toBeUndefined()
      one.kill()
      set.clock.advance(LEASE_LAPSES_MS + 250)
      await set.settle()
      expect(await other.call()).toBeDefined()
      expect(await other.call()).toBeDefined()
      expect(await other.call()).toBeUndefined()
    })

    it('need no exchange with the store in the path of a call in the steady state, and none when idle', async () => {
      const set = cluster(await open(), { requests_per_minute: 100_000 })
      const one = set.start()
      for (let step = 0; step < 100; step++) {
        for (let count = 0; count < 10; count++) await one.call()
        set.clock.advance(100)
        await set.settle()
      }
      expect(set.sum()).toBe(1_000)
      expect(set.exchanges()).toBeLessThanOrEqual(13)
      const before = set.exchanges()
      for (let second = 0; second < 100; second++) {
        set.clock.advance(1_000)
        await set.settle()
      }
      expect(set.exchanges() - before).toBeLessThanOrEqual(2)
    })

    it('refuse no call within them because the store is slow', async () => {
      const set = cluster(await open(), { requests_per_minute: 10 })
      const one = set.start()
      for (const wait_ms of [600, 1_400]) {
        const { promise, resolve } = Promise.withResolvers<void>()
        set.fault.slow = promise
        const called = one.call()
        // In steps, since a call that asks again starts another time limit.
        for (let waited = 0; waited < wait_ms; waited += 50) {
          set.clock.advance(50)
          for (let turn = 0; turn < 5; turn++) await new Promise<void>((done) => setImmediate(done))
        }
        resolve()
        expect(await called).toBeDefined()
        delete set.fault.slow
        await set.settle()
        set.clock.advance(LEASE_LAPSES_MS)
        await set.settle()
      }
    })

    it('refuse none of the first calls of a model, though another limit is held already', async () => {
      const set = cluster(await open(), { requests_per_second: 1_000 })
      const one = set.start()
      expect(await one.call()).toBeDefined()
      const holds = await Promise.all(Array.from({ length: 50 }, () => one.call(1, 'rare')))
      expect(holds.filter((hold) => hold === undefined)).toHaveLength(0)
    })

    it('follow the store when its clock is set', async () => {
      const store = await open()
      const set = cluster(store, { requests_per_minute: 50 })
      const [one, other] = [set.start(), set.start()]
      for (let step = 0; step < 60; step++) {
        await one.call()
        await other.call()
        if (step === 20) {
          set.clock.jump(3_600_000)
          await store.dueTimes.move(3_600_000, await store.dueTimes.moves())
        }
        set.clock.advance(500)
        await set.settle()
      }
      expect(most(set.admitted, 60_000)).toBeLessThanOrEqual(50)
      expect(set.sum()).toBe(50)
    })
  })
}

describe('limits while the store cannot be reached', () => {
  const sqlite = ENGINES[0]
  if (!sqlite) throw new Error('no engine')
  afterEach(() => sqlite.cleanup())

  it.each([
    ['share', 48],
    ['refuse', 0],
    ['allow', 98],
  ] as const)(
    '%s: a gateway of two admits %d more, of a limit of 100 of which it has used 2',
    async (policy, expected) => {
      const set = cluster(await sqlite.open(), { requests_per_day: 100 }, policy)
      const [one, other] = [set.start(), set.start()]
      await one.call()
      await other.call()
      await one.call()
      for (let second = 0; second < 3; second++) {
        set.clock.advance(1_000)
        await set.settle()
      }
      const before = set.sum()
      set.fault.isDown = true
      set.clock.advance(5_000)
      for (let count = 0; count < 200; count++) await one.call()
      const here = set.sum() - before
      expect(here).toBe(expected)
      set.fault.isDown = false
      set.clock.advance(1_000)
      await set.settle()
      for (let count = 0; count < 5; count++) await other.call()
      expect(set.sum() - before - here).toBe(policy === 'allow' ? 0 : 5)
    },
  )
})
