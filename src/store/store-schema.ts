/** The schema of the database at an address, and the statements of its missing migrations; changes nothing. */
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import { readSqlite } from './engines/sqlite-read.ts'
import { LARGE_INDEXES } from './large-indexes.ts'
import { MIGRATIONS } from './migrate.ts'
import { readSchema, type SchemaState } from './schema-state.ts'
import type { Database } from './tables.ts'

/** `url` is one that `openStore` takes. Throws StoreError. */
export const schemaOf = (url: string): Promise<SchemaState> =>
  readStore(url, (db) => readSchema(db, Object.keys(MIGRATIONS)))

async function readStore<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  if (url.startsWith('sqlite:')) return readSqlite(url.slice('sqlite:'.length), work)
  // Imported only here, like the driver of a store.
  const { readPostgres } = await import('./engines/postgres.ts')
  return readPostgres(url, work)
}

export type PlannedMigration = {
  name: string
  statements: string[]
  /** Of an index on SQLite: the rows of its table, whose writes wait for it. */
  rows?: number
}

/** What the missing migrations would run; statements that depend on rows are left out. */
export async function planOf(url: string, { pending, missing_indexes }: SchemaState): Promise<PlannedMigration[]> {
  const planned: PlannedMigration[] = []
  for (const name of pending) planned.push({ name, statements: await statementsOf(url, name) })
  const method = url.startsWith('sqlite:') ? 'create index' : 'create index concurrently'
  for (const { name, on } of LARGE_INDEXES)
    if (pending.length > 0 || missing_indexes.includes(name))
      planned.push({ name, statements: [`${method} ${name} on ${on}`], ...(await rowsOf(url, on)) })
  return planned
}

async function rowsOf(url: string, on: string): Promise<{ rows?: number }> {
  if (!url.startsWith('sqlite:')) return {}
  const table = sql.ref(on.slice(0, on.indexOf(' ')))
  const count = (db: Database) => sql<{ rows: number }>`select max(rowid) as rows from ${table}`.execute(db)
  const found = await readStore(url, count).catch(() => undefined) // no such table yet
  return { rows: found?.rows[0]?.rows ?? 0 }
}

/** Runs the migration on a connection that stores nothing and finds no rows. */
async function statementsOf(url: string, name: string): Promise<string[]> {
  const statements: string[] = []
  const isSqlite = url.startsWith('sqlite:')
  const db = new Kysely<unknown>({
    dialect: {
      createDriver: () => new DummyDriver(),
      createAdapter: () => (isSqlite ? new SqliteAdapter() : new PostgresAdapter()),
      createQueryCompiler: () => (isSqlite ? new SqliteQueryCompiler() : new PostgresQueryCompiler()),
      createIntrospector: (one) => (isSqlite ? new SqliteIntrospector(one) : new PostgresIntrospector(one)),
    },
    log: ({ query }) => void statements.push(query.sql),
  })
  await MIGRATIONS[name]?.up(db)
  return statements
}
