/** `gatehouse migrate partition`: turns the request log into partitions by day, while gateways of this version write it. */
import { sql } from 'kysely'
import { MIGRATIONS } from '../migrate.ts'
import { OLDEST_REASON } from '../migrations/0046-oldest-reason.ts'
import {
  checkName,
  dropCheck,
  firstName,
  otherName,
  PARTITIONED,
  type Partitioned,
  partitionsOf,
  startOfDay,
} from '../requests/request-partitions.ts'
import { readSchema, schemaNumber } from '../schema-state.ts'
import { StoreError } from '../store.ts'
import type { Database, Write } from '../tables.ts'
import { withMigrationLock } from './postgres.ts'

/** Rows go to the table as it was for so long, in which gateways drop the check if the command is killed. */
const DAYS_TO_CHANGE = 7
const OLDEST = schemaNumber(Object.keys(OLDEST_REASON))
const RETRIED = new Set(['55P03', '40P01'])
const PAUSE_MILLISECONDS = 2_000
/** Calls wait behind a change that waits for a lock. */
const LOCK_MILLISECONDS = 200

export type PartitionStep = 'index' | 'check' | 'exchange'
type Options = {
  now_ms: number
  onStep?: (step: PartitionStep) => void
}

export type PartitionPlan = { rows: number; until_ms: number; is_done: boolean; oldest: number }

/** What `partitionRequests` would do; changes nothing. Throws StoreError where it cannot. */
export const planPartitions = (url: string, { now_ms }: Options): Promise<PartitionPlan> =>
  withMigrationLock(url, (db, where) => planWith(db, { where, now_ms }))

async function planWith(db: Database, { where, now_ms }: { where: string; now_ms: number }): Promise<PartitionPlan> {
  if ((await readSchema(db, Object.keys(MIGRATIONS))).status !== 'current')
    throw new StoreError(`The database ${where} does not have the schema of this build: run gatehouse migrate status.`)
  const is_done = (await partitionsOf(db, 'request_log')).length > 0
  const { rows } = await sql<{ rows: number }>`
    select greatest(reltuples, 0)::bigint as rows from pg_class where oid = to_regclass('request_log')`.execute(db)
  return { rows: Number(rows[0]?.rows), until_ms: startOfDay(now_ms, DAYS_TO_CHANGE), is_done, oldest: OLDEST }
}

/** Each step can be interrupted, and begins anew the next time; only the last one changes what gateways use. */
export const partitionRequests = (url: string, { now_ms, onStep }: Options): Promise<PartitionPlan> =>
  withMigrationLock(url, async (db, where) => {
    const plan = await planWith(db, { where, now_ms })
    if (plan.is_done) return plan
    onStep?.('index')
    await db.connection().execute(async (one) => {
      await sql`set lock_timeout = 0`.execute(one)
      await sql`drop index concurrently if exists request_log_once`.execute(one)
      await sql`create unique index concurrently request_log_once on request_log (row_id, at_ms)`.execute(one)
      await sql`set lock_timeout = ${sql.lit(LOCK_MILLISECONDS)}`.execute(one)
    })
    try {
      onStep?.('check')
      for (const table of PARTITIONED) await checkTimes(db, table, plan.until_ms)
      onStep?.('exchange')
      await retried(() => db.transaction().execute((write) => exchange(write, plan)))
    } catch (error) {
      for (const table of PARTITIONED) await retried(() => dropCheck(db, table))
      throw error
    }
    return plan
  })

/** By a validated check the table becomes a partition without being read under a lock. */
async function checkTimes(db: Database, table: Partitioned, until_ms: number): Promise<void> {
  const check = sql.ref(checkName(table))
  await retried(() => dropCheck(db, table))
  await retried(() =>
    sql`alter table ${sql.table(table)} add constraint ${check}
      check (at_ms < ${sql.lit(until_ms)}) not valid`.execute(db),
  )
  await retried(() => sql`alter table ${sql.table(table)} validate constraint ${check}`.execute(db))
}

async function exchange(write: Write, { until_ms }: PartitionPlan): Promise<void> {
  await sql`lock table request_log, request_tags in access exclusive mode`.execute(write)
  for (const table of PARTITIONED) {
    const first = firstName(table, until_ms)
    const { rows: indexes } = await sql<{ name: string; definition: string; is_primary: boolean }>`
      select relname as name, pg_get_indexdef(indexrelid) as definition, indisprimary as is_primary
      from pg_index join pg_class on pg_class.oid = indexrelid
      where indrelid = to_regclass(${table}) order by 1`.execute(write)
    await sql`alter table ${sql.table(table)} rename to ${sql.table(first)}`.execute(write)
    for (const { name } of indexes)
      await sql`alter index ${sql.ref(name)} rename to ${sql.ref(`${name}_first`)}`.execute(write)
    const key = table === 'request_tags' ? sql`, constraint request_tags_pk primary key (tag, at_ms, row_id)` : sql``
    await sql`create table ${sql.table(table)} (like ${sql.table(first)} including defaults ${key})
      partition by range (at_ms)`.execute(write)
    for (const { definition, is_primary } of indexes) if (!is_primary) await sql.raw(definition).execute(write)
    await sql`alter table ${sql.table(table)} attach partition ${sql.table(first)}
      for values from (minvalue) to (${sql.lit(until_ms)})`.execute(write)
    await sql`alter table ${sql.table(first)} drop constraint if exists ${sql.ref(checkName(table))}`.execute(write)
    await sql`create table ${sql.table(otherName(table))} partition of ${sql.table(table)} default`.execute(write)
  }
  await sql`update schema_compatibility set oldest = ${OLDEST}, reason = 'the request log is partitioned'
    where schema = (select max(schema) from schema_compatibility)`.execute(write)
}

/** Until the lock is free. */
async function retried(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && RETRIED.has(String(error.code)))) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLISECONDS))
  }
}
