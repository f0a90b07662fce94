/** Due rows in turns: the earliest of each token before the second of any, so that one token delays no other. */
import { sql } from 'kysely'
import type { Engine } from './engine.ts'
import type { Tables, Write } from './tables.ts'
import { skipLocked } from './tasks/task-sql.ts'

/** Concurrent claims skip the rows that others have locked: with this many candidates some remain. */
const CANDIDATES_PER_ROW = 4

/** At most `limit` due rows of a table, in turn, that no other transaction has locked. `id`: its key. */
export async function dueInTurns<Table extends 'batches' | 'response_runs'>(
  engine: Engine,
  rows: Write,
  { table, id, now_ms, limit }: { table: Table; id: keyof Tables[Table] & string; now_ms: number; limit: number },
): Promise<Tables[Table][]> {
  const turns = await sql<{ id: string }>`
    select id from (
      select ${sql.ref(id)} as id, due_ms, row_number() over (partition by token_id order by due_ms) as turn
      from ${sql.table(table)} where due_ms <= ${now_ms}
    ) as due order by turn, due_ms limit ${engine.many_writers ? limit * CANDIDATES_PER_ROW : limit}`.execute(rows)
  if (turns.rows.length === 0) return []
  const turnOf = new Map<unknown, number>(turns.rows.map((row, turn) => [row.id, turn]))
  const due = rows
    .selectFrom(table as 'batches')
    .selectAll()
    .where(sql.ref(id), 'in', [...turnOf.keys()])
    .where('due_ms', '<=', now_ms)
  const found = (await skipLocked(engine, due).execute()) as unknown as Tables[Table][]
  return found.sort((one, other) => (turnOf.get(one[id]) ?? 0) - (turnOf.get(other[id]) ?? 0)).slice(0, limit)
}
