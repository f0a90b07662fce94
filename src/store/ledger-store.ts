/** The ledger as the gateway stores it: entries, the sums of them, and calls that are still open. */
import type { LedgerEntry } from './ledger-entry.ts'
import type { Write } from './tables.ts'

/** Seconds of a minute, an hour and a day: the periods of which there are sums. */
export const SUM_PERIODS = [60, 3_600, 86_400] as const

/** A client chooses the names of end users: the further ones of a token on one day are summed up as `(other)`. */
export const END_USERS_PER_DAY = 10_000
export const OTHER_END_USERS = '(other)'

/** Runs in the transaction that adds entries, with those that are really new. */
export type AlsoInTransaction = (write: Write, fresh: readonly LedgerEntry[]) => Promise<void>

export type LedgerStore = {
  /**
   * Adds entries and what they change in one transaction; entries that exist change nothing. Returns how many were new.
   * `alsoInTransaction`: further writes of the same transaction.
   */
  append(entries: readonly LedgerEntry[], options?: { alsoInTransaction?: AlsoInTransaction }): Promise<number>
  /** The entries of a call or task, oldest first. */
  ofCall(call_id: string): Promise<LedgerEntry[]>
}
