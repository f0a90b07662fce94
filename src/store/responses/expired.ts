/** Deletes expired rows with what belongs to them. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'

type Expired = { table: 'responses' | 'conversations'; id: string; now: number; limit: number }

/** Deletes at most `limit` rows, and by `removeParts` what belongs to them; returns how many rows. `id`: the key. */
export async function deleteExpired(
  { db, write }: Engine,
  { table, id, now, limit }: Expired,
  removeParts: (rows: Write, ids: string[]) => Promise<void>,
): Promise<number> {
  const [from, key] = [sql.table(table), sql.ref(id)]
  const due = await sql<{ id: string }>`
    select ${key} as id from ${from} where expires_at <= ${now} order by expires_at limit ${limit}`.execute(db)
  if (due.rows.length === 0) return 0 // most sweeps find nothing; they should not wait for the write lock
  return write(async (rows) => {
    const removed = await sql<{ id: string }>`
      delete from ${from} where ${key} in (${sql.join(due.rows.map((row) => row.id))}) and expires_at <= ${now}
      returning ${key} as id`.execute(rows)
    await removeParts(
      rows,
      removed.rows.map((row) => row.id),
    )
    return removed.rows.length
  })
}
