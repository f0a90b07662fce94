/** How much a token has stored. Each sum is read from an index that holds the sizes (migrations 0009 and 0029). */
import { type RawBuilder, SqliteAdapter, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { UNFINISHED } from '../tasks/task-sql.ts'
import type { StoredAmount, StoredAmounts } from './amount-store.ts'

type Sums = { rows: number | string; bytes: number | string | null }

export function storedAmounts({ db }: Engine): StoredAmounts {
  // The expressions of the indexes.
  const sizeOf =
    db.getExecutor().adapter instanceof SqliteAdapter
      ? (column: string) => sql`length(cast(${sql.ref(column)} as blob))`
      : (column: string) => sql`octet_length(${sql.ref(column)})`

  /** `source`: a table, and which of its rows. */
  const rowsAndBytes = (size: RawBuilder<unknown>, source: RawBuilder<unknown>) =>
    sql<Sums>`select count(*) as rows, sum(${size}) as bytes from ${source}`.execute(db)
  const bytes = (size: RawBuilder<unknown>, source: RawBuilder<unknown>) =>
    sql<Sums>`select 0 as rows, sum(${size}) as bytes from ${source}`.execute(db)

  return {
    responses(token_id) {
      const mine = sql`where token_id = ${token_id}`
      const items = sql`conversations
        join conversation_items on conversation_items.conversation_id = conversations.conversation_id`
      return sumOf([
        rowsAndBytes(sql`${sizeOf('input')} + ${sizeOf('response')}`, sql`responses ${mine}`),
        rowsAndBytes(sizeOf('metadata'), sql`conversations ${mine}`),
        rowsAndBytes(sizeOf('item'), sql`${items} ${mine}`),
        bytes(sizeOf('events'), sql`response_events ${mine}`),
        bytes(sizeOf('request'), sql`response_runs ${mine}`),
      ])
    },

    tasks(token_id, since) {
      const inputs = sql`tasks left join task_inputs on task_inputs.task_id = tasks.task_id`
      return sumOf([
        bytes(sizeOf('request'), sql`tasks where token_id = ${token_id} and submit_time >= ${since}`),
        rowsAndBytes(sizeOf('inputs'), sql`${inputs} where token_id = ${token_id} and ${UNFINISHED}`),
      ])
    },

    keys: (token_id) => sumOf([rowsAndBytes(sql`0`, sql`task_keys where token_id = ${token_id}`)]),
  }
}

/** The sum of an empty table is null, and PostgreSQL has text for a sum beyond 32 bits. */
async function sumOf(reading: Promise<{ rows: Sums[] }>[]): Promise<StoredAmount> {
  const total = { rows: 0, bytes: 0 }
  for (const { rows } of await Promise.all(reading)) {
    total.rows += Number(rows[0]?.rows ?? 0)
    total.bytes += Number(rows[0]?.bytes ?? 0)
  }
  return total
}
