/** Reads all rows of a database as they are at one moment, while gateways go on writing. */
import { sql } from 'kysely'
import { type EngineSnapshot, SNAPSHOT_ROWS, type SnapshotOptions } from '../engine-snapshot.ts'
import { readSqliteSnapshot, withMemoryDatabase } from '../engines/sqlite-read.ts'
import { MIGRATIONS, migrateWithin } from '../migrate.ts'
import { readSchema, tooNewText } from '../schema-state.ts'
import { StoreError } from '../store.ts'
import type { Database } from '../tables.ts'
import { type RowBatch, type RowSource, readValue, type Table } from './rows.ts'

/** Throws StoreError. */
export async function withSnapshot<T>(
  url: string,
  options: SnapshotOptions,
  work: (source: RowSource, db: Database) => Promise<T>,
): Promise<T> {
  const read = async (snapshot: EngineSnapshot) => work(await sourceOf(snapshot), snapshot.db)
  if (url.startsWith('sqlite:')) return readSqliteSnapshot(url.slice('sqlite:'.length), options, read)
  const { readPostgresSnapshot } = await import('../engines/postgres-snapshot.ts')
  return readPostgresSnapshot(url, options, read)
}

async function sourceOf({ db, name, engine, rows }: EngineSnapshot): Promise<RowSource> {
  const known = Object.keys(MIGRATIONS)
  const state = await readSchema(db, known)
  if (state.newer.length > 0) throw new StoreError(tooNewText(name, state, known.at(-1)))
  const migration = known.filter((one) => !state.pending.includes(one)).at(-1)
  if (migration === undefined) throw new StoreError(`The database ${name} has no tables: there is nothing to copy.`)
  const tables = await tablesOf(migration)
  return {
    engine,
    migration,
    tables,
    async *batches() {
      for (const table of tables) yield* batchesOf(table, rows(selectOf(table)))
    },
  }
}

async function* batchesOf(
  { name, columns }: Table,
  rows: AsyncIterable<Record<string, unknown>>,
): AsyncGenerator<RowBatch> {
  let batch: RowBatch = { table: name, rows: [] }
  for await (const row of rows) {
    batch.rows.push(columns.map((column) => readValue(row[column.name], column)))
    if (batch.rows.length < SNAPSHOT_ROWS) continue
    yield batch
    batch = { table: name, rows: [] }
  }
  yield batch
}

/** Both engines quote names in the same way. */
function selectOf({ name, columns }: Table): string {
  const list = columns.map((column) =>
    column.type === 'bigint' ? `cast("${column.name}" as text) as "${column.name}"` : `"${column.name}"`,
  )
  return `select ${list.join(', ')} from "${name}"`
}

/** The tables that the migrations up to this one create: those of others in the database are left alone. */
export const tablesOf = (migration: string): Promise<Table[]> =>
  withMemoryDatabase(async (db) => {
    await db.transaction().execute((write) => migrateWithin(write, migration))
    const { rows } = await sql<{ name: string; column: string; type: string }>`
      select tables.name, columns.name as "column", lower(columns.type) as type
      from sqlite_master as tables join pragma_table_info(tables.name) as columns
      where tables.type = 'table' and tables.name not like 'sqlite%' and tables.name not like 'kysely%'
        and tables.name <> 'schema_compatibility'
      order by tables.name, columns.cid`.execute(db)
    const tables = new Map<string, Table>()
    for (const { name, column, type } of rows) {
      const table = tables.get(name) ?? { name, columns: [] }
      table.columns.push({ name: column, type })
      tables.set(name, table)
    }
    return [...tables.values()]
  })
