/** Many scopes that come and go, on every engine: none is counted twice, and none is refused that is within its limits. */
import { afterAll, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { ENGINES } from '../../../test/kit/engines.ts'
import { createLog } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { NO_UNITS } from '../../spec/usage.ts'
import type { Store } from '../../store/store.ts'
import type { RateLimitStore } from '../../store/tokens/lease-store.ts'
import { createRateLimiter } from './rate-limits.ts'

const tokens = (input_tokens: number) => ({ ...NO_UNITS, input_tokens })

/** A process that counts at most half as many end users of a token apart. */
function gateway(store: Store, max_end_users = 4) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const failed: unknown[] = []
  const open = new Set<Promise<unknown>>()
  let exchanges = 0
  const through: RateLimitStore = {
    exchange(...wanted) {
      exchanges++
      const exchange = store.rateLimits.exchange(...wanted)
      open.add(exchange)
      exchange.catch((cause) => failed.push(cause)).finally(() => open.delete(exchange))
      return exchange
    },
  }
  const limits = { queue_seconds: 0, max_end_users, when_store_fails: 'share' as const }
  const config = { models: {}, tokens: { end_users: { rate_limits: { tokens_per_minute: 100 } } }, limits }
  const limiter = createRateLimiter({ config: () => config, clock, log, shared: { store: through, process_id: 'p' } })
  return {
    failed,
    exchanges: () => exchanges,
    async call(end_user: string, amount: number) {
      const call = { caller: { token_id: 'tok_a' }, end_user, signal: new AbortController().signal }
      return limiter.admit({ call, model: { id: 'm' }, estimate: { expected: tokens(amount), most: tokens(amount) } })
    },
    async pass(seconds: number) {
      for (let second = 0; second < seconds; second++) {
        clock.advance(1_000)
        do {
          await Promise.allSettled(open)
          await new Promise<void>((resolve) => setImmediate(resolve))
        } while (open.size > 0)
      }
    },
  }
}

describe.each(ENGINES)('end users that have never called before on $name', ({ open, cleanup }) => {
  afterAll(cleanup)

  it('are all admitted, though they come at once', async () => {
    const store = await open()
    const { call, pass } = gateway(store, 200)
    const calls = Promise.all(Array.from({ length: 100 }, (_, user) => call(`u${user}`, 50)))
    expect(await calls).toHaveLength(100)
    for (const hold of await calls) hold?.settle(tokens(50))
    await pass(3)
    await store.close()
  })

  it('cost nothing more once they are silent, also after amounts that are no whole numbers', async () => {
    const store = await open()
    const { call, pass, exchanges } = gateway(store)
    const holds = await Promise.all([0.1, 0.2, 0.3].map((amount) => call('u0', amount)))
    for (const hold of holds) hold?.settle(tokens(0.3))
    await pass(3)
    const before = exchanges()
    await pass(10)
    expect(exchanges()).toBe(before)
    await store.close()
  })
})

describe.each(ENGINES)('an end user that may be forgotten on $name', ({ open, cleanup }) => {
  afterAll(cleanup)

  it('is counted once, though a call of it lasts longer than its window', async () => {
    const store = await open()
    const { failed, call, pass } = gateway(store)
    const long = await call('u0', 1)
    await pass(62)
    for (const name of ['u1', 'u2']) (await call(name, 1))?.settle(tokens(1))
    await pass(62)
    ;(await call('u0', 1))?.settle(tokens(1))
    long?.settle(tokens(100))
    await pass(5)
    const refused = await call('u0', 50).catch((thrown) => thrown)
    expect(refused).toBeInstanceOf(GatewayError)
    await pass(120)
    ;(await call('u0', 50))?.settle(tokens(1))
    expect(failed).toEqual([])
    await store.close()
  })

  it('is reported once, though it comes again before what it held was given back', async () => {
    const store = await open()
    const { failed, call, pass } = gateway(store)
    for (const names of [
      ['u0', 'u1'],
      ['u2', 'u0'],
    ]) {
      const holds = await Promise.all(names.map((name) => call(name, 1)))
      for (const hold of holds) hold?.cancel()
    }
    await pass(3)
    expect(failed).toEqual([])
    await store.close()
  })
})
