/** The ledger as the gateway stores it: entries, the sums of them, and calls that are still open. */
import type { AuditDraft } from '../../spec/audit.ts'
import type { Write } from '../tables.ts'
import type { BudgetChange } from './budget-store.ts'
import type { LedgerCounts, LedgerEntry, OpenCall } from './ledger-entry.ts'

/** Seconds of a minute, an hour and a day: the periods of which there are sums. */
export const SUM_PERIODS = [60, 3_600, 86_400] as const

/** A client chooses the names of end users: the further ones of a token on one day are summed up as `(other)`. */
export const END_USERS_PER_DAY = 10_000
export const OTHER_END_USERS = '(other)'

/** Runs in the transaction that adds entries, with those that are really new. */
type AlsoInTransaction = (write: Write, fresh: readonly LedgerEntry[]) => Promise<void>

export type AppendOptions = {
  /** Whose leases of budgets are reduced by what calls are charged. Absent: nobody's. */
  process_id?: string
  /** How the budgets stand that the entries have changed; to be used once the transaction is committed. */
  onBudgets?(changes: BudgetChange[]): void
  /** Further writes of the same transaction. */
  alsoInTransaction?: AlsoInTransaction
  /** Appended with entries that are new. */
  audit?: AuditDraft
  /** Open calls that are settled. */
  closes?: readonly string[]
}

/** What sums are grouped by, each with the member of a sum that holds it. */
export const USAGE_MEMBERS = {
  project: 'project_id',
  token: 'token_id',
  end_user: 'end_user',
  family: 'family',
  model: 'model',
  provider: 'provider',
  upstream_model: 'upstream_model',
  day: 'start',
  hour: 'start',
  minute: 'start',
} as const
export type UsageDimension = keyof typeof USAGE_MEMBERS
export const USAGE_DIMENSIONS = Object.keys(USAGE_MEMBERS) as UsageDimension[]

/** `from` (inclusive) and `to` (exclusive) in unix seconds. */
export type UsageQuery = {
  by: readonly UsageDimension[]
  from: number
  to: number
  token_id?: string
  project_id?: string
  limit?: number
}

/** Amounts in nano-units. */
export type UsageSum = Omit<LedgerCounts, 'entries' | 'amount' | 'cost'> & {
  project_id?: string
  token_id?: string
  end_user?: string
  family?: string
  model?: string
  provider?: string
  upstream_model?: string
  /** Unix seconds: of the day, hour or minute. */
  start?: number
  amount: bigint
  cost: bigint
}

/** The range that the sums cover, widened to whole periods (in seconds). */
export type UsageResult = { from: number; to: number; period: number; rows: UsageSum[] }

/** Entries less what is derived from them; a decimal integer, never 0. */
export type LedgerDifference = {
  /** `minute`, `hour`, `day`, `end_users`, `tasks` or `budgets`. */
  what: string
  /** Unix seconds. */
  at: number
  /** What identifies the sum: token, project, family, model, provider and upstream model; the task; or the budget. */
  of: string[]
  count: string
  difference: string
}

/** What one provider's export is compared with. `day` in unix seconds, `cost` in nano-units. */
export type VendorDay = {
  day: number
  upstream_model: string
  requests: number
  input_tokens: number
  output_tokens: number
  cost: bigint
  /** Requests whose units are an estimate. */
  estimated: number
  /** Entries of calls whose process ended before them: their cost is the most that they can have cost. Without those that were corrected. */
  interrupted: number
}

/** How many whole days are kept beside today. */
export type LedgerKeeping = { minutes_days: number; hours_days: number; entries_days: number }

export type LedgerStore = {
  /** Adds entries and what they change in one transaction; entries that exist change nothing. Returns how many were new. */
  append(entries: readonly LedgerEntry[], options?: AppendOptions): Promise<number>
  /** The entries of a call or task, oldest first. */
  ofCall(call_id: string): Promise<LedgerEntry[]>
  /** Sums of the entries, in no order. */
  usage(query: UsageQuery): Promise<UsageResult>
  /** Where sums and tasks differ from the entries of a range of time (unix seconds). */
  differences(range: { from: number; to: number }): Promise<LedgerDifference[]>
  /** Calls that were recorded because their process had ended, and were neither taken back nor corrected; at most 10,000, oldest first. */
  interrupted(filter: { from: number; to: number; provider: string }): Promise<LedgerEntry[]>
  vendorDays(filter: { from: number; to: number; provider?: string | undefined }): Promise<VendorDay[]>
  /** Durable when it resolves: what is recorded of these calls if this process ends before they are settled. */
  open(calls: readonly OpenCall[], lease: { process: string; until_ms: number }): Promise<void>
  /** Replaces what is recorded of an open call. Has no effect on one that is recorded already. */
  raise(call: OpenCall): Promise<void>
  /** Keeps the open calls of this process. */
  renew(lease: { process: string; until_ms: number }): Promise<void>
  /** Records the open calls of processes whose lease has lapsed; returns how many. */
  interruptLapsed(now_ms: number): Promise<number>
  /** Deletes one batch of what is no longer kept; false: nothing is left to delete. `now`: unix seconds. */
  prune(keep: LedgerKeeping, now: number): Promise<boolean>
}
