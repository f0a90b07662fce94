/**
 * What rate limits cost a call: `npm run bench:limits`. Prints microseconds for the admission and settlement of one call
 * without limits, and with six limits that two processes share, in one run.
 */
import { createRateLimiter } from '../src/calls/limits/rate-limits.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import type { RateLimits } from '../src/spec/rate-limit.ts'
import type { RateLimitStore } from '../src/store/tokens/lease-store.ts'

const CALLS = 200_000
const ROUNDS = 10

/** A store that grants everything, so that only the path of a call is measured. */
const store: RateLimitStore = {
  exchange: async (_, wishes) => ({
    leases: wishes.map(({ counter, limit }) => ({ counter, held: limit, others: 0, apart: 0 })),
    processes: 2,
    apart: 0,
  }),
}

function limiterWith(rate_limits: RateLimits, models: Record<string, { rate_limits: RateLimits }>) {
  const config = {
    rate_limits,
    models,
    tokens: {},
    limits: { queue_seconds: 0, max_end_users: 1_000, when_store_fails: 'share' as const },
  }
  const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })
  return createRateLimiter({ config: () => config, shared: { store, process_id: 'bench' }, clock: systemClock, log })
}

const FULL = 1_000_000_000_000
const CASES = {
  'no limits': { limiter: limiterWith({}, {}), caller: { token_id: 'tok_a' } },
  'six limits': {
    limiter: limiterWith({ requests_per_second: FULL }, { m: { rate_limits: { tokens_per_minute: FULL } } }),
    caller: {
      token_id: 'tok_a',
      rate_limits: { requests_per_minute: FULL, tokens_per_day: FULL, concurrent_requests: FULL },
      project: { project_id: 'proj_p', rate_limits: { tokens_per_hour: FULL } },
    },
  },
}

async function measure({ limiter, caller }: (typeof CASES)['no limits'] | (typeof CASES)['six limits']) {
  const expected = { input_tokens: 100, output_tokens: 200 }
  const used = { input_tokens: 100, output_tokens: 150 }
  const call = { caller, signal: new AbortController().signal }
  const request = { call, model: { id: 'm' }, estimate: { expected, most: expected } }
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const first = await limiter.admit(request) // asks for the leases
    first?.settle(used)
    const started = performance.now()
    for (let count = 0; count < CALLS; count++) {
      const hold = limiter.admit(request)
      if (hold instanceof Promise) throw new Error('a call had to ask the store')
      hold?.settle(used)
    }
    best = Math.min(best, ((performance.now() - started) * 1000) / CALLS)
  }
  await limiter.close()
  return best
}

for (const [name, one] of Object.entries(CASES)) {
  process.stdout.write(`${name}: ${(await measure(one)).toFixed(2)} us a call\n`)
}
