/** When the first row of a table with due times is due: what background work asks once a second. */
import { createStatement } from './fixed-statements.ts'
import type { Database } from './tables.ts'

/** The result resolves with unix milliseconds; null: no row is due at any time. */
export function createEarliestDue(table: 'alerts' | 'batches' | 'callbacks' | 'response_runs') {
  const select = createStatement(() => `select due_ms from ${table} where due_ms is not null order by due_ms limit 1`)
  return async (db: Database): Promise<number | null> => {
    const { rows } = await select<{ due_ms: number }>(db, [])
    return rows[0]?.due_ms ?? null
  }
}
