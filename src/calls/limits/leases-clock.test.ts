/** The clock is set while processes share limits: a lease that is on its way to the store then has the time of before. */
import { afterEach, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { ENGINES } from '../../../test/kit/engines.ts'
import { createLog } from '../../kit/log.ts'
import { NO_UNITS } from '../../spec/usage.ts'
import type { Store } from '../../store/store.ts'
import { createStoreClock } from '../../store/store-clock.ts'
import type { RateLimitStore } from '../../store/tokens/lease-store.ts'
import { createRateLimiter } from './rate-limits.ts'

const LIMIT = 100
const STEP = 2 * 3_600_000

function setUp(store: Store) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const open = new Set<Promise<unknown>>()
  let admitted = 0

  /** A process; while it is `held`, its exchanges wait before they reach the store, as behind the lock of another. */
  async function start(process_id: string) {
    const { moves, move } = store.dueTimes
    const own = await createStoreClock({ clock, dueTimes: { moves, move }, suspended_ms: () => 0, log })
    const gate: { held?: PromiseWithResolvers<void>; waiting: number; stored?: Promise<unknown> } = { waiting: 0 }
    const through: RateLimitStore = {
      async exchange(...wanted) {
        const { held } = gate
        if (held) {
          gate.waiting++
          await held.promise
        }
        const exchanged = store.rateLimits.exchange(...wanted)
        gate.stored = exchanged.catch(() => {})
        return exchanged
      },
    }
    const config = {
      rate_limits: { requests_per_hour: LIMIT },
      models: {},
      tokens: {},
      limits: { queue_seconds: 0, max_end_users: 100, when_store_fails: 'refuse' as const },
    }
    const limiter = createRateLimiter({ config: () => config, clock: own, log, shared: { store: through, process_id } })
    async function call(): Promise<void> {
      const call = { caller: { token_id: 'tok_a' }, signal: new AbortController().signal }
      const estimate = { expected: NO_UNITS, most: NO_UNITS }
      try {
        const hold = await limiter.admit({ call, model: { id: 'm' }, estimate })
        admitted++
        hold?.settle(NO_UNITS)
      } catch {
        // refused
      }
    }
    return {
      gate,
      own,
      call() {
        const called = call()
        open.add(called)
        void called.then(() => open.delete(called))
        return called
      },
    }
  }
  return { clock, start, admitted: () => admitted }
}

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

for (const engine of ENGINES) {
  describe(`a limit that processes share on ${engine.name}`, () => {
    afterEach(() => engine.cleanup())

    it.each([STEP, -STEP])('is not exceeded when the clock is set by %d ms while a lease is stored', async (step) => {
      const { clock, start, admitted } = setUp(await engine.open())
      const [one, other] = [await start('one'), await start('other')]
      for (let count = 0; count < LIMIT / 2; count++) await one.call()
      expect(admitted()).toBe(LIMIT / 2)
      one.gate.held = Promise.withResolvers()
      clock.advance(1_000) // it reports what it has used, with the time of before
      while (one.gate.waiting === 0) await turns(1)
      clock.jump(step)
      await other.own.align?.()
      one.gate.held.resolve()
      delete one.gate.held
      await turns(1)
      await one.gate.stored
      for (let second = 0; second < 8; second++) {
        for (let count = 0; count < LIMIT; count++) await other.call()
        clock.advance(500)
        await turns(20)
      }
      expect(admitted()).toBeLessThanOrEqual(LIMIT)
      // And neither is lost: what is left can be used, after the move as well.
      expect(admitted()).toBeGreaterThan(LIMIT * 0.95)
    })
  })
}
