/** SQLite with `bun:sqlite`: one connection, safe for several processes on one file. */
import { Database as SqliteFile } from 'bun:sqlite'
import { existsSync, mkdirSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Kysely } from 'kysely'
import { readPacked } from '../../kit/resources.ts'
import { createNotifications, type Engine } from '../engine.ts'
import { buildIndexes, type MigrateOptions, migrate } from '../migrate.ts'
import { createSharedCommit } from '../shared-commit.ts'
import { RESTORE, StoreError } from '../store.ts'
import type { Tables } from '../tables.ts'
import { createCheckpoints } from './checkpoints.ts'
import { createDiskSync, type SyncFile } from './disk-sync.ts'
import { isBeingCreated, lockCreation } from './sqlite-create.ts'
import { isBusy, sqliteDialect } from './sqlite-dialect.ts'

const MEMORY = ':memory:'
/** As the build of an executable packs it. */
export const NEW_DATABASE = 'new.db'
const MIGRATED_NOW = `update ledger_starts set start = unixepoch() + 1;
  update kysely_migration set timestamp = strftime('%Y-%m-%dT%H:%M:%fZ')`

/** While the store opens, nothing else runs in this process, so it may block until others have created the tables. */
const OPENING_BUSY_MILLISECONDS = 10_000
/** Afterwards a wait inside SQLite would block every request; longer waits sleep between attempts. */
const RUNNING_BUSY_MILLISECONDS = 20
const RETRY_MILLISECONDS = 5
const CACHE_KIBIBYTES = 16_000
/** Of 4 KiB. A log that grows to this size, since checkpoints beside the event loop fail, is copied by the commit that fills it. */
const MAX_LOG_PAGES = 8_000

/**
 * Opens the file, creating it (0600) and its directory (0700) where missing, and brings it up to date. `files`: for tests,
 * how its log is synced.
 */
export async function openSqlite(path: string, files?: SyncFile, options?: MigrateOptions): Promise<Engine> {
  const file = openFile(path, options?.mode !== 'manual')
  try {
    file.run(`PRAGMA busy_timeout = ${OPENING_BUSY_MILLISECONDS}`)
    await useWriteAheadLog(file)
    file.run('PRAGMA synchronous = FULL')
    file.run('PRAGMA foreign_keys = ON')
    // Mapped pages would count as memory of this process: after some hours of calls, the whole file.
    file.run('PRAGMA mmap_size = 0')
    file.run(`PRAGMA cache_size = -${CACHE_KIBIBYTES}`)
  } catch (cause) {
    file.close()
    throw unusable(path, cause)
  }
  const db = new Kysely<Tables>({ dialect: sqliteDialect(file) })
  try {
    const where = path === MEMORY ? 'in memory' : path
    await migrate(db, where, options)
    if (options?.mode !== 'manual') await buildIndexes(db, where)
    file.run(`PRAGMA busy_timeout = ${RUNNING_BUSY_MILLISECONDS}`)
  } catch (cause) {
    await db.destroy()
    throw isDamaged(reasonOf(cause)) ? unusable(path, reasonOf(cause)) : cause
  }
  const holdWriteLock = (work: () => void) => db.transaction().execute(async () => work())
  const beside = diskBeside(file, path, { holdWriteLock, files })
  const commit = createSharedCommit(db, beside)
  return {
    name: 'sqlite',
    db,
    readInOrder: (work) => work(db), // without statistics, which only ANALYZE creates, it prefers an index in order
    write: commit.write,
    writeAlone: commit.write, // writes run in the order of their calls
    many_writers: false,
    isUnavailable,
    isDamaged,
    ...createNotifications(),
    releaseMemory: () => file.run('PRAGMA shrink_memory'),
    async close() {
      await commit.settled()
      await db.destroy()
      await beside?.close()
    },
  }
}

/**
 * From now on commits and checkpoints go to the disk beside the event loop, which SQLite would block for milliseconds.
 * Undefined: in memory, or on a file system that allows no write-ahead log, where SQLite goes on to sync each commit itself.
 */
function diskBeside(file: SqliteFile, path: string, parts: Parameters<typeof createDiskSync>[1]) {
  const mode = file.query<{ journal_mode: string }, []>('PRAGMA journal_mode').get()?.journal_mode
  if (mode !== 'wal') return undefined
  file.run('PRAGMA synchronous = NORMAL')
  file.run(`PRAGMA wal_autocheckpoint = ${MAX_LOG_PAGES}`)
  // SQLite follows symbolic links: the log is beside the file, not beside the link.
  const real = realpathSync(path)
  const disk = createDiskSync(`${real}-wal`, parts)
  const checkpoints = createCheckpoints(real)
  return {
    sync: disk.sync,
    /** None of a log that may have a gap: the database would get pages of which a power failure leaves only some. */
    async checkpoint() {
      await disk.sync().catch(() => {}) // the last commits may not have waited for it
      if (!disk.mayHaveGap()) await checkpoints.make()
    },
    async close() {
      checkpoints.close()
      await disk.close()
    },
  }
}

function openFile(path: string, mayMigrate: boolean): SqliteFile {
  if (path === MEMORY) return new SqliteFile(MEMORY)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) throw new Error('it is a directory, and must be a file')
    if (found?.size === 0) throw new Error(EMPTIED)
    if (!found) createFile(path, mayMigrate ? readPacked(NEW_DATABASE) : undefined)
    else if (isBeingCreated(path)) clearCreation(path)
    return new SqliteFile(path, { readwrite: true, create: false })
  } catch (cause) {
    throw new StoreError(`Cannot open the database ${path}: ${describe(cause)}.${ownerHint(path, cause)}`, cause)
  }
}

/** SQLite would take an empty file for a new database, and delete the write-ahead log beside it. */
const EMPTIED =
  'the file is empty, so what it contained is lost; nothing was changed. Restore it from a backup, or delete the file to ' +
  'start with a new database, which knows none of the earlier tokens and tasks'

/**
 * Creates the database under another name, so that `path` is at no time an empty file: another process, or the next
 * start after a crash, would refuse it. SQLite gives its side files (-wal, -shm) the mode of the file. An executable has
 * `migrated`, a new database as the migrations leave it: they would take longer than the rest of a start.
 */
function createFile(path: string, migrated: Uint8Array | undefined): void {
  using creation = lockCreation(path, OPENING_BUSY_MILLISECONDS)
  if (!creation) return
  writeFileSync(creation.temporary, migrated ?? '', { flag: 'wx', mode: 0o600 })
  const file = new SqliteFile(creation.temporary, { readwrite: true, create: false })
  // Either writes, so that closing syncs all of the file.
  file.run(migrated ? MIGRATED_NOW : 'PRAGMA journal_mode = WAL')
  file.close()
  creation.place()
}

/** Removes what a process that was killed has left; not having it is no reason to refuse a database. */
function clearCreation(path: string): void {
  try {
    lockCreation(path, 0)
  } catch {}
}

/** Several processes may switch a new file at once; SQLite returns `busy` to some of them without waiting. */
async function useWriteAheadLog(file: SqliteFile): Promise<void> {
  const start = performance.now()
  for (;;) {
    try {
      file.run('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() - start > OPENING_BUSY_MILLISECONDS) throw error
    }
    await Bun.sleep(RETRY_MILLISECONDS)
  }
}

const UNAVAILABLE = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|PROTOCOL|NOMEM|CORRUPT|NOTADB)/
const isUnavailable = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && UNAVAILABLE.test(String(error.code))

const DAMAGED = /^SQLITE_(CORRUPT|NOTADB)/
const isDamaged = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && DAMAGED.test(String(error.code))

/** A migration that failed has SQLite's error as its cause. */
const reasonOf = (error: unknown): unknown => (error instanceof StoreError ? error.cause : error)

const unusable = (path: string, cause: unknown): StoreError =>
  new StoreError(
    `Cannot use ${path} as the database: ${describe(cause)}.${isDamaged(cause) ? ` ${RESTORE}` : ''}`,
    cause,
  )

/** A volume of a container often belongs to root: who owns the directory, and who is refused. */
function ownerHint(path: string, cause: unknown): string {
  const user = process.getuid?.()
  if ((cause as NodeJS.ErrnoException).code !== 'EACCES' || user === undefined) return ''
  let directory = dirname(path)
  while (!existsSync(directory) && directory !== dirname(directory)) directory = dirname(directory)
  const { uid, gid } = statSync(directory)
  if (uid === user) return ` The directory ${directory} may not be written by its owner: chmod u+rwx ${directory}.`
  return ` The directory ${directory} belongs to user ${uid} and group ${gid}, and the gateway runs as user ${user}: chown ${user} ${directory}.`
}

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
