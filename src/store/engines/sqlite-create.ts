/** Creates SQLite files: each is complete when it takes its name, which no other process takes meanwhile. */
import { Database as SqliteFile } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

const lockOf = (path: string): string => `${path}.new-lock`

/** Whether a process creates the file at `path`, or was killed while it did. */
export const isBeingCreated = (path: string): boolean => existsSync(lockOf(path))

/**
 * The right to create `path`, until it is disposed of; undefined where the file is there. Throws SQLITE_BUSY where another
 * process has it. A lock of SQLite ends with its process, so what is found under the temporary name is of one that was
 * killed. The lock also makes the rename safe, which would replace a file: a hard link would not, but not every file
 * system has them.
 */
export function lockCreation(path: string, wait_ms: number) {
  const isThere = () => lstatSync(path, { throwIfNoEntry: false }) !== undefined
  const temporary = `${path}.new`
  try {
    writeFileSync(lockOf(path), '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const lock = new SqliteFile(lockOf(path), { readwrite: true, create: true })
  const clear = () => {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${temporary}${suffix}`, { force: true })
  }
  const release = () => {
    clear()
    // Without the file, another process could make a second lock while a third waits for this one.
    if (isThere()) rmSync(lockOf(path), { force: true })
    lock.close()
  }
  try {
    lock.run(`PRAGMA busy_timeout = ${wait_ms}`)
    lock.run('PRAGMA journal_mode = MEMORY')
    lock.run('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (isThere() && !isBeingCreated(path)) return undefined // SQLite refuses a lock whose file was removed
    throw error
  }
  if (isThere()) {
    release()
    return undefined
  }
  clear()
  return {
    temporary,
    /** The caller has synced the file. */
    place() {
      renameSync(temporary, path)
      sync(dirname(path))
    },
    [Symbol.dispose]: release,
  }
}

export function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
