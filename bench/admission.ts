/**
 * What admission costs a call: `npm run bench:admission`. Prints microseconds of the stages admit and settle for one call,
 * without limits and budgets, and with six rate limits and three budgets, in one run; and how often the store was asked.
 */
import { createAdmission, releaseHolds } from '../src/calls/admission.ts'
import { createBudgetGate } from '../src/calls/budget-gate.ts'
import { createBudgets } from '../src/calls/budgets/budgets.ts'
import type { CallRecord, Gate } from '../src/calls/call.ts'
import { createRateLimiter } from '../src/calls/limits/rate-limits.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { compiledPrices } from '../src/models/prices.ts'
import type { BudgetStore, Charged } from '../src/store/ledger/budget-store.ts'
import type { RateLimitStore } from '../src/store/tokens/lease-store.ts'

const CALLS = 100_000
const ROUNDS = 10
/** As many entries as the ledger appends together at most. */
const ENTRIES = 500
const FULL = 1_000_000_000_000

const clock = systemClock
const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
let asked = 0

/** Stores that grant everything, so that only the path of a call is measured. */
const limitStore: RateLimitStore = {
  async exchange(_, wishes) {
    asked++
    return {
      leases: wishes.map(({ counter, limit }) => ({ counter, held: limit, others: 0, apart: 0 })),
      processes: 2,
      apart: 0,
    }
  },
}
const budgetStore: BudgetStore = {
  async lease(_, leases) {
    asked++
    return leases.map(({ limit }) => ({ settled: 0, credit: 0, held: limit, granted: limit, lapsed: true }))
  },
  async renew() {
    asked++
    return []
  },
  release: async () => {},
  list: async () => [],
  notify: async () => false,
}

const limiter = createRateLimiter({
  config: () => ({
    rate_limits: { requests_per_second: FULL },
    models: { m: { rate_limits: { tokens_per_minute: FULL } } },
    tokens: {},
    limits: { queue_seconds: 0, max_end_users: 1_000, when_store_fails: 'share' as const },
  }),
  shared: { store: limitStore, process_id: 'bench' },
  clock,
  log,
})
const settings = { budgets: [{ amount: 9_000_000, window: 'total' as const }], tokens: {} }
const budgets = createBudgets({
  store: budgetStore,
  process_id: 'bench',
  settings: () => settings,
  currency: () => 'USD',
  findOwner: async () => undefined,
  alertsFor: () => [],
  onThreshold: () => {},
  onRefusing: () => {},
  clock,
  log,
})

const month = [{ amount: 9_000_000, window: 'month' as const }]
const caller = {
  token_id: 'tok_a',
  name: 'bench',
  models: ['*'],
  families: null,
  rate_limits: { requests_per_minute: FULL, tokens_per_day: FULL, concurrent_requests: FULL },
  budgets: month,
  project: { project_id: 'proj_p', name: 'p', rate_limits: { tokens_per_hour: FULL }, budgets: month },
}
const { prices } = compiledPrices({ prices: { input: 2.5, output: 10 } }, { currency: 'USD', exchange_rates: {} })
const model = { id: 'm', prices, targets: [] }
const expected = { input_tokens: 100, output_tokens: 200 }
const used = { input_tokens: 100, output_tokens: 150 }
const estimate = { expected, most: expected }
const family = { estimate: () => estimate }
const AMOUNT = 1_750_000
const entries = [{ amount: AMOUNT }]

async function measure(gates: readonly Gate[]): Promise<{ us: number; asked: number }> {
  const admission = createAdmission()
  const { signal } = new AbortController()
  let charges: Charged[] = []
  async function callOnce(): Promise<void> {
    const call = newCall()
    await admission.admit(family, call)
    releaseHolds(call.record, used)
  }
  function newCall() {
    const call = { request_id: 'r', caller, signal, arrived: 0 }
    const record = { call, family: 'chatcompat', at: 0, attempts: [], is_stream: false, error: undefined }
    // As much of a call and a model as the gates read.
    return {
      model,
      gates,
      work: undefined,
      metering: { current: {} },
      record: { ...record, entries },
    } as unknown as Parameters<typeof admission.admit>[1] & { record: CallRecord }
  }
  const [now, calls] = [clock.now(), Array.from({ length: CALLS }, newCall)]
  let best = Number.POSITIVE_INFINITY
  await callOnce() // asks for the leases
  const before = asked
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now()
    for (const call of calls) {
      if (admission.admit(family, call)) throw new Error('a call had to ask the store')
      releaseHolds(call.record, used)
      if (gates.length === 0) continue
      charges.push({
        kind: 'call',
        call_id: 'r',
        token_id: 'tok_a',
        project_id: 'proj_p',
        end_user: null,
        at_ms: now,
        amount: AMOUNT,
      })
      if (charges.length < ENTRIES) continue
      budgets.appended(charges, [])
      charges = []
    }
    best = Math.min(best, ((performance.now() - started) * 1000) / CALLS)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { us: best, asked: asked - before }
}

const print = (name: string, { us, asked }: { us: number; asked: number }) =>
  process.stdout.write(
    `${name}: ${us.toFixed(2)} us a call; ${asked} requests to the store in ${CALLS * ROUNDS} calls\n`,
  )

print('no limits', await measure([]))
print('six limits', await measure([limiter]))
const budgetGate = createBudgetGate({
  budgets,
  config: () => ({ ...settings, ledger: { unknown_price: 'allow' } }),
  clock,
})
print('three budgets', await measure([budgetGate]))
print('both', await measure([limiter, budgetGate]))
await limiter.close()
