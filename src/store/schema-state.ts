/** Compares the schema of a database with that of this build: what is missing, and whether this build can use what is newer. */
import { sql } from 'kysely'
import { missingIndexes } from './large-indexes.ts'
import type { Database } from './tables.ts'

/** A schema is known by the number of its last migration. */
export type SchemaState = {
  /**
   * `older`: migrations are missing. `newer`: a newer build has migrated it, and this build can use it. `too new`: this
   * build cannot.
   */
  status: 'current' | 'older' | 'newer' | 'too new'
  /** Of the database; 0: it has no tables. */
  database: number
  /** Of this build. */
  build: number
  /** The oldest schema whose builds can use the database; null: not recorded. */
  oldest: number | null
  /** Why older builds cannot use it; null: their statements cannot. */
  reason: string | null
  /** Missing migrations. */
  pending: string[]
  /** Migrations that this build does not know. */
  newer: string[]
  /** Indexes of large tables that are not built yet. */
  missing_indexes: string[]
}

/** `reason` is absent in databases of builds before it. */
type Compatibility = { schema: number; oldest: number; reason?: string | null }

/** `known`: the migrations of this build. */
export async function readSchema(db: Database, known: readonly string[]): Promise<SchemaState> {
  const done = (await readTable<{ name: string }>(db, 'kysely_migration', sql.ref('name'))) ?? []
  const names = done.map(({ name }) => name)
  const database = schemaNumber(names)
  const build = schemaNumber(known)
  const pending = known.filter((name) => !names.includes(name))
  const newer = names.filter((name) => !known.includes(name)).sort()
  const recorded = done.length === 0 ? [] : await readTable<Compatibility>(db, 'schema_compatibility')
  const row = recorded?.find(({ schema }) => Number(schema) === database)
  const oldest = row ? Number(row.oldest) : null
  const missing_indexes = pending.length > 0 ? [] : await missingIndexes(db)
  const state = { database, build, oldest, reason: row?.reason ?? null, pending, newer, missing_indexes }
  return { status: statusOf(state), ...state }
}

function statusOf({ build, oldest, pending, newer }: Omit<SchemaState, 'status'>): SchemaState['status'] {
  if (newer.length === 0) return pending.length === 0 ? 'current' : 'older'
  return pending.length === 0 && oldest !== null && build >= oldest ? 'newer' : 'too new'
}

/** The number of the last of these migrations. */
export const schemaNumber = (migrations: readonly string[]): number =>
  Math.max(0, ...migrations.map((name) => Number.parseInt(name, 10)))

/** Undefined: there is no such table. The names of tables are read only then: that takes longer than a start. */
async function readTable<Row>(db: Database, name: string, columns = sql`*`): Promise<Row[] | undefined> {
  const read = () => sql<Row>`select ${columns} from ${sql.table(name)}`.execute(db)
  try {
    return (await read()).rows
  } catch (cause) {
    const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
    if (!tables.some((table) => table.name === name)) return undefined
    // It is another fault, or another process has just created the table.
    const { rows } = await read().catch(() => {
      throw cause
    })
    return rows
  }
}

/** For `/readyz`: why this build does not serve requests; undefined: its schema is no reason. */
export function schemaProblem({ status, database, build, oldest }: SchemaState): string | undefined {
  if (status === 'older')
    return `schema older than this build: the database has ${database}, this build needs ${build}; run gatehouse migrate apply`
  if (status !== 'too new') return undefined
  const needs = oldest === null ? '' : `, and it needs a build with ${oldest} or later`
  return `schema newer than this build: the database has ${database}, this build ${build}${needs}`
}

export const tooOldText = (where: string, state: SchemaState): string =>
  `The database ${where} was not migrated: ${schemaProblem(state)} (store.migrate is manual).`

export function tooNewText(where: string, state: SchemaState, last: string | undefined): string {
  return (
    `The database ${where} was written by a newer version of Gatehouse: it contains the migration "${state.newer[0]}" ` +
    `(schema ${state.database}), and this version knows migrations only up to "${last}" (schema ${state.build})${oldestText(state)}. ` +
    'Run that version or a later one, or choose another data directory.'
  )
}

const oldestText = ({ oldest, reason }: SchemaState): string =>
  oldest === null ? '' : `; builds from schema ${oldest} on can use it${reason === null ? '' : `, since ${reason}`}`
