/** Reads a SQLite file beside a running gateway, without migrating or changing it. */
import { Database as SqliteFile } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { Kysely } from 'kysely'
import { type EngineSnapshot, inUse, type SnapshotOptions } from '../engine-snapshot.ts'
import { StoreError } from '../store.ts'
import type { Database, Tables } from '../tables.ts'
import { isBusy, sqliteDialect } from './sqlite-dialect.ts'

/** A process that starts may hold the file for a moment. */
const BUSY_MILLISECONDS = 10_000

/** A file that does not exist, or is empty, counts as a database without tables. */
export async function readSqlite<T>(path: string, work: (db: Database, name: string) => Promise<T>): Promise<T> {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return withMemoryDatabase((db) => work(db, path))
  return withFile(path, { readonly: true }, (file) => work(databaseOf(file), path))
}

export const withMemoryDatabase = <T>(work: (db: Database) => Promise<T>): Promise<T> =>
  withFile(':memory:', undefined, (file) => work(databaseOf(file)))

/** Alone, it locks the file for all others, which a file that another process has open does not allow. */
export async function readSqliteSnapshot<T>(
  path: string,
  { is_alone = false }: SnapshotOptions,
  work: (snapshot: EngineSnapshot) => Promise<T>,
): Promise<T> {
  if (!statSync(path, { throwIfNoEntry: false })) throw new StoreError(`There is no database ${path}.`)
  return withFile(path, is_alone ? { readwrite: true, create: false } : { readonly: true }, (file) => {
    const rows = async function* (select: string) {
      const statement = file.prepare<Record<string, unknown>, []>(select)
      try {
        yield* statement.iterate()
      } finally {
        statement.finalize()
      }
    }
    const snapshot = { engine: 'sqlite', name: path, rows } as const
    if (is_alone) {
      lockAlone(file, path)
      return databaseOf(file)
        .transaction()
        .execute((db) => work({ ...snapshot, db }))
    }
    file.run('begin')
    return work({ ...snapshot, db: databaseOf(file) })
  })
}

/** The lock of the file is held until it is closed. */
function lockAlone(file: SqliteFile, path: string): void {
  try {
    file.run('pragma busy_timeout = 0')
    file.run('pragma locking_mode = exclusive')
    file.run('begin exclusive')
    file.run('commit')
  } catch (cause) {
    throw isBusy(cause) ? new StoreError(inUse(path), cause) : cause
  }
}

const databaseOf = (file: SqliteFile): Database => new Kysely<Tables>({ dialect: sqliteDialect(file) })

async function withFile<T>(
  path: string,
  options: { readonly: true } | { readwrite: true; create: false } | undefined,
  work: (file: SqliteFile) => Promise<T>,
): Promise<T> {
  let file: SqliteFile | undefined
  try {
    file = new SqliteFile(path, options)
    file.run(`pragma busy_timeout = ${BUSY_MILLISECONDS}`)
    return await work(file)
  } catch (cause) {
    if (cause instanceof StoreError || !isSqliteError(cause)) throw cause
    throw new StoreError(`Cannot read the database ${path}: ${cause.message}.`, cause)
  } finally {
    file?.close()
  }
}

const isSqliteError = (cause: unknown): cause is Error =>
  cause instanceof Error && 'code' in cause && String(cause.code).startsWith('SQLITE_')
