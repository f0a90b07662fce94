/** Leases parts of budgets from the store: ahead of demand, in batches, one request to the store at a time. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { BudgetHold, BudgetLease, BudgetStore, LeaseOutcome } from '../../store/ledger/budget-store.ts'
import { writeAtTime } from '../../store/store-clock.ts'
import { type BudgetAccount, type BudgetAccounts, freeOf, keyOf, sliceOf } from './budget-accounts.ts'

/** Whether less than was needed is left in the store. */
type Leased = { is_exhausted: boolean }

type LeasingParts = {
  store: BudgetStore
  process_id: string
  accounts: BudgetAccounts
  /** Whether a budget that was long idle is to be forgotten. */
  isOver(account: BudgetAccount): boolean
  /** The store has told how a budget stands. */
  onAnswer(account: BudgetAccount): void
  clock: Clock
  log: Log
}

/**
 * What a dead process has leased is free again after this time: longer than a process that takes its place needs to start
 * and to replay its journal.
 */
const LEASE_MILLISECONDS = 60_000
const RENEW_MILLISECONDS = 3_000
/** Without renewal no call is admitted after this time. The rest is for the ends of calls, and for their entries. */
const USE_MILLISECONDS = 14_000
/** After a start and after a failure of the store, other processes get this time to renew leases that have expired. */
const KEEP_DEAD_MILLISECONDS = 10_000
/** How long the store is not asked again for more than it had. */
const ASK_AGAIN_MILLISECONDS = 500
/** Renewals without a call after which everything is returned, and after which the budget may be forgotten. */
const [RETURN_AFTER, FORGET_AFTER] = [2, 20]
const MAX_LEASES_PER_REQUEST = 100

type Asked = { need: number; done: PromiseWithResolvers<Leased> }

function newAsked(): Asked {
  const done = Promise.withResolvers<Leased>()
  done.promise.catch(() => {}) // nobody waits for what is leased ahead
  return { need: 0, done }
}

export function createLeasing({ store, process_id, accounts, isOver, onAnswer, clock, log }: LeasingParts) {
  const requests = new Map<BudgetAccount, Asked>()
  let isRenewalDue = false
  let running: Promise<void> | undefined
  let keeps_dead_until = clock.steady() + KEEP_DEAD_MILLISECONDS
  let cancel = () => {}
  let isClosed = false

  function request(account: BudgetAccount, need: number): Promise<Leased> {
    const asked = requests.getOrInsertComputed(account, newAsked)
    asked.need += need
    running ??= run()
    return asked.done.promise
  }

  async function run(): Promise<void> {
    await Promise.resolve() // so that the calls of this turn share one request
    while (requests.size > 0 || isRenewalDue) {
      if (requests.size > 0) await leaseMore()
      else await renew()
    }
    running = undefined
  }

  async function leaseMore(): Promise<void> {
    const batch = [...requests].slice(0, MAX_LEASES_PER_REQUEST)
    for (const [account] of batch) requests.delete(account)
    const before = clock.steady()
    const leases = batch.map(([account, { need }]): BudgetLease => {
      const isValid = before < account.valid_until
      const least = need - (isValid ? freeOf(account) : -account.held - account.unsettled)
      return { budget: account.name, limit: account.limit, need: Math.max(0, least), want: sliceOf(account) }
    })
    try {
      const outcomes = await writeAtTime(clock, (time) => store.lease(process_id, leases, leaseTimes(time)))
      for (const [index, [account, { done }]] of batch.entries()) {
        const [lease, outcome] = [leases[index], outcomes[index]]
        if (!lease || !outcome) continue
        learn(account, outcome, before)
        const is_exhausted = outcome.granted < lease.need
        if (is_exhausted) account.ask_after = clock.steady() + ASK_AGAIN_MILLISECONDS
        done.resolve({ is_exhausted })
      }
    } catch (cause) {
      noteFailure(batch.map(([account]) => account))
      for (const [, { done }] of batch) done.reject(cause)
    }
  }

  const leaseTimes = ({ now_ms, moves }: { now_ms: number; moves: number | undefined }) => ({
    now_ms,
    expires_ms: now_ms + LEASE_MILLISECONDS,
    moves,
    keeps_dead: clock.steady() < keeps_dead_until,
  })

  /** Whether a write that has failed was committed is not known. */
  function noteFailure(of: readonly BudgetAccount[]): void {
    keeps_dead_until = clock.steady() + KEEP_DEAD_MILLISECONDS
    for (const account of of) account.has_more = true
  }

  function learn(account: BudgetAccount, outcome: LeaseOutcome, asked_at: number): void {
    const { settled, credit, held, granted, lapsed } = outcome
    account.leased = (lapsed ? 0 : account.leased) + granted
    account.valid_until = asked_at + USE_MILLISECONDS
    account.settled = settled
    account.credit = credit
    account.left = Math.max(0, account.limit + credit - settled - held)
    onAnswer(account)
  }

  /** Renews what is used, and returns what is not. */
  async function renew(): Promise<void> {
    isRenewalDue = false
    const before = clock.steady()
    const kept: BudgetHold[] = []
    const alive: BudgetAccount[] = []
    for (const account of accounts.all()) {
      const isAwaited = account.waiting > 0
      account.idle = isAwaited ? 0 : account.idle + 1
      const { name, held, unsettled, spooled, idle } = account
      const isUnused = held === 0 && unsettled === 0 && !account.has_more
      if (isUnused && idle > FORGET_AFTER && isOver(account)) accounts.forget(account)
      const kept_ahead = idle > RETURN_AFTER || account.is_lowered ? 0 : 2 * sliceOf(account)
      const isReturning = !isAwaited || account.is_lowered
      const surplus = isReturning ? Math.max(0, freeOf(account) - kept_ahead) : 0
      account.is_lowered = false
      account.demand /= 2
      if (account.leased > 0 || account.has_more) alive.push(account)
      if (surplus === 0 && !account.has_more) continue
      account.leased -= surplus
      account.has_more = unsettled > spooled // an append under way may have taken its charges from the lease already
      kept.push({ account_key: name.account_key, start_ms: name.start_ms, amount: account.leased })
    }
    if (alive.length === 0) return
    try {
      const leases = await writeAtTime(clock, (time) => store.renew(process_id, kept, leaseTimes(time)))
      const renewed = new Set(leases.map(keyOf))
      for (const account of alive) {
        if (renewed.has(keyOf(account.name))) account.valid_until = before + USE_MILLISECONDS
        else loseLease(account)
      }
    } catch (cause) {
      noteFailure(alive)
      log.error('budget leases could not be renewed; will retry', { budgets: alive.length }, cause)
    }
  }

  /** This process was halted or cut off from the store for longer than its lease, and another one has ended it. */
  function loseLease(account: BudgetAccount): void {
    account.leased = 0
    account.valid_until = Number.NEGATIVE_INFINITY
  }

  function tick(): void {
    cancel = clock.after(RENEW_MILLISECONDS, () => {
      isRenewalDue = true
      running ??= run()
      if (!isClosed) tick()
    })
  }

  return {
    /** Rejects where the store cannot be asked. */
    need: request,
    /** Called after an admission that leaves little of what is leased. */
    growAhead(account: BudgetAccount): void {
      if (account.budget.soft) {
        if (account.valid_until === Number.NEGATIVE_INFINITY && !requests.has(account)) void request(account, 0)
        return
      }
      if (account.left === 0 || requests.has(account)) return
      void request(account, 0)
    },
    start: tick,
    async close(): Promise<void> {
      isClosed = true
      cancel()
      await running
      // What open calls hold, and what was charged and waits in the spool or in the journal, is held until the lease expires.
      for (const { held, unsettled } of accounts.all()) if (held > 0 || unsettled > 0) return
      try {
        await store.release(process_id)
      } catch (cause) {
        log.error('budget leases could not be returned; each ends within a minute', {}, cause)
      }
    },
  }
}
