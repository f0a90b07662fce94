/**
 * The days of a partitioned request log (PostgreSQL, after `gatehouse migrate partition`): makes them ahead, and drops those
 * that are no longer kept. Times are unix milliseconds, days those of UTC.
 */
import { sql } from 'kysely'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'
import type { Database, Write } from '../tables.ts'

const DAY_MS = 86_400_000
const DAYS_AHEAD = 3
export const PARTITIONED = ['request_log', 'request_tags'] as const
export type Partitioned = (typeof PARTITIONED)[number]

const FEEDBACK_PER_BATCH = 500
/** Writers wait behind a change that waits for a lock. */
const LOCK_MILLISECONDS = 100
/** A lock is not free, another process was faster, or rows of the day are in the partition of all others. */
const LATER = new Set(['55P03', '40P01', '42P07', '23514', '57014'])

export const startOfDay = (ms: number, days = 0): number => (Math.floor(ms / DAY_MS) + days) * DAY_MS

const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')
const dayName = (table: Partitioned, ms: number): string => `${table}_${dateOf(ms)}`
/** Of the rows from before the table was partitioned. */
export const firstName = (table: Partitioned, until_ms: number): string => `${table}_until_${dateOf(until_ms)}`
/** Of rows whose day has no partition, so that no row is refused. */
export const otherName = (table: Partitioned): string => `${table}_other`

/** The check by which the table becomes its first partition. */
export const checkName = (table: Partitioned): string => `${table}_until`

/** The first millisecond after its rows; undefined: it has no end. */
function endOf(name: string): number | undefined {
  const [, first, date = ''] = /_(until_)?(\d{8})$/.exec(name) ?? []
  if (date === '') return undefined
  const ms = Date.parse(`${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}`)
  return first === undefined ? ms + DAY_MS : ms
}

/** None: the table is not partitioned. */
export async function partitionsOf(db: Database, table: Partitioned): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = to_regclass(${table}) order by 1`.execute(db)
  return rows.map(({ name }) => name)
}

/** Returns the time up to which rows are still to be deleted one by one: days are dropped as a whole. */
export async function keepPartitions(
  db: Database,
  { now_ms, before_ms }: { now_ms: number; before_ms: number },
): Promise<number> {
  for (const table of PARTITIONED) {
    const names = await partitionsOf(db, table)
    if (names.length === 0) {
      await dropLeftChecks(db)
      return before_ms
    }
    for (const start_ms of daysWithout(names, { table, now_ms }))
      await changeSoon(db, (write) => addDay(write, table, start_ms))
    for (const name of names)
      if ((endOf(name) ?? Number.POSITIVE_INFINITY) <= before_ms)
        await changeSoon(db, (write) => dropPartition(write, { table, name }))
  }
  return startOfDay(before_ms)
}

/** The starts of the next days that have no partition yet. */
function daysWithout(names: readonly string[], { table, now_ms }: { table: Partitioned; now_ms: number }): number[] {
  const first_end = Math.max(0, ...names.filter((name) => name.includes('_until_')).map((name) => endOf(name) ?? 0))
  return Array.from({ length: DAYS_AHEAD + 1 }, (_, days) => startOfDay(now_ms, days)).filter(
    (ms) => ms >= first_end && !names.includes(dayName(table, ms)),
  )
}

const addDay = (write: Write, table: Partitioned, start_ms: number) =>
  sql`create table ${sql.table(dayName(table, start_ms))} partition of ${sql.table(table)}
    for values from (${sql.lit(start_ms)}) to (${sql.lit(start_ms + DAY_MS)})`.execute(write)

async function dropPartition(write: Write, { table, name }: { table: Partitioned; name: string }): Promise<void> {
  if (!(await partitionsOf(write, table)).includes(name)) return
  if (table === 'request_log') while (await deleteFeedback(write, name));
  await sql`drop table ${sql.table(name)}`.execute(write)
}

/** One batch of that of a partition, which may have more rows than a statement can read in its time; false: nothing is left. */
async function deleteFeedback(write: Write, name: string): Promise<boolean> {
  const of_day = sql`${sql.table(name)} as of_day`
  const deleted = await sql`
    delete from request_feedback where row_id in (
      select given.row_id from request_feedback as given
      where given.row_id between (select min(row_id) from ${of_day}) and (select max(row_id) from ${of_day})
        and (select 1 from ${of_day} where of_day.row_id = given.row_id) = 1
      limit ${FEEDBACK_PER_BATCH})`.execute(write)
  return deleted.numAffectedRows === BigInt(FEEDBACK_PER_BATCH)
}

/** Those that a killed `migrate partition` has left would refuse rows from their day on; one that runs holds the lock. */
async function dropLeftChecks(db: Database): Promise<void> {
  for (const table of PARTITIONED) {
    const { rows } = await sql`
      select 1 from pg_constraint where conrelid = to_regclass(${table}) and conname = ${checkName(table)}`.execute(db)
    if (rows.length > 0) await changeSoon(db, (write) => dropCheck(write, table), ADVISORY_LOCKS.migration)
  }
}

export const dropCheck = (db: Database, table: Partitioned) =>
  sql`alter table ${sql.table(table)} drop constraint if exists ${sql.ref(checkName(table))}`.execute(db)

/** Where the change cannot be made at once, it is left to the next time. */
async function changeSoon(
  db: Database,
  change: (write: Write) => Promise<unknown>,
  advisory_lock: number = ADVISORY_LOCKS.partitions,
): Promise<void> {
  try {
    await db.transaction().execute(async (write) => {
      const lock = sql<{ held: boolean }>`select pg_try_advisory_xact_lock(${sql.lit(advisory_lock)}) as held`
      if (!(await lock.execute(write)).rows[0]?.held) return
      await sql`set local lock_timeout = ${sql.lit(LOCK_MILLISECONDS)}`.execute(write)
      await change(write)
    })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && LATER.has(String(error.code)))) throw error
  }
}
