/** Builds the indexes of large tables outside of the migrations, without blocking calls where the engine can. */
import { SqliteAdapter, sql } from 'kysely'
import type { Database } from './tables.ts'

type LargeIndex = {
  name: string
  /** Table, columns and condition, as in `create index ... on`. */
  on: string
}

/**
 * Each is built after the migrations, and is used once it is complete. An index of a table that is created by the same
 * migration belongs into that migration.
 */
export const LARGE_INDEXES: LargeIndex[] = [{ name: 'tasks_by_model', on: 'tasks (model, submit_time, task_id)' }]

type Found = { name: string; is_valid: number }

/** The names of those that are missing, or whose build was interrupted. */
export async function missingIndexes(db: Database): Promise<string[]> {
  const valid = new Set((await findIndexes(db)).filter(({ is_valid }) => is_valid === 1).map(({ name }) => name))
  return LARGE_INDEXES.map(({ name }) => name).filter((name) => !valid.has(name))
}

async function findIndexes(db: Database): Promise<Found[]> {
  if (LARGE_INDEXES.length === 0) return []
  const names = sql.join(LARGE_INDEXES.map(({ name }) => sql.lit(name)))
  const query = isSqlite(db)
    ? sql<Found>`select name, 1 as is_valid from sqlite_master where type = 'index' and name in (${names})`
    : sql<Found>`
        select relname as name, case when indisvalid and indisready then 1 else 0 end as is_valid
        from pg_index join pg_class on pg_class.oid = indexrelid
        where relnamespace = current_schema()::regnamespace and relname in (${names})`
  return (await query.execute(db)).rows
}

/**
 * PostgreSQL: while calls read and write the table. SQLite: writes of other processes wait for each index. An index that
 * was interrupted is built anew.
 */
export async function buildLargeIndexes(db: Database): Promise<void> {
  const found = new Map((await findIndexes(db)).map(({ name, is_valid }) => [name, is_valid === 1]))
  for (const { name, on } of LARGE_INDEXES) {
    if (found.get(name) === true) continue
    if (isSqlite(db)) await sql`create index if not exists ${sql.ref(name)} on ${sql.raw(on)}`.execute(db)
    else await buildConcurrently(db, { name, on, isInvalid: found.has(name) })
  }
}

/** On one connection, without a limit on the wait for locks: a build waits for transactions that were open before it. */
const buildConcurrently = (db: Database, { name, on, isInvalid }: LargeIndex & { isInvalid: boolean }): Promise<void> =>
  db.connection().execute(async (one) => {
    await sql`set lock_timeout = 0`.execute(one)
    try {
      if (isInvalid) await sql`drop index concurrently if exists ${sql.ref(name)}`.execute(one)
      await sql`create index concurrently ${sql.ref(name)} on ${sql.raw(on)}`.execute(one)
    } finally {
      await sql`reset lock_timeout`.execute(one)
    }
  })

const isSqlite = (db: Database): boolean => db.getExecutor().adapter instanceof SqliteAdapter
