/** Creates a SQLite file with rows: under another name until it is complete. */
import { Database as SqliteFile } from 'bun:sqlite'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Kysely } from 'kysely'
import { StoreError } from '../store.ts'
import type { Tables, Write } from '../tables.ts'
import { lockCreation, sync } from './sqlite-create.ts'
import { isBusy, sqliteDialect } from './sqlite-dialect.ts'

/** Throws StoreError where the file, or what is left of one, is there already, or another process creates it. */
export async function fillSqlite<T>(path: string, fill: (write: Write) => Promise<T>): Promise<T> {
  for (const there of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(there)) throw occupied(there)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  using creation = lock(path)
  writeFileSync(creation.temporary, '', { flag: 'wx', mode: 0o600 })
  const result = await fillFile(creation.temporary, fill)
  sync(creation.temporary)
  creation.place()
  return result
}

const occupied = (path: string): StoreError =>
  new StoreError(`${path} exists, and was not changed: move it away, or name another directory.`)

function lock(path: string) {
  try {
    const creation = lockCreation(path, 0)
    if (creation) return creation
  } catch (cause) {
    if (!isBusy(cause)) throw cause
    throw new StoreError(`Another process is creating ${path}.`, cause)
  }
  throw occupied(path)
}

/** Nothing is synced before the end: until then the file counts for nothing. */
async function fillFile<T>(path: string, fill: (write: Write) => Promise<T>): Promise<T> {
  const file = new SqliteFile(path, { readwrite: true, create: false })
  try {
    file.run('pragma journal_mode = off')
    file.run('pragma synchronous = off')
    const db = new Kysely<Tables>({ dialect: sqliteDialect(file) })
    const result = await db.transaction().execute(fill)
    file.run('pragma journal_mode = wal')
    return result
  } finally {
    file.close()
  }
}
