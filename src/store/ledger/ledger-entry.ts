/** An entry of the ledger: append-only, in whole nano-units of the ledger's currency. */
import type { CallFamily } from '../../spec/endpoint-family.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'

/**
 * `lost_hedge`: of a target that was given up because another one answered first. `lost_attempt`: of one that has failed or
 * was given up, and may have been charged; another one has served the call, or none. `interrupted`: of a call whose process
 * ended before the call did. `reversal`: takes another entry back. `adjustment`: corrects the sum by hand, or by the
 * export of a provider.
 */
type LedgerKind = 'call' | 'task' | 'lost_hedge' | 'lost_attempt' | 'interrupted' | 'credit' | 'reversal' | 'adjustment'

export type LedgerEntry = {
  /** Unique. An entry that is written again changes nothing. */
  entry_id: string
  kind: LedgerKind
  /** Unix milliseconds. */
  at_ms: number
  /** The request id, which a client may repeat, or the task id. */
  call_id: string
  /** Empty where no token was used, as with a credit of the installation. */
  token_id: string
  project_id: string | null
  end_user: string | null
  /** Empty in entries of versions that did not record it. */
  family: CallFamily | ''
  /** The full public id. */
  model: string
  /** Empty where no provider was called. */
  provider: string
  upstream_model: string
  units: Units
  /** Of clients: 1; 0 for an attempt that did not serve its call, and negative in a reversal. */
  requests: number
  errors: number
  /** The number of requests whose units are an estimate. */
  estimated: number
  /** What the caller is charged, in nano-units; null: the price is unknown. */
  amount: number | null
  /** What the provider charges, in nano-units; null: the price is unknown. */
  cost: number | null
  /** The version of the prices; null: the price is unknown, or nothing was used. */
  price: string | null
}

/** What is summed up of entries. `unknown_amounts`, `unknown_costs`: requests without a known price, which the sum leaves out. */
export const LEDGER_COUNTS = [
  'entries',
  'requests',
  'errors',
  'estimated',
  'input_tokens',
  'output_tokens',
  'amount',
  'cost',
  'unknown_amounts',
  'unknown_costs',
] as const
export type LedgerCounts = Record<(typeof LEDGER_COUNTS)[number], number>

/** What an entry has that belongs to no call. */
export const NO_CALL = {
  end_user: null,
  family: '',
  model: '',
  provider: '',
  upstream_model: '',
  units: NO_UNITS,
  requests: 0,
  errors: 0,
  estimated: 0,
  price: null,
} as const

export type OpenCall = {
  /** Of the call, once it is settled. */
  entry_id: string
  /** What is recorded if it never is. */
  entry: LedgerEntry
}

/** Takes an entry back. Written twice, it changes nothing the second time. */
export const reversalOf = (entry: LedgerEntry, at_ms: number): LedgerEntry => ({
  ...entry,
  entry_id: `${entry.entry_id}:reversal`,
  kind: 'reversal',
  at_ms,
  units: negative(entry.units),
  requests: -entry.requests,
  errors: -entry.errors,
  estimated: -entry.estimated,
  amount: entry.amount === null ? null : -entry.amount,
  cost: entry.cost === null ? null : -entry.cost,
})

const negative = (units: Units): Units =>
  Object.fromEntries(
    Object.entries(units).map(([name, value]) => [name, typeof value === 'number' ? -value : value]),
  ) as Units
