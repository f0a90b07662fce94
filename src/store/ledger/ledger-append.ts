/** Adds entries to the ledger, once each, with all sums that depend on them. */
import { createInsert } from '../fixed-statements.ts'
import { addCharges } from '../requests/minute-sums.ts'
import type { LedgerEntriesTable, Write } from '../tables.ts'
import { chargeBudgets } from './budget-charges.ts'
import { type LedgerEntry, reversalOf } from './ledger-entry.ts'
import type { AppendOptions } from './ledger-store.ts'
import { addToSums } from './ledger-sums.ts'

/** A row has 20 values. */
const ROWS_PER_STATEMENT = 50
const COLUMNS = [
  'entry_id',
  'kind',
  'at_ms',
  'call_id',
  'token_id',
  'project_id',
  'end_user',
  'family',
  'model',
  'provider',
  'upstream_model',
  'requests',
  'errors',
  'estimated',
  'amount',
  'cost',
  'price',
  'units',
  'input_tokens',
  'output_tokens',
] as const satisfies readonly (keyof LedgerEntriesTable)[]
const insertRows = createInsert({
  table: 'ledger_entries',
  columns: COLUMNS,
  after: 'on conflict (entry_id) do nothing returning entry_id',
})

/** For a transaction that records entries together with other writes. Returns the entries that were new. */
export async function appendEntries(
  write: Write,
  entries: readonly LedgerEntry[],
  { process_id = '', onBudgets, alsoInTransaction }: AppendOptions = {},
): Promise<LedgerEntry[]> {
  const fresh = await insertNew(write, entries)
  if (fresh.length === 0) return fresh
  await addToSums(write, fresh)
  await addCharges(write, fresh)
  const changes = await chargeBudgets(write, fresh, process_id)
  onBudgets?.(changes)
  await alsoInTransaction?.(write, fresh)
  return fresh
}

/** In the order of their ids: two transactions with the same entries wait for each other, and do not deadlock. */
async function insertNew(write: Write, entries: readonly LedgerEntry[]): Promise<LedgerEntry[]> {
  const byId = new Map<string, LedgerEntry>()
  for (const entry of entries) byId.set(entry.entry_id, entry)
  const unique = [...byId.values()].sort((a, b) => (a.entry_id < b.entry_id ? -1 : 1))
  const fresh: LedgerEntry[] = []
  for (let at = 0; at < unique.length; at += ROWS_PER_STATEMENT) {
    const some = unique.slice(at, at + ROWS_PER_STATEMENT)
    const { rows: added } = await insertRows<Pick<LedgerEntriesTable, 'entry_id'>>(write, valuesOf(some))
    for (const { entry_id } of added) {
      const entry = byId.get(entry_id)
      if (entry) fresh.push(entry)
    }
  }
  return fresh
}

/**
 * Takes back the last entry of a task, which has ended before; false if it has none. An entry that was taken back is
 * not taken back again. It counts for the time of that entry, as the next end of the task does.
 */
export async function reverseTask(write: Write, task_id: string): Promise<boolean> {
  const rows = await write
    .selectFrom('ledger_entries')
    .selectAll()
    .where('call_id', '=', task_id)
    .where('kind', 'in', ['task', 'reversal'])
    .execute()
  const reversed = new Set(rows.filter(({ kind }) => kind === 'reversal').map(({ entry_id }) => entry_id))
  const open = rows.filter(({ kind, entry_id }) => kind === 'task' && !reversed.has(`${entry_id}:reversal`))
  await appendEntries(
    write,
    open.map((row) => reversalOf(entryOfRow(row), row.at_ms)),
  )
  return rows.length > 0
}

/** In the order of the columns. */
function valuesOf(entries: readonly LedgerEntry[]): unknown[] {
  const values: unknown[] = []
  for (const entry of entries) {
    const { units } = entry
    values.push(
      entry.entry_id,
      entry.kind,
      entry.at_ms,
      entry.call_id,
      entry.token_id,
      entry.project_id,
      entry.end_user,
      entry.family,
      entry.model,
      entry.provider,
      entry.upstream_model,
      entry.requests,
      entry.errors,
      entry.estimated,
      entry.amount,
      entry.cost,
      entry.price,
      JSON.stringify(units),
      units.input_tokens,
      units.output_tokens,
    )
  }
  return values
}

export const entryOfRow = ({ input_tokens: _, output_tokens: __, units, ...row }: LedgerEntriesTable): LedgerEntry => ({
  ...row,
  units: JSON.parse(units) as LedgerEntry['units'],
})
