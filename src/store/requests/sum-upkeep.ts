/** Keeps the sums of the request log: joins minutes, makes hours of them and days of hours, and deletes old ones. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Database, Write } from '../tables.ts'
import { addMinute, joinMinutes, sumsUntil } from './minute-sums.ts'
import { emptyMinute } from './request-sum.ts'
import { DAY_SECONDS, HOUR_SECONDS, putScopes, toScopeSums } from './sum-rows.ts'
import { addScope, type SumsByScope, scopeAt, scopeId, scopeOf, toScopes } from './sum-scopes.ts'

/** How long sums are kept, in seconds. */
export type KeptSums = { minutes: number; hours: number; days: number }

/** After an hour has ended: calls that arrived in it may still run. */
const GRACE_SECONDS = 1_200
const ROWS_PER_READ = 200
/** End users and tags of one period. */
const MOST_NAMES = 200
const DELETED_PER_BATCH = 500

type Upkeep = Pick<Engine, 'db' | 'write'>

/** Whether this process does it in this minute: of several processes on one store one does. */
export async function claimUpkeep({ write }: Pick<Engine, 'write'>, now: number): Promise<boolean> {
  const minute = Math.floor(now / 60)
  return write(async (rows) => {
    const { rows: claimed } = await sql`
      update revisions set revision = ${minute} where noun = 'request_sums' and revision < ${minute}
      returning revision`.execute(rows)
    return claimed.length > 0
  })
}

/** One step of bounded size; false: nothing is left to do. Each step may be repeated, by any process. */
export async function upkeepStep({ db, write: inTransaction }: Upkeep, now: number, kept: KeptSums): Promise<boolean> {
  // What a power failure takes away is the end of it, which is done again.
  const engine: Upkeep = { db, write: (work) => inTransaction(work, { is_synced: false }) }
  if (await engine.write((write) => joinMinutes(write, now))) return true
  if (await sumHour(engine, now)) return true
  if (await sumDay(engine)) return true
  return engine.write((write) => deleteOld(write, now, kept))
}

async function sumHour({ db, write }: Upkeep, now: number): Promise<boolean> {
  const ended = floor(now - GRACE_SECONDS, HOUR_SECONDS)
  const until = await sumsUntil(db, 'request_hours')
  if (until >= ended) return false
  const earliest = await db
    .selectFrom('request_minutes')
    .select('start')
    .where('start', '>=', until)
    .where('start', '<', ended)
    .orderBy('start')
    .limit(1)
    .executeTakeFirst()
  if (earliest) {
    const start = floor(earliest.start, HOUR_SECONDS)
    const minute = emptyMinute()
    await eachMinute(db, { from: start, to: start + HOUR_SECONDS }, (row) => addMinute(minute, row))
    await putScopes(write, { period: HOUR_SECONDS, start }, withMostNames(toScopes(minute)))
    await setUntil(write, 'request_hours', start + HOUR_SECONDS)
  } else await setUntil(write, 'request_hours', ended)
  return earliest !== undefined
}

async function sumDay({ db, write }: Upkeep): Promise<boolean> {
  const ended = floor(await sumsUntil(db, 'request_hours'), DAY_SECONDS)
  const until = await sumsUntil(db, 'request_days')
  if (until >= ended) return false
  const earliest = await db
    .selectFrom('request_sums')
    .select('start')
    .where('period', '=', HOUR_SECONDS)
    .where('start', '>=', until)
    .where('start', '<', ended)
    .orderBy('start')
    .limit(1)
    .executeTakeFirst()
  if (earliest) {
    const start = floor(earliest.start, DAY_SECONDS)
    const scopes: SumsByScope = new Map()
    for (let hour = start; hour < start + DAY_SECONDS; hour += HOUR_SECONDS) await addHour(db, hour, scopes)
    await putScopes(write, { period: DAY_SECONDS, start }, withMostNames(scopes))
    await setUntil(write, 'request_days', start + DAY_SECONDS)
  } else await setUntil(write, 'request_days', ended)
  return earliest !== undefined
}

async function addHour(db: Database, start: number, scopes: SumsByScope): Promise<void> {
  let after = { kind: '', scope: '' }
  for (;;) {
    const rows = await db
      .selectFrom('request_sums')
      .selectAll()
      .where('period', '=', HOUR_SECONDS)
      // In the order of the index of times: that of the key would read the scopes of all hours.
      .where(sql<boolean>`(start, kind, scope) > (${start}, ${after.kind}, ${after.scope})`)
      .where('start', '<', start + HOUR_SECONDS)
      .orderBy('start')
      .orderBy('kind')
      .orderBy('scope')
      .limit(ROWS_PER_READ)
      .execute()
    for (const row of rows) addScope(scopeAt(scopes, scopeId({ kind: row.kind, key: row.scope })), toScopeSums(row))
    const last = rows.at(-1)
    if (!last || rows.length < ROWS_PER_READ) return
    after = last
    await nextTurn()
  }
}

/** Rows of minutes in the order of time. `to` is not included. */
export async function eachMinute(
  db: Database,
  { from, to }: { from: number; to: number },
  use: (row: { start: number; sums: string; users: string | null; tags: string | null }) => void,
): Promise<void> {
  let after = { start: from, id: '' }
  for (;;) {
    const rows = await db
      .selectFrom('request_minutes')
      .selectAll()
      .where(sql<boolean>`(start, id) > (${after.start}, ${after.id})`)
      .where('start', '<', to)
      .orderBy('start')
      .orderBy('id')
      .limit(ROWS_PER_READ)
      .execute()
    for (const row of rows) use(row)
    const last = rows.at(-1)
    if (!last || rows.length < ROWS_PER_READ) return
    after = last
    await nextTurn()
  }
}

/** Of end users and tags, whose names clients choose, only those with the most calls have rows of their own. */
export function withMostNames(scopes: SumsByScope): SumsByScope {
  for (const kind of ['user', 'tag'] as const) {
    const named = [...scopes].filter(([id]) => scopeOf(id).kind === kind)
    named.sort(([, a], [, b]) => b.total.calls - a.total.calls)
    for (const [id] of named.slice(MOST_NAMES)) scopes.delete(id)
  }
  return scopes
}

const setUntil = (write: Engine['write'], noun: 'request_hours' | 'request_days', until: number) =>
  write((rows) =>
    rows
      .updateTable('revisions')
      .set({ revision: until })
      .where('noun', '=', noun)
      .where('revision', '<', until)
      .execute(),
  )

/** What is not summed up yet stays, however old it is. */
async function deleteOld(write: Write, now: number, kept: KeptSums): Promise<boolean> {
  const hours = await sumsUntil(write, 'request_hours')
  const days = await sumsUntil(write, 'request_days')
  const minutes = await sql`
    delete from request_minutes where (start, id) in
      (select start, id from request_minutes where start < ${Math.min(hours, now - kept.minutes)}
       order by start limit ${DELETED_PER_BATCH}) returning 1`.execute(write)
  let isMore = minutes.rows.length === DELETED_PER_BATCH
  for (const [period, before] of [
    [HOUR_SECONDS, Math.min(days, now - kept.hours)],
    [DAY_SECONDS, now - kept.days],
  ] as const) {
    const deleted = await sql`
      delete from request_sums where (period, kind, scope, start) in
        (select period, kind, scope, start from request_sums where period = ${period} and start < ${before}
         order by start limit ${DELETED_PER_BATCH}) returning 1`.execute(write)
    if (deleted.rows.length === DELETED_PER_BATCH) isMore = true
  }
  return isMore
}

const floor = (seconds: number, period: number): number => Math.floor(seconds / period) * period
