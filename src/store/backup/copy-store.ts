/** Copies all rows of a store into another engine, and compares the ledgers of both. */
import { sql } from 'kysely'
import { differencesOf } from '../ledger/ledger-reconcile.ts'
import { exactSum, readSum } from '../ledger/ledger-usage.ts'
import { MIGRATIONS } from '../migrate.ts'
import { StoreError } from '../store.ts'
import type { Database } from '../tables.ts'
import { fillStore, loadRows, type RowCounts } from './load-store.ts'
import { withSnapshot } from './snapshot.ts'

/** Sums of all entries; amounts are nano-units. */
type LedgerTotals = { entries: number; amount: bigint; cost: bigint; differences: number }

/** Unix seconds, later than any entry. */
const END_OF_TIME = 32_503_680_000

/** Throws StoreError, and leaves no target, where the source is in use or something differs afterwards. */
export const copyStore = ({
  from,
  to,
}: {
  from: string
  to: string
}): Promise<{ rows: RowCounts; ledger: LedgerTotals }> =>
  withSnapshot(from, { is_alone: true }, (source, db) => {
    if (source.migration !== Object.keys(MIGRATIONS).at(-1))
      throw new StoreError('The source has an older schema: run gatehouse migrate apply on it first.')
    return fillStore(to, async (write) => {
      const rows = await loadRows(write, source)
      const [before, after] = [await totalsOf(db), await totalsOf(write)]
      for (const name of ['entries', 'amount', 'cost', 'differences'] as const)
        if (before[name] !== after[name])
          throw new StoreError(`The ledgers differ in ${name}: ${before[name]} and ${after[name]}; nothing was copied.`)
      return { rows, ledger: after }
    })
  })

async function totalsOf(db: Database): Promise<LedgerTotals> {
  const { rows } = await sql<{ entries: number; amount: string; cost: string }>`
    select count(*) as entries, ${exactSum('amount')} as amount, ${exactSum('cost')} as cost from ledger_entries`.execute(
    db,
  )
  const [{ entries = 0, amount = '', cost = '' } = {}] = rows
  const differences = await differencesOf(db, { from: 0, to: END_OF_TIME })
  return { entries: Number(entries), amount: readSum(amount), cost: readSum(cost), differences: differences.length }
}
