/** PostgreSQL with `pg`: a bounded pool, the same tables, and messages for the operator when it cannot be used. */
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely'
import { Client, type ClientConfig, type CustomTypesConfig, types } from 'pg'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'
import type { Engine } from '../engine.ts'
import { createExclusiveWrites } from '../exclusive-write.ts'
import { missingIndexes } from '../large-indexes.ts'
import { buildIndexes, type MigrateOptions, migrate } from '../migrate.ts'
import { StoreError } from '../store.ts'
import type { Tables, Write } from '../tables.ts'
import { createChangeFeed } from './postgres-change-feed.ts'
import { createTimedPool, poolOf } from './postgres-pool.ts'

/** A server allows 100 by default; several gateways and the operator's tools share them. */
const MAX_CONNECTIONS = 10
const CONNECT_MILLISECONDS = 10_000
/** Below the 4 minutes after which load balancers forget a silent connection; the system's own value is two hours. */
const KEEP_ALIVE_MILLISECONDS = 60_000
/** Once the gateway runs: also the longest wait for a free connection. */
const RUNNING_CONNECT_MILLISECONDS = 5_000
/**
 * The server ends a transaction that its gateway has left idle, such as one that is frozen: the others wait for its rows, and
 * their calls fail meanwhile. Longer than any statement.
 */
const IDLE_TRANSACTION_MILLISECONDS = 15_000
const LOCK_PAUSE_MILLISECONDS = 100

const INT8 = 20
/** Times and counts stay far below 2^53. The default is to return them as text. */
const NUMBERS: CustomTypesConfig = {
  getTypeParser: (type: number, format?: 'text' | 'binary') =>
    type === INT8 ? Number : format === 'binary' ? types.getTypeParser(type, 'binary') : types.getTypeParser(type),
}

/**
 * For one transaction. Without current statistics (a new table, many rows since the last ANALYZE) the planner expects
 * few rows, and collects, hashes or sorts all of them before it returns the first one. With them it expects the rows of a
 * value in every part of the table, and looks for them by time where it takes pages to be dear: the plan that reads the
 * fewest rows must win. Its compiler and its workers cost more than they save.
 */
const FOLLOW_INDEXES = sql`select ${sql.join(
  Object.entries({
    enable_seqscan: 'off',
    enable_bitmapscan: 'off',
    enable_sort: 'off',
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    seq_page_cost: '0',
    random_page_cost: '0',
    jit: 'off',
    max_parallel_workers_per_gather: '0',
  }).map(([name, value]) => sql`set_config(${sql.lit(name)}, ${sql.lit(value)}, true)`),
)}`

type Address = { config: ClientConfig; database: string; where: string; user: string }

/** `url` is `postgres://<user>:<password>@<host>:<port>/<database>`, with parameters such as `?sslmode=require`. */
export async function openPostgres(url: string, options?: MigrateOptions): Promise<Engine> {
  const address = parseAddress(url)
  await migrateUnderLock(address, options)
  const pool = createTimedPool({
    ...address.config,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: RUNNING_CONNECT_MILLISECONDS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MILLISECONDS,
  })
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const { write, writeAlone } = createExclusiveWrites<Write>((work) => db.transaction().execute(work))
  const notifications = createChangeFeed({ db, connect: () => new Client(address.config) })
  return {
    name: 'postgres',
    db,
    readInOrder: (work) =>
      db
        .transaction()
        .setAccessMode('read only')
        .execute(async (reads) => {
          await FOLLOW_INDEXES.execute(reads)
          return work(reads)
        }),
    write,
    writeAlone,
    many_writers: true,
    isUnavailable,
    async now() {
      const { rows } = await sql<{ ms: number }>`
        select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms`.execute(db)
      return Number(rows[0]?.ms)
    },
    notify: notifications.notify,
    watch: notifications.watch,
    async close() {
      await notifications.close()
      await db.destroy()
    },
  }
}

export function parseAddress(url: string): Address {
  const config: ClientConfig = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MILLISECONDS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MILLISECONDS,
    application_name: 'gatehouse',
    types: NUMBERS,
  }
  const client = createClient(config)
  const { host, port, database = '', user = '' } = client
  return { config, database, user, where: host.startsWith('/') ? host : `${host}:${port}` }
}

export function createClient(config: ClientConfig): Client {
  try {
    return new Client(config)
  } catch {
    // Without the cause, which repeats the address and with it the password.
    throw new StoreError(
      `The store's address cannot be read. It must be "postgres://<user>:<password>@<host>:<port>/<database>"; ` +
        'characters such as @, / and # in the password are written as %40, %2F and %23.',
    )
  }
}

/** What an operator's settings of the server or the role would end: a build of an index, or a wait for another process. */
const NO_LIMITS = `select set_config(name, '0', false) from pg_settings where name in
  ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`
/** Another name than that of gateways, which a copy of the store must not run beside. */
const MIGRATOR = 'gatehouse migrate'
/** Calls wait behind a change of a table that waits for a lock: it gives up, and is tried again. */
const LOCK_MILLISECONDS = 1_000

/** A connection for migrations, which may take longer than any other statement. */
function migrationConnection(address: Address): Kysely<Tables> {
  const pool = poolOf({ ...address.config, application_name: MIGRATOR, max: 1 })
  const dialect = new PostgresDialect({
    pool,
    onCreateConnection: async (connection) => {
      await connection.executeQuery(CompiledQuery.raw(NO_LIMITS))
      await connection.executeQuery(CompiledQuery.raw(`set lock_timeout = ${LOCK_MILLISECONDS}`))
    },
  })
  return new Kysely<Tables>({ dialect })
}

/**
 * Processes that start together wait for each other. The indexes have a lock of their own: earlier builds wait for that of
 * the migrations in one statement, and a concurrent build of an index waits for every statement that is open.
 */
async function migrateUnderLock(address: Address, options: MigrateOptions | undefined): Promise<void> {
  if (options?.mode === 'manual') return readAt(address, (db, name) => migrate(db, name, options))
  const missing = await lockedAt(address, async (db, name) => {
    await migrate(db, name, options)
    return missingIndexes(db)
  })
  if (missing.length > 0) await lockedAt(address, buildIndexes, ADVISORY_LOCKS.indexes)
}

/** Only one process at a time works on the tables themselves. */
export const withMigrationLock = <T>(url: string, work: Work<T>): Promise<T> => lockedAt(parseAddress(url), work)

type Work<T> = (db: Kysely<Tables>, name: string) => Promise<T>

async function lockedAt<T>(address: Address, work: Work<T>, lock: number = ADVISORY_LOCKS.migration): Promise<T> {
  const guard = new Client({ ...address.config, application_name: MIGRATOR })
  guard.on('error', () => undefined)
  try {
    await guard.connect()
  } catch (cause) {
    throw new StoreError(cannotUse(address, cause), cause)
  }
  try {
    await guard.query(NO_LIMITS)
    // Not in one statement: its snapshot would hold up what the holder of the lock does.
    while (!(await guard.query('select pg_try_advisory_lock($1) as held', [lock])).rows[0].held)
      await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MILLISECONDS))
    return await readAt(address, work)
  } catch (cause) {
    throw explained(address, cause)
  } finally {
    await guard.end()
  }
}

const nameOf = ({ database, where }: Address): string => `"${database}" at ${where}`

function explained(address: Address, cause: unknown): StoreError {
  const reason = cause instanceof StoreError ? cause.cause : cause
  if (errorDetail(reason).code.startsWith('SQLITE_')) throw cause // of a store that is copied
  const has_own_message = cause instanceof StoreError && !Object.hasOwn(ADVICE, errorDetail(reason).code)
  return has_own_message ? cause : new StoreError(cannotUse(address, reason), reason)
}

/** Reads with one connection, without migrating anything. */
export const readPostgres = <T>(url: string, work: Work<T>): Promise<T> => readAt(parseAddress(url), work)

async function readAt<T>(address: Address, work: Work<T>): Promise<T> {
  const db = migrationConnection(address)
  try {
    return await work(db, nameOf(address))
  } catch (cause) {
    throw explained(address, cause)
  } finally {
    await db.destroy()
  }
}

const ADVICE: Record<string, string> = {
  '28P01': 'Check the user and the password in the address.',
  '28000': 'The server rejects this user from this host; see its pg_hba.conf.',
  '3D000': 'Create the database first (createdb), or use another one.',
  '42501': 'The user must be allowed to create tables in it: grant create on schema public.',
  '53300': 'The server has no free connection; each gateway uses up to 11.',
  ECONNREFUSED: 'Is the server running, and does it listen there?',
  ENOTFOUND: 'Check the host name.',
}

export function cannotUse({ database, where, user }: Address, cause: unknown): string {
  const { code, message } = errorDetail(cause)
  const advice = ADVICE[code]
  const as_user = user === '' ? '' : ` as the user "${user}"`
  return `Cannot use the PostgreSQL database "${database}" at ${where}${as_user}: ${message}.${advice ? ` ${advice}` : ''}`
}

/** A host name with several addresses fails with several errors and no message of its own. */
function errorDetail(cause: unknown): { code: string; message: string } {
  const [first] = cause instanceof AggregateError ? cause.errors : [cause]
  const code = first instanceof Error && 'code' in first ? String(first.code) : ''
  const message = first instanceof Error ? first.message : String(first)
  return { code, message: message || code }
}

/**
 * Classes of SQLSTATE: connection, authentication, transaction state (a server that became a standby), rollback, missing
 * database, resources (a full disk), state of an object (locks), operator intervention (a shutdown), system, configuration.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const UNAVAILABLE = new Set(['08', '25', '28', '3D', '40', '53', '55', '57', '58', 'F0', 'XX'])
/** What pg itself reports has no code. */
const LOST = /terminated|timeout|not respond|not queryable|connection error/i

function isUnavailable(error: unknown): boolean {
  const { code, message } = errorDetail(error)
  if (/^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')) return UNAVAILABLE.has(code.slice(0, 2))
  return code === '' ? LOST.test(message) : /^E[A-Z]+$/.test(code) // those of the operating system
}
