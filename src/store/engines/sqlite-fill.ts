/** Creates a SQLite file with rows: under another name until it is complete. */
import { Database as SqliteFile } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Kysely } from 'kysely'
import { StoreError } from '../store.ts'
import type { Tables, Write } from '../tables.ts'
import { sqliteDialect } from './sqlite-dialect.ts'

/** Throws StoreError where the file, or what is left of one, is there already. */
export async function fillSqlite<T>(path: string, fill: (write: Write) => Promise<T>): Promise<T> {
  for (const there of [path, `${path}-wal`, `${path}-shm`])
    if (existsSync(there))
      throw new StoreError(`${there} exists, and was not changed: move it away, or name another directory.`)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.filling-${crypto.randomUUID()}`
  try {
    closeSync(openSync(temporary, 'wx', 0o600))
    const result = await fillFile(temporary, fill)
    sync(temporary)
    linkSync(temporary, path) // fails where another process has created it meanwhile
    sync(dirname(path))
    return result
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${temporary}${suffix}`, { force: true })
  }
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

function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
