/** Budgets in the store: what was charged, and what processes and tasks hold. The same on every engine. */
import type { Alert } from '../admin/alert-store.ts'
import type { LedgerEntry } from './ledger-entry.ts'

/** Names a budget: whose it is and in which windows, such as `token:tok_a/month/UTC/0`. The amount is not part of it. */
export type BudgetName = {
  account_key: string
  /** `installation`, `project:<id>`, `token:<id>`, or `user:<id of the token or project>/<end user>`. */
  scope_key: string
  window: string
  /** The window: unix milliseconds; one that never ends has the end `NEVER`. */
  start_ms: number
  end_ms: number
}

/** The end of the year 9999. */
export const NEVER = 253_402_300_799_000

/** How a budget stands in one window; amounts are nano-units. `settled + held` is at most the limit plus `credit`. */
type BudgetState = {
  /** Charges of the ledger. */
  settled: number
  /** Credits of the ledger, which count for windows that never end. */
  credit: number
  /** What processes have leased, and what unfinished tasks hold. */
  held: number
}

export type BudgetLease = {
  budget: BudgetName
  /** The amount of the budget: what may be leased at most, with what is charged and held already. */
  limit: number
  /** How much more the process needs now, and how much it would use: at most an eighth of what then remains is leased for that. */
  need: number
  want: number
}

export type LeaseOutcome = BudgetState & {
  /** How much was leased: less than needed where no more is left. */
  granted: number
  /** The process has no lease from before: another process ended it after it had expired. */
  lapsed: boolean
}

/**
 * `moves`: as in `StoreTime`; rejects with `DueTimesMoved` where they were moved since. `keeps_dead`: leases of other
 * processes do not end, although they have expired: the store was away, so that nobody could renew them.
 */
type LeaseTimes = { now_ms: number; expires_ms: number; moves?: number | undefined; keeps_dead?: boolean }

export type BudgetHold = Pick<BudgetName, 'account_key' | 'start_ms'> & { amount: number }

/** What a task holds of budgets, and by which process it was leased. */
export type TaskBudget = { process_id: string; holds: readonly BudgetHold[] }

/** An entry of the ledger, as far as it counts towards budgets. */
export type Charged = Pick<
  LedgerEntry,
  'kind' | 'call_id' | 'token_id' | 'project_id' | 'end_user' | 'at_ms' | 'amount'
>

/** The scopes whose budgets an entry counts towards. A credit counts for that to which it was given, and nothing else. */
export function scopesOf({
  kind,
  token_id,
  project_id,
  end_user,
}: Omit<Charged, 'call_id' | 'at_ms' | 'amount'>): string[] {
  const narrow: string[] = []
  if (end_user !== null) {
    if (token_id !== '') narrow.push(`user:${token_id}/${end_user}`)
    if (project_id !== null) narrow.push(`user:${project_id}/${end_user}`)
  }
  if (token_id !== '') narrow.push(`token:${token_id}`)
  if (project_id !== null) narrow.push(`project:${project_id}`)
  narrow.push('installation')
  return kind === 'credit' ? narrow.slice(0, 1) : narrow
}

export type BudgetChange = Pick<BudgetName, 'account_key' | 'start_ms'> & BudgetState

/** `notified`: the highest threshold of which the operator was notified, in per cent. */
export type BudgetListing = Omit<BudgetName, 'window'> & BudgetState & { notified: number }

export type BudgetStore = {
  /** Leases amounts until `expires_ms`, and renews what was leased; in the order of the list. Creates missing budgets. */
  lease(process_id: string, leases: readonly BudgetLease[], times: LeaseTimes): Promise<LeaseOutcome[]>
  /**
   * Renews all leases of the process, returns amounts that it does not need, and ends the leases of dead processes. The
   * result: the budgets of which the process still has a lease.
   */
  renew(
    process_id: string,
    returned: readonly BudgetHold[],
    times: LeaseTimes,
  ): Promise<Pick<BudgetName, 'account_key' | 'start_ms'>[]>
  /** Ends all leases of the process. */
  release(process_id: string): Promise<void>
  /** Budgets whose window contains the time, by `account_key`. */
  list(filter: { now_ms: number; scope_keys?: readonly string[]; limit: number }): Promise<BudgetListing[]>
  /**
   * True once for each budget, window and threshold (per cent): whether this process notifies the operator. Adds the
   * alerts in the same transaction.
   */
  notify(
    budget: Pick<BudgetName, 'account_key' | 'start_ms'>,
    reached: { threshold: number; alerts: readonly Alert[] },
  ): Promise<boolean>
}
