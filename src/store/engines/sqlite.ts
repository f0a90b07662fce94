/** SQLite by `bun:sqlite`: one connection, made safe for several processes on one file. */
import { type SQLQueryBindings, Database as SqliteFile, type Statement } from 'bun:sqlite'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  type DatabaseConnection,
  type Dialect,
  Kysely,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type SqliteStatement,
} from 'kysely'
import { createNotifications, type Engine } from '../engine.ts'
import { migrate } from '../migrate.ts'
import { createSharedCommit } from '../shared-commit.ts'
import { StoreError } from '../store.ts'
import type { Tables } from '../tables.ts'

const MEMORY = ':memory:'

/** While opening nothing else runs in this process, so it may stand still until others have made the tables. */
const OPENING_BUSY_MILLISECONDS = 10_000
/** Afterwards a wait inside SQLite would stop every request; longer waits are slept through between tries. */
const RUNNING_BUSY_MILLISECONDS = 20
/** How long a write waits for other processes' writes in all. Each of ours takes milliseconds. */
const WRITE_WAIT_MILLISECONDS = 10_000
const RETRY_MILLISECONDS = 5
/** Addresses, not memory: the system keeps what it has room for. */
const MAPPED_BYTES = 2 ** 30
const CACHE_KIBIBYTES = 16_000
/** The house has some twenty statements; a list of values makes a few more. */
const MAX_KEPT_STATEMENTS = 100

/** Opens the file, creating it (0600) and its directory (0700) where missing, and brings it up to date. */
export async function openSqlite(path: string): Promise<Engine> {
  const file = openFile(path)
  try {
    file.run(`PRAGMA busy_timeout = ${OPENING_BUSY_MILLISECONDS}`)
    await useWriteAheadLog(file)
    file.run('PRAGMA synchronous = FULL') // what was answered is on the disk, also when the power fails
    file.run('PRAGMA foreign_keys = ON')
    // What is read most, one row among a million, comes from the system's own memory without being copied.
    file.run(`PRAGMA mmap_size = ${MAPPED_BYTES}`)
    file.run(`PRAGMA cache_size = -${CACHE_KIBIBYTES}`)
  } catch (cause) {
    file.close()
    throw new StoreError(`Cannot use ${path} as the database: ${describe(cause)}.`, cause)
  }
  const db = new Kysely<Tables>({ dialect: dialect(file) })
  try {
    await migrate(db, path === MEMORY ? 'in memory' : path)
    file.run(`PRAGMA busy_timeout = ${RUNNING_BUSY_MILLISECONDS}`)
  } catch (cause) {
    await db.destroy()
    throw cause
  }
  const commit = createSharedCommit(db)
  return {
    name: 'sqlite',
    db,
    write: commit.write,
    many_writers: false,
    ...createNotifications(),
    async close() {
      await commit.settled()
      await db.destroy()
    },
  }
}

function openFile(path: string): SqliteFile {
  if (path === MEMORY) return new SqliteFile(MEMORY)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // Only a file that is not there yet is touched: closing a descriptor of a database file would drop the locks that
    // another connection of this process holds on it. SQLite gives its side files (-wal, -shm) the same mode.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    return new SqliteFile(path, { readwrite: true, create: false })
  } catch (cause) {
    throw new StoreError(`Cannot open the database ${path}: ${describe(cause)}.`, cause)
  }
}

/** Several processes may switch a fresh file at once; SQLite answers some of them `busy` without waiting. */
async function useWriteAheadLog(file: SqliteFile): Promise<void> {
  const start = Date.now()
  for (;;) {
    try {
      file.run('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || Date.now() - start > OPENING_BUSY_MILLISECONDS) throw error
    }
    await Bun.sleep(RETRY_MILLISECONDS)
  }
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

function dialect(file: SqliteFile): Dialect {
  return {
    createDriver: () => new ImmediateDriver(file),
    createAdapter: () => new TransactionalDdlAdapter(),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  }
}

/** SQLite does roll back changes of tables; saying so has the migrator work inside one (immediate) transaction. */
class TransactionalDdlAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/**
 * Every transaction takes the write lock at its start (`begin immediate`): one that read first and wrote later would
 * fail, not wait, when another process wrote in between.
 */
class ImmediateDriver extends SqliteDriver {
  readonly #file: SqliteFile
  constructor(file: SqliteFile) {
    super({ database: likeBetterSqlite(file) })
    this.#file = file
  }
  override async beginTransaction(_connection: DatabaseConnection): Promise<void> {
    const start = Date.now()
    for (;;) {
      try {
        this.#file.run('begin immediate')
        return
      } catch (error) {
        if (!isBusy(error) || Date.now() - start > WRITE_WAIT_MILLISECONDS) throw error
      }
      await Bun.sleep(RETRY_MILLISECONDS)
    }
  }
  override async rollbackTransaction(_connection: DatabaseConnection): Promise<void> {
    // After a full disk or a failed write SQLite has rolled back by itself; a second time would hide the true error.
    if (this.#file.inTransaction) this.#file.run('rollback')
  }
}

/** The little of better-sqlite3's face that Kysely looks at. Statements are prepared once and kept. */
function likeBetterSqlite(file: SqliteFile): SqliteDatabase {
  const kept = new Map<string, Statement>()
  const find = (sql: string): Statement => {
    const statement = kept.get(sql) ?? file.prepare(sql)
    kept.set(sql, statement)
    const [oldest] = kept
    if (oldest && kept.size > MAX_KEPT_STATEMENTS) {
      kept.delete(oldest[0])
      oldest[1].finalize()
    }
    return statement
  }
  const bind = (parameters: readonly unknown[]) => parameters as SQLQueryBindings[]
  const prepare = (sql: string): SqliteStatement => {
    const statement = find(sql)
    return {
      reader: statement.columnNames.length > 0,
      all: (parameters) => statement.all(...bind(parameters)),
      run: (parameters) => statement.run(...bind(parameters)),
      iterate: (parameters) => statement.iterate(...bind(parameters)) as IterableIterator<unknown>,
    }
  }
  const close = () => {
    // An unfinished statement would keep the file open, and the write-ahead log beside it.
    for (const statement of kept.values()) statement.finalize()
    kept.clear()
    file.close()
  }
  return { prepare, close }
}
