/** Kysely's dialect for `bun:sqlite`: one connection, immediate transactions, cached statements. */
import type { SQLQueryBindings, Database as SqliteFile, Statement } from 'bun:sqlite'
import {
  type DatabaseConnection,
  type Dialect,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type SqliteStatement,
} from 'kysely'
import type { ImmediateStatements } from '../fixed-statements.ts'

/** How long a write waits in total for the writes of other processes. Each write takes milliseconds. */
const WRITE_WAIT_MILLISECONDS = 5_000
/** The same after a write that has waited in vain, until one succeeds: all calls wait behind a write that waits. */
const LOCKED_WAIT_MILLISECONDS = 100
const RETRY_MILLISECONDS = 5
/** Each attempt blocks every request for the busy timeout of the connection, so the pauses grow. */
const MAX_RETRY_MILLISECONDS = 200
/** The gateway has some twenty statements; lists of values add a few more. */
const MAX_CACHED_STATEMENTS = 100

export const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')

export function sqliteDialect(file: SqliteFile): Dialect {
  const database = betterSqliteInterface(file)
  return {
    createDriver: () => new ImmediateDriver(file, database),
    createAdapter: () => new OneConnectionAdapter(database),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  }
}

class OneConnectionAdapter extends SqliteAdapter implements ImmediateStatements {
  readonly #database: SqliteDatabase
  constructor(database: SqliteDatabase) {
    super()
    this.#database = database
  }
  /** SQLite can roll back schema changes. Declaring it makes the migrator use one (immediate) transaction. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }
  executeNow(sql: string, values: readonly unknown[]): unknown[] {
    const statement = this.#database.prepare(sql)
    if (statement.reader) return statement.all(values)
    statement.run(values)
    return []
  }
}

/**
 * Every transaction takes the write lock when it begins (`begin immediate`): one that reads first and writes later would
 * fail instead of wait if another process wrote in between.
 */
class ImmediateDriver extends SqliteDriver {
  readonly #file: SqliteFile
  #isLocked = false
  constructor(file: SqliteFile, database: SqliteDatabase) {
    super({ database })
    this.#file = file
  }
  override async beginTransaction(_connection: DatabaseConnection): Promise<void> {
    const end = performance.now() + (this.#isLocked ? LOCKED_WAIT_MILLISECONDS : WRITE_WAIT_MILLISECONDS)
    for (let pause = RETRY_MILLISECONDS; ; pause = Math.min(pause * 2, MAX_RETRY_MILLISECONDS)) {
      try {
        this.#file.run('begin immediate')
        this.#isLocked = false
        return
      } catch (error) {
        if (!isBusy(error)) throw error
        this.#isLocked ||= performance.now() > end
        if (performance.now() > end) throw error
      }
      await Bun.sleep(pause)
    }
  }
  override async rollbackTransaction(_connection: DatabaseConnection): Promise<void> {
    // After a full disk or a failed write SQLite has rolled back by itself; a second rollback would hide the original error.
    if (this.#file.inTransaction) this.#file.run('rollback')
  }
}

/** The part of better-sqlite3's interface that Kysely uses. Statements are prepared once and cached. */
function betterSqliteInterface(file: SqliteFile): SqliteDatabase {
  const statements = new Map<string, Statement>()
  const find = (sql: string): Statement => {
    const statement = statements.get(sql) ?? file.prepare(sql)
    statements.set(sql, statement)
    const [oldest] = statements
    if (oldest && statements.size > MAX_CACHED_STATEMENTS) {
      statements.delete(oldest[0])
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
    for (const statement of statements.values()) statement.finalize()
    statements.clear()
    file.close()
  }
  return { prepare, close }
}
