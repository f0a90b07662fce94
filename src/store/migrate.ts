/** Migrates a database to the schema of this build, and rejects one on which this build cannot run. */
import { type Migration, Migrator } from 'kysely/migration'
import { buildLargeIndexes } from './large-indexes.ts'
import { MCP_CONNECTION_USE } from './migrations/0045-mcp-connection-use.ts'
import { OLDEST_REASON } from './migrations/0046-oldest-reason.ts'
import { migrationOf } from './migrations/statements.ts'
import { UP_TO_0011 } from './migrations/up-to-0011.ts'
import { UP_TO_0022 } from './migrations/up-to-0022.ts'
import { UP_TO_0044 } from './migrations/up-to-0044.ts'
import { readSchema, type SchemaState, schemaNumber, tooNewText, tooOldText } from './schema-state.ts'
import { StoreError } from './store.ts'
import type { Database, Write } from './tables.ts'

/**
 * Imported, not read from a folder, so that a single-file build contains them. Never edit or rename a released one. A new
 * one is a file of its own (`'0045-name': statements` of `migrations/0045-name.ts`), by which tests find the builds before it.
 */
export const MIGRATIONS: Record<string, Migration> = Object.fromEntries(
  Object.entries({ ...UP_TO_0011, ...UP_TO_0022, ...UP_TO_0044, ...MCP_CONNECTION_USE, ...OLDEST_REASON }).map(
    ([name, text]) => [name, migrationOf(text)],
  ),
)

/**
 * The oldest schema whose builds can use a database of this build. Migrations are additive within a major version (new
 * tables, indexes and nullable columns): this number rises only with one that is not. A build checks it at its start.
 */
const OLDEST_SCHEMA = 37

/** Mode `manual`: a database of an older schema is refused, since the operator migrates it. */
export type MigrateOptions = { mode?: 'auto' | 'manual' }

/** Another process may build the index of a large table. */
const WAIT_MILLISECONDS = 30 * 60_000
const PAUSE_MILLISECONDS = 200

/**
 * Runs the missing migrations in one transaction that other processes wait for. `where` names the database in errors.
 * Throws StoreError; the database is then as it was before.
 */
export async function migrate(db: Database, where: string, { mode = 'auto' }: MigrateOptions = {}): Promise<void> {
  const before = await usableSchema(db, where)
  if (mode === 'manual' && before.pending.length > 0) throw new StoreError(tooOldText(where, before))
  if (mode === 'manual') return
  if (before.pending.length > 0 || (before.newer.length === 0 && before.oldest === null)) await runMigrations(db, where)
}

/** Builds the missing indexes of large tables, unless a newer build has migrated the database. Throws StoreError. */
export async function buildIndexes(db: Database, where: string): Promise<void> {
  if ((await usableSchema(db, where)).newer.length === 0) await buildLargeIndexes(db)
}

/** Throws StoreError where a newer build has changed the database so that this one cannot use it. */
async function usableSchema(db: Database, where: string): Promise<SchemaState> {
  const known = Object.keys(MIGRATIONS)
  const state = await readSchema(db, known)
  if (state.status === 'too new') throw new StoreError(tooNewText(where, state, known.toSorted().at(-1)))
  return state
}

async function runMigrations(db: Database, where: string): Promise<void> {
  const end = performance.now() + WAIT_MILLISECONDS
  for (;;) {
    try {
      return await migrateOnce(db)
    } catch (error) {
      const state = await usableSchema(db, where) // another process may have migrated it meanwhile
      if (state.pending.length === 0 && state.oldest !== null) return
      if (!isLocked(error) || performance.now() > end)
        throw new StoreError(`The database ${where} could not be migrated; it was not changed.`, error)
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLISECONDS))
  }
}

const migrateOnce = (db: Database): Promise<void> => db.transaction().execute((write) => migrateWithin(write))

/** Runs the missing migrations up to this one in the caller's transaction; default: all. */
export async function migrateWithin(write: Write, last?: string): Promise<void> {
  // First, since the migrator would hide the reason where no table can be created.
  await write.schema
    .createTable('schema_compatibility')
    .ifNotExists()
    .addColumn('schema', 'bigint', (column) => column.primaryKey())
    .addColumn('oldest', 'bigint', (column) => column.notNull())
    .execute()
  const migrator = new Migrator({ db: write, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await (last === undefined ? migrator.migrateToLatest() : migrator.migrateTo(last))
  if (error !== undefined) throw error
  if (last !== undefined) return
  const compatibility = write.withTables<{
    schema_compatibility: { schema: number; oldest: number; reason?: string }
  }>()
  // What an operator has changed for good, such as partitions, holds for later schemas too.
  const before = await compatibility
    .selectFrom('schema_compatibility')
    .select(['oldest', 'reason'])
    .orderBy('oldest', 'desc')
    .limit(1)
    .executeTakeFirst()
  const needed = before && Number(before.oldest) > OLDEST_SCHEMA ? before : { oldest: OLDEST_SCHEMA }
  await compatibility
    .insertInto('schema_compatibility')
    .values({ schema: schemaNumber(Object.keys(MIGRATIONS)), ...needed })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** A lock was not free in time: a migration waits for it in short steps, since calls wait behind one that waits. */
function isLocked(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code === '55P03' || code === '40P01' || code.startsWith('SQLITE_BUSY')
}
