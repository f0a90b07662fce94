/** Reads a SQLite file beside a running gateway, without migrating or changing it. */
import { Database as SqliteFile } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { Kysely } from 'kysely'
import { StoreError } from '../store.ts'
import type { Tables } from '../tables.ts'
import { sqliteDialect } from './sqlite-dialect.ts'

/** A process that starts may hold the file for a moment. */
const BUSY_MILLISECONDS = 10_000

/** A file that does not exist, or is empty, counts as a database without tables. */
export async function readSqlite<T>(path: string, work: (db: Kysely<Tables>, name: string) => Promise<T>): Promise<T> {
  const exists = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
  let file: SqliteFile | undefined
  try {
    file = exists ? new SqliteFile(path, { readonly: true }) : new SqliteFile(':memory:')
    file.run(`pragma busy_timeout = ${BUSY_MILLISECONDS}`)
    const db = new Kysely<Tables>({ dialect: sqliteDialect(file) })
    return await work(db, path)
  } catch (cause) {
    if (cause instanceof StoreError) throw cause
    throw new StoreError(`Cannot read the database ${path}: ${cause instanceof Error ? cause.message : cause}.`, cause)
  } finally {
    file?.close()
  }
}
