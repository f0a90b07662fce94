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
  return {
    async responses(token_id) {
      const sums = await Promise.all([
        db
          .selectFrom('responses')
          .select(sumsOf(sql`${sizeOf('input')} + ${sizeOf('response')}`))
          .where('token_id', '=', token_id)
          .executeTakeFirstOrThrow(),
        db
          .selectFrom('conversations')
          .select(sumsOf(sizeOf('metadata')))
          .where('token_id', '=', token_id)
          .executeTakeFirstOrThrow(),
        db
          .selectFrom('conversations')
          .innerJoin('conversation_items', 'conversation_items.conversation_id', 'conversations.conversation_id')
          .select(sumsOf(sizeOf('item')))
          .where('token_id', '=', token_id)
          .executeTakeFirstOrThrow(),
        db
          .selectFrom('response_events')
          .select(bytesOf(sizeOf('events')))
          .where('token_id', '=', token_id)
          .executeTakeFirstOrThrow(),
        db
          .selectFrom('response_runs')
          .select(bytesOf(sizeOf('request')))
          .where('token_id', '=', token_id)
          .executeTakeFirstOrThrow(),
      ])
      return sumOf(sums)
    },

    async tasks(token_id, since) {
      const sums = await Promise.all([
        db
          .selectFrom('tasks')
          .select(bytesOf(sizeOf('request')))
          .where('token_id', '=', token_id)
          .where('submit_time', '>=', since)
          .executeTakeFirstOrThrow(),
        db
          .selectFrom('tasks')
          .leftJoin('task_inputs', 'task_inputs.task_id', 'tasks.task_id')
          .select(sumsOf(sizeOf('inputs')))
          .where('token_id', '=', token_id)
          .where(UNFINISHED)
          .executeTakeFirstOrThrow(),
      ])
      return sumOf(sums)
    },

    async keys(token_id) {
      const { rows } = await db
        .selectFrom('task_keys')
        .select(({ fn }) => fn.countAll<number | string>().as('rows'))
        .where('token_id', '=', token_id)
        .executeTakeFirstOrThrow()
      return { rows: Number(rows), bytes: 0 }
    },
  }
}

const bytesOf = (size: RawBuilder<unknown>) => sql<number | string | null>`sum(${size})`.as('bytes')
const sumsOf = (size: RawBuilder<unknown>) => [sql<number | string>`count(*)`.as('rows'), bytesOf(size)] as const

/** The sum of an empty table is null, and PostgreSQL has text for a sum beyond 32 bits. */
function sumOf(sums: (Pick<Sums, 'bytes'> & Partial<Sums>)[]): StoredAmount {
  const total = { rows: 0, bytes: 0 }
  for (const { rows = 0, bytes } of sums) {
    total.rows += Number(rows)
    total.bytes += Number(bytes ?? 0)
  }
  return total
}
