/** Due rows in turns: the earliest of each token before the second of any, so that one token delays no other. */
import { sql } from 'kysely'
import type { Write } from './tables.ts'

/** `id`: the key of the table, which has `token_id` and `due_ms`. Returns the keys, in turn. */
export async function dueInTurns(
  rows: Write,
  { table, id }: { table: 'batches' | 'response_runs'; id: string },
  { now_ms, limit }: { now_ms: number; limit: number },
): Promise<string[]> {
  const turns = await sql<{ id: string }>`
    select id from (
      select ${sql.ref(id)} as id, due_ms, row_number() over (partition by token_id order by due_ms) as turn
      from ${sql.table(table)} where due_ms <= ${now_ms}
    ) as due order by turn, due_ms limit ${limit}`.execute(rows)
  return turns.rows.map((row) => row.id)
}
