/** The usage of each token by model and hour: the sums of the ledger. */
import { sql } from 'kysely'
import type { UsageStore } from '../store.ts'
import type { Database } from '../tables.ts'

const HOUR_SECONDS = 3_600

/** Without the cast, PostgreSQL returns a sum as text. */
const sumOf = (column: 'requests' | 'errors' | 'input_tokens' | 'output_tokens' | 'estimated') =>
  sql<number>`cast(sum(${sql.ref(column)}) as bigint)`.as(column)

export function usageStore(db: Database): UsageStore {
  return {
    list({ token_id, since, limit }) {
      let query = db
        .selectFrom('ledger_sums')
        .select(['token_id', 'model', 'start as hour'])
        .select([sumOf('requests'), sumOf('errors'), sumOf('input_tokens'), sumOf('output_tokens'), sumOf('estimated')])
        .where('period', '=', HOUR_SECONDS)
      if (token_id !== undefined) query = query.where('token_id', '=', token_id)
      if (since !== undefined) query = query.where('start', '>=', since)
      return query
        .groupBy(['token_id', 'model', 'start'])
        .orderBy('start', 'desc')
        .orderBy('token_id')
        .orderBy('model')
        .limit(limit)
        .execute()
    },
  }
}
