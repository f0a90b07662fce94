/** Kysely's dialect for `bun:sqlite`: one connection, immediate transactions, cached statements. */
import type { Database as SqliteFile, Statement } from 'bun:sqlite'
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
  const driver = new ImmediateDriver(file, database)
  return {
    createDriver: () => driver,
    createAdapter: () => new OneConnectionAdapter(database, driver),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  }
}

class OneConnectionAdapter extends SqliteAdapter implements ImmediateStatements {
  readonly #database: SqliteDatabase
  readonly #driver: Pick<ImmediateDriver, 'isFree'>
  constructor(database: SqliteDatabase, driver: Pick<ImmediateDriver, 'isFree'>) {
    super()
    this.#database = database
    this.#driver = driver
  }
  /** SQLite can roll back schema changes. Declaring it makes the migrator use one (immediate) transaction. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }
  isFree(): boolean {
    return this.#driver.isFree()
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
  #isAcquired = false
  constructor(file: SqliteFile, database: SqliteDatabase) {
    super({ database })
    this.#file = file
  }
  /** Whether no transaction is open, so that a statement of anybody sees only what is committed. */
  isFree(): boolean {
    return !this.#isAcquired && !this.#file.inTransaction
  }
  override acquireConnection(): Promise<DatabaseConnection> {
    this.#isAcquired = true
    return super.acquireConnection()
  }
  override releaseConnection(): Promise<void> {
    this.#isAcquired = false
    return super.releaseConnection()
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
  const statements = new Map<string, CachedStatement>()
  const prepareNew = (sql: string): CachedStatement => {
    const statement = new CachedStatement(file.prepare(sql))
    statements.set(sql, statement)
    const [oldest] = statements
    if (oldest && statements.size > MAX_CACHED_STATEMENTS) {
      statements.delete(oldest[0])
      oldest[1].finalize()
    }
    return statement
  }
  const close = () => {
    // An unfinished statement would keep the file open, and the write-ahead log beside it.
    for (const statement of statements.values()) statement.finalize()
    statements.clear()
    file.close()
  }
  return { prepare: (sql) => statements.get(sql) ?? prepareNew(sql), close }
}

/** A list of values is bound as it is: spreading it would copy it for each execution. */
class CachedStatement implements SqliteStatement {
  readonly reader: boolean
  readonly #statement: Statement
  constructor(statement: Statement) {
    this.reader = statement.columnNames.length > 0
    this.#statement = statement
  }
  all(parameters: readonly unknown[]): unknown[] {
    return this.#statement.all(parameters as never)
  }
  run(parameters: readonly unknown[]) {
    return this.#statement.run(parameters as never)
  }
  iterate(parameters: readonly unknown[]): IterableIterator<unknown> {
    return this.#statement.iterate(parameters as never) as IterableIterator<unknown>
  }
  finalize(): void {
    this.#statement.finalize()
  }
}
