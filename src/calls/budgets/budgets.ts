/**
 * Budgets in this process. A process leases a part of each budget from the store and admits calls within it: what its
 * open calls may cost, with what was charged and is not yet appended to the ledger, is never more than it has leased.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Alert } from '../../store/admin/alert-store.ts'
import type { BudgetChange, BudgetStore, Charged, TaskBudget } from '../../store/ledger/budget-store.ts'
import { isOfCall } from '../../store/ledger/ledger-append.ts'
import {
  type BudgetAccount,
  type BudgetOwner,
  type BudgetSettings,
  createBudgetAccounts,
  freeOf,
  isBeyond,
  isOfEndUser,
  type RefusalReason,
  sliceOf,
  thresholdReached,
} from './budget-accounts.ts'
import { createLeasing } from './budget-leasing.ts'
import type { FindOwner } from './budget-owners.ts'
import { refusalBy, refusalReason } from './budget-refusal.ts'
import { createUpkeep } from './budget-upkeep.ts'

export type BudgetCallHold = {
  /** Another model takes over, and the call may cost this. Throws `insufficient_quota`, and then holds what it held. */
  raise(most: number): void
  /** Ends the hold. `charged`: what the ledger will append instead, in nano-units. */
  settle(charged: number): void
  /** What a task is to hold in the store instead of this process; `moved` once that is stored. */
  forTask(): TaskBudget
  moved(): void
}

/** `refused`: what a call might have cost that is refused, as far as it is not charged; 0: the charges alone reach it. */
export type ReachedThreshold = { account: BudgetAccount; threshold: number; refused: number }

/** A call was refused that might have cost `most`. */
export type RefusedCall = { account: BudgetAccount; most: number; reason: RefusalReason }

export type Budgets = {
  /** Whether calls of the owner, or of one of its end users, count towards any budget. */
  mayApply(owner: BudgetOwner): boolean
  /**
   * Holds the most that a call can cost, in nano-units. Undefined where no budget applies; a promise where the store has
   * to be asked. Throws `insufficient_quota`. What the call is charged must count at `now_ms` (unix milliseconds), however
   * long it takes: in the windows that hold it.
   */
  admit(
    owner: BudgetOwner,
    end_user: string | undefined,
    most: number,
    now_ms: number,
  ): BudgetCallHold | undefined | Promise<BudgetCallHold>
  /** What is known of the budgets that calls have counted towards. */
  accounts(): Iterable<BudgetAccount>
  /** These charges of this process are in the ledger, and these budgets have changed. */
  appended(charges: readonly Charged[], changes: readonly BudgetChange[]): void
  /** These charges of this process wait on the local disk, and are held until then. */
  spooled(charges: readonly Charged[]): void
  /** All that were spooled are in the ledger. */
  replayed(): void
  start(): void
  /** Returns all leases; to be called after the last append. */
  close(): Promise<void>
}

type BudgetsParts = {
  store: BudgetStore
  /** Names the leases; the ledger appends under the same name. */
  process_id: string
  /** Another object after a reload. */
  settings(): BudgetSettings
  /** Changes with the settings. Absent: these are asked for at each call. */
  revision?: { readonly current: number } | undefined
  currency(): string
  findOwner: FindOwner
  /** The alert that is stored with a reached threshold; undefined: none. May be called several times for one of them. */
  alertsFor(reached: ReachedThreshold): readonly Alert[]
  /** Called once for each budget, window and threshold, in one of all processes. */
  onThreshold(reached: ReachedThreshold): void
  /** Called for a budget that refuses calls, but of an end user: once an hour by each process and for each reason. */
  onRefusing(refused: RefusedCall): void
  onRefused?: ((scope: string, limit: string) => void) | undefined
  clock: Clock
  log: Log
}

/** How long the operator is not told again of a budget that refuses calls: that they are told once a day is in the store. */
const QUIET_MILLISECONDS = 3_600_000
/** Calls that are admitted together may take from each other what was leased for them. */
const MAX_ROUNDS = 4

export function createBudgets(parts: BudgetsParts): Budgets {
  const { store, process_id, currency, alertsFor, onThreshold, clock, log } = parts
  const accounts = createBudgetAccounts(parts)
  let hasSpooled = false
  const upkeep = createUpkeep({ ...parts, accounts })
  const leasing = createLeasing({ ...parts, accounts, isOver: upkeep.isOver, onAnswer: (account) => notify(account) })

  const covers = (account: BudgetAccount, most: number, now: number): boolean =>
    account.budget.soft === true ||
    most === 0 ||
    (now < account.valid_until && most <= freeOf(account) && !isBeyond(account, most))

  function hold(of: readonly BudgetAccount[], most: number): BudgetCallHold {
    for (const account of of) {
      account.held += most
      account.demand += most
      account.idle = 0
      if (account.budget.soft || freeOf(account) * 4 < sliceOf(account)) leasing.growAhead(account)
    }
    return new CallHold(of, most)
  }

  /** One object for each call, without closures. */
  class CallHold implements BudgetCallHold {
    readonly #of: readonly BudgetAccount[]
    #held: number
    #in_store = 0

    constructor(of: readonly BudgetAccount[], held: number) {
      this.#of = of
      this.#held = held
    }

    raise(most: number): void {
      const more = most - this.#held
      if (more <= 0) return
      const now = clock.steady()
      const short = this.#of.find((account) => !covers(account, more, now))
      if (short) throw refusal(short, most)
      for (const account of this.#of) account.held += more
      this.#held = most
    }

    settle(charged: number): void {
      for (const account of this.#of) {
        account.held -= this.#held - this.#in_store
        account.unsettled += charged
      }
      this.#held = this.#in_store
    }

    forTask(): TaskBudget {
      const amount = this.#held
      const holds = this.#of.map(({ name: { account_key, start_ms } }) => ({ account_key, start_ms, amount }))
      return { process_id, holds }
    }

    moved(): void {
      for (const account of this.#of) {
        account.held -= this.#held
        account.leased -= this.#held
      }
      this.#in_store = this.#held
    }
  }

  async function ask(of: readonly BudgetAccount[], most: number): Promise<BudgetCallHold> {
    for (const account of of) account.waiting++
    try {
      return await askRepeatedly(of, most)
    } finally {
      for (const account of of) account.waiting--
    }
  }

  async function askRepeatedly(of: readonly BudgetAccount[], most: number): Promise<BudgetCallHold> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const outcomes = await Promise.all(
        of.map((account) => (covers(account, most, clock.steady()) ? undefined : leasing.need(account, most))),
      )
      const short = of.findIndex((account) => !covers(account, most, clock.steady()))
      const account = of[short]
      if (!account) return hold(of, most)
      if (outcomes[short]?.is_exhausted || isBeyond(account, most)) throw refusal(account, most)
    }
    throw new GatewayError('rate_limit_exceeded', 'Too many calls take from the same budget at once; try again.', {
      retry_after: 1,
    })
  }

  function refusal(account: BudgetAccount, most: number): GatewayError {
    const now = clock.steady()
    const reason = refusalReason(account, most)
    account.refused_at = now
    parts.onRefused?.(scopeOf(account), `budget_${account.budget.window}`)
    if (now >= account.quiet_until[reason] && !isOfEndUser(account.name)) {
      account.quiet_until[reason] = now + QUIET_MILLISECONDS
      parts.onRefusing({ account, most, reason })
    }
    // By the ledger alone: a charge that is just being appended may be in `settled` and still in `unsettled`. A call that the
    // whole budget could not pay says nothing about what is left of it.
    const whole = account.limit + account.credit
    if (most <= whole && whole - account.settled < most) notify(account, most)
    return refusalBy(account, most, currency())
  }

  /** `refused`: what a call may cost that is refused; 0: none is. */
  function notify(account: BudgetAccount, refused = 0): void {
    const threshold = thresholdReached(account, refused > 0)
    if (threshold <= account.notified) return
    const before = account.notified
    account.notified = threshold
    const reached = { account, threshold, refused }
    const alerts = alertsFor(reached)
    store.notify(account.name, { threshold, alerts }).then(
      (isMine) => {
        if (isMine) onThreshold(reached)
      },
      (cause) => {
        account.notified = before // the next answer of the store tries again
        log.error('a budget threshold could not be stored; will retry', { budget: account.name.account_key }, cause)
      },
    )
  }

  function forEachCharge(charges: readonly Charged[], work: (account: BudgetAccount, amount: number) => void): void {
    for (const charge of charges) {
      const { amount } = charge
      if (!amount || !isOfCall(charge)) continue
      accounts.eachCharged(charge, work)
    }
  }

  return {
    mayApply: accounts.mayApply,
    admit(owner, end_user, most, now_ms) {
      const of = accounts.of(owner, end_user, now_ms)
      if (of.length === 0) return undefined
      const now = clock.steady()
      for (const account of of) {
        if (covers(account, most, now)) continue
        if (now < account.ask_after && most > account.left + Math.max(0, freeOf(account))) throw refusal(account, most)
        return ask(of, most)
      }
      return hold(of, most)
    },

    appended(charges, changes) {
      forEachCharge(charges, release)
      for (const change of changes) {
        const account = accounts.find(change)
        if (!account) continue
        account.settled = change.settled
        account.credit = change.credit
        notify(account)
      }
    },

    spooled(charges) {
      hasSpooled = true
      forEachCharge(charges, (account, amount) => {
        account.spooled += amount
      })
    },

    replayed() {
      if (!hasSpooled) return
      hasSpooled = false
      for (const account of accounts.all()) {
        if (account.spooled === 0) continue
        release(account, account.spooled)
        account.spooled = 0
        account.has_more = true // a replay reduces no lease
      }
    },

    accounts: accounts.all,
    start() {
      leasing.start()
      upkeep.start()
    },
    async close() {
      await upkeep.stop()
      await leasing.close()
    },
  }
}

/** Of what was charged: it is in the ledger now. */
function release(account: BudgetAccount, amount: number): void {
  account.leased = Math.max(0, account.leased - amount)
  account.unsettled = Math.max(0, account.unsettled - amount)
}

/** The kind of what the budget limits. */
function scopeOf({ name }: BudgetAccount): string {
  const [kind = ''] = name.scope_key.split(':', 1)
  return kind === 'user' ? 'end_user' : kind
}
