/** Fills an empty database with the rows of another one, and migrates it to the schema of this build. */
import { sql } from 'kysely'
import { fillSqlite } from '../engines/sqlite-fill.ts'
import { MIGRATIONS, migrateWithin } from '../migrate.ts'
import { StoreError } from '../store.ts'
import type { Database, Write } from '../tables.ts'
import { chunks } from '../tasks/task-sql.ts'
import type { RowBatch, RowSource, Table, Value } from './rows.ts'
import { tablesOf } from './snapshot.ts'

/** By table. */
export type RowCounts = Record<string, number>

/** A statement has at most so many values; SQLite takes 32,766, and PostgreSQL 65,535. */
const MAX_VALUES = 5_000

/**
 * In the transaction of `write`, so that nothing is left of a load that fails or is killed. `expected`: the rows that there
 * must be; default: those that were read. Throws StoreError.
 */
export async function loadRows(write: Write, source: RowSource, expected?: RowCounts): Promise<RowCounts> {
  const known = new Map(source.tables.map((table) => [table.name, table]))
  await migrateWithin(write, source.migration)
  // Migrations add rows of their own, which the source has too.
  for (const { name } of source.tables) await sql`delete from ${sql.table(name)}`.execute(write)
  const counts: RowCounts = Object.fromEntries(source.tables.map(({ name }) => [name, 0]))
  for await (const batch of source.batches()) {
    const table = known.get(batch.table)
    if (!table) throw new StoreError(`There are rows of an unknown table ${JSON.stringify(batch.table)}.`)
    await insertBatch(write, table, batch)
    counts[table.name] = (counts[table.name] ?? 0) + batch.rows.length
  }
  await compareCounts(write, expected ?? counts)
  await migrateWithin(write)
  return counts
}

async function insertBatch(write: Write, { name, columns }: Table, { rows }: RowBatch): Promise<void> {
  const size = Math.max(1, Math.floor(MAX_VALUES / columns.length))
  const names = sql.join(columns.map((column) => sql.ref(column.name)))
  const tuple = (row: Value[]) => sql`(${sql.join(row.map((value) => sql.val(value)))})`
  for (const some of chunks(rows, size))
    await sql`insert into ${sql.table(name)} (${names}) values ${sql.join(some.map(tuple))}`.execute(write)
}

/**
 * Creates the database at an address and fills it in one transaction. Throws StoreError where there is one already; then
 * and where it fails or is killed, nothing is changed.
 */
export async function fillStore<T>(url: string, fill: (write: Write) => Promise<T>): Promise<T> {
  if (url.startsWith('sqlite:')) return fillSqlite(url.slice('sqlite:'.length), fill)
  const { fillPostgres } = await import('../engines/postgres-fill.ts')
  const names = (await tablesOf(Object.keys(MIGRATIONS).at(-1) ?? '')).map(({ name }) => name)
  return fillPostgres(url, { names, fill })
}

/** Throws where a table does not have the rows that were counted. */
async function compareCounts(db: Database, counts: RowCounts): Promise<void> {
  for (const [name, expected] of Object.entries(counts)) {
    const { rows } = await sql<{ rows: number }>`select count(*) as rows from ${sql.table(name)}`.execute(db)
    const found = Number(rows[0]?.rows)
    if (found !== expected)
      throw new StoreError(`The table ${name} has ${found} rows of ${expected}; nothing was restored.`)
  }
}
