/** The usage of each token by model and hour, in the database. */
import type { UsageRow } from '../spec/token.ts'
import type { UsageStore } from './store.ts'
import type { Database, Write } from './tables.ts'

/** Values in one statement are bounded on every engine (SQLite 32,766, PostgreSQL 65,535); a row has eight. */
const ROWS_PER_STATEMENT = 100

const COUNTS = ['requests', 'errors', 'input_tokens', 'output_tokens', 'estimated'] as const

export function usageStore(db: Database): UsageStore {
  return {
    async add(rows) {
      if (rows.length === 0) return
      await db.transaction().execute((write) => addUsage(write, rows))
    },

    list({ token_id, since, limit }) {
      let query = db.selectFrom('usage').selectAll()
      if (token_id !== undefined) query = query.where('token_id', '=', token_id)
      if (since !== undefined) query = query.where('hour', '>=', since)
      return query.orderBy('hour', 'desc').orderBy('token_id').orderBy('model').limit(limit).execute()
    },
  }
}

/** For a transaction that records usage together with other writes. */
export async function addUsage(write: Write, rows: UsageRow[]): Promise<void> {
  const sums = sumOf(rows)
  for (let at = 0; at < sums.length; at += ROWS_PER_STATEMENT)
    await upsert(write, sums.slice(at, at + ROWS_PER_STATEMENT))
}

async function upsert(write: Write, rows: UsageRow[]): Promise<void> {
  await write
    .insertInto('usage')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['token_id', 'model', 'hour']).doUpdateSet((row) => ({
        requests: row('usage.requests', '+', row.ref('excluded.requests')),
        errors: row('usage.errors', '+', row.ref('excluded.errors')),
        input_tokens: row('usage.input_tokens', '+', row.ref('excluded.input_tokens')),
        output_tokens: row('usage.output_tokens', '+', row.ref('excluded.output_tokens')),
        estimated: row('usage.estimated', '+', row.ref('excluded.estimated')),
      })),
    )
    .execute()
}

/** One row for each key: PostgreSQL rejects a statement that updates the same row twice. In key order, to avoid deadlocks. */
function sumOf(rows: UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>()
  for (const row of rows) {
    const key = JSON.stringify([row.token_id, row.model, row.hour])
    const sum = sums.get(key)
    if (!sum) sums.set(key, { ...row })
    else for (const count of COUNTS) sum[count] += row[count]
  }
  return [...sums].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, sum]) => sum)
}
