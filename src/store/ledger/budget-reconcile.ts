/** Compares budgets with the entries of the ledger, and what they hold with who holds it. */
import { sql } from 'kysely'
import { addToRevision } from '../revisions.ts'
import type { Database, Tables, Write } from '../tables.ts'
import { NEVER } from './budget-store.ts'
import { chargedIn } from './budget-sums.ts'
import type { LedgerDifference } from './ledger-store.ts'

/** Each takes some statements, and calls are not recorded meanwhile. */
const MAX_BUDGETS = 2_000
const DAY_MILLISECONDS = 86_400_000

/** `from`, `to`, `entries_from`: unix seconds; entries before the last one may have been deleted. */
export function budgetDifferences(
  db: Database,
  { from, to, entries_from }: { from: number; to: number; entries_from: number },
): Promise<LedgerDifference[]> {
  const compare = async (rows: Write): Promise<LedgerDifference[]> => {
    // Charges wait for the end of this transaction.
    await addToRevision(rows, 'budgets', 0)
    const accounts = await rows
      .selectFrom('budget_accounts')
      .selectAll()
      .where('end_ms', '>', from * 1000)
      .where('start_ms', '<', to * 1000)
      .orderBy('start_ms', 'desc')
      .limit(MAX_BUDGETS)
      .execute()
    const found: LedgerDifference[] = []
    for (const account of accounts) {
      const { account_key, start_ms, held } = account
      const report = (count: string, difference: number) => {
        if (difference === 0) return
        found.push({ what: 'budgets', at: start_ms / 1000, of: [account_key], count, difference: String(difference) })
      }
      report('held', (await heldOf(rows, account)) - held)
      // Of a window that starts within a day whose entries were deleted, only the sum of the day is left.
      if (start_ms < entries_from * 1000 && start_ms % DAY_MILLISECONDS !== 0) continue
      const charged = await chargedIn(rows, { ...account, window: '' })
      report('settled', charged.settled - account.settled)
      if (account.end_ms === NEVER) report('credit', charged.credit - account.credit)
    }
    return found
  }
  return db.isTransaction ? compare(db as Write) : db.transaction().execute(compare)
}

async function heldOf(rows: Write, { account_key, start_ms }: Tables['budget_accounts']): Promise<number> {
  const { rows: sums } = await sql<{ amount: number | string | null }>`
    select sum(amount) as amount from (
      select amount from budget_leases where account_key = ${account_key} and start_ms = ${start_ms}
      union all
      select amount from budget_holds where account_key = ${account_key} and start_ms = ${start_ms}
    ) as held`.execute(rows)
  return Number(sums[0]?.amount ?? 0)
}
