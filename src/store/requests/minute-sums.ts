/**
 * Stores the sums of the request log by minute, written with its rows: a batch of rows adds one row for each of its minutes, which
 * holds a sum for each project, token, model and provider that occur together, and for each end user and tag of a project.
 * Rows of one minute are joined once it is over; hours are made of them.
 */
import { sql } from 'kysely'
import { createInsert } from '../fixed-statements.ts'
import type { LedgerEntry } from '../ledger/ledger-entry.ts'
import { readRevision } from '../revisions.ts'
import type { Database, Write } from '../tables.ts'
import type { RequestRow } from './request-row.ts'
import {
  addSum,
  byMinute,
  decodeSum,
  emptyMinute,
  encodeSum,
  groupKey,
  largest,
  MINUTE_SECONDS,
  type MinuteSums,
  type StoredSum,
  type Sums,
  sumAt,
} from './request-sum.ts'
import type { MinuteRow } from './sum-row.ts'

const HOUR_SECONDS = 3_600
/** The most groups of one minute. Further groups are summed up without their token; further end users and tags are left out. */
const MAX_GROUPS = 5_000
const MAX_NAMES = 200
/** A minute that has ended for so long is complete but for the calls that still run. */
const COMPLETE_SECONDS = 120
const MINUTES_PER_STEP = 10

/**
 * Adds the sums of rows that are new, in the transaction that adds them. A call counts in the minute of its arrival; where
 * the hour of that was already summed up, in the first minute after it.
 */
export async function addToMinutes(write: Write, rows: readonly RequestRow[]): Promise<void> {
  if (rows.length === 0) return
  const earliest = await sumsUntil(write, 'request_hours')
  const added: MinuteRow[] = []
  for (const [start, { row_id, sums }] of byMinute(rows, earliest)) added.push(rowOf(String(row_id), start, sums))
  await insertMinutes(
    write,
    added.flatMap(({ id, start, sums, users, tags }) => [id, start, sums, users, tags]),
  )
}

const insertMinutes = createInsert({
  table: 'request_minutes',
  columns: ['id', 'start', 'sums', 'users', 'tags'],
  after: '',
})

/**
 * Adds what the ledger records later than the call itself, such as what a task is charged at its end, in the transaction
 * of the entries: at that time, as no further call.
 */
export async function addCharges(write: Write, entries: readonly LedgerEntry[]): Promise<void> {
  const [first] = entries
  if (!first) return
  const earliest = await sumsUntil(write, 'request_hours')
  const minutes = new Map<number, MinuteSums>()
  for (const { at_ms, project_id, token_id, model, provider, end_user, cost, amount } of entries) {
    const start = Math.max(earliest, Math.floor(at_ms / 60_000) * MINUTE_SECONDS)
    const minute = minutes.get(start) ?? emptyMinute()
    minutes.set(start, minute)
    const sums = [sumAt(minute.groups, groupKey(project_id ?? '', token_id, model, provider))]
    if (end_user) sums.push(sumAt(minute.users, `${project_id ?? ''}\0${end_user}`))
    for (const sum of sums) {
      sum.cost += cost ?? 0
      sum.charge += amount ?? 0
    }
  }
  const added = [...minutes].map(([start, sums]) => rowOf(`ledger:${first.entry_id}`, start, sums))
  await write.insertInto('request_minutes').values(added).execute()
}

const rowOf = (id: string, start: number, { groups, users, tags }: MinuteSums): MinuteRow => ({
  id,
  start,
  sums: encode(groups),
  users: users.size === 0 ? null : encode(users),
  tags: tags.size === 0 ? null : encode(tags),
})

const encode = (sums: Sums): string => JSON.stringify([...sums].map(([key, sum]) => [key, ...encodeSum(sum)]))

function addStored(sums: Sums, stored: string | null): void {
  if (stored === null) return
  for (const [key, ...sum] of JSON.parse(stored) as [string, ...StoredSum][]) addSum(sumAt(sums, key), decodeSum(sum))
}

export function addMinute(sums: MinuteSums, row: Pick<MinuteRow, 'sums' | 'users' | 'tags'>): void {
  addStored(sums.groups, row.sums)
  addStored(sums.users, row.users)
  addStored(sums.tags, row.tags)
}

/** Until when (unix seconds) hours, or days, are summed up. */
export async function sumsUntil(db: Database, noun: 'request_hours' | 'request_days'): Promise<number> {
  return (await readRevision(db, noun)) ?? 0
}

/** Joins the rows of some complete minutes; false: nothing is left to join. */
export async function joinMinutes(write: Write, now: number): Promise<boolean> {
  const { rows: minutes } = await sql<{ start: number }>`
    select start from request_minutes where start >= ${now - 2 * HOUR_SECONDS} and start < ${now - COMPLETE_SECONDS}
    group by start having count(*) > 1 order by start limit ${MINUTES_PER_STEP}`.execute(write)
  for (const { start } of minutes) {
    const rows = await write.deleteFrom('request_minutes').where('start', '=', start).returningAll().execute()
    const [first] = rows
    // Another process has joined them.
    if (!first) continue
    const sums = emptyMinute()
    for (const row of rows) addMinute(sums, row)
    await write
      .insertInto('request_minutes')
      .values(rowOf(first.id, start, bounded(sums)))
      .execute()
  }
  return minutes.length === MINUTES_PER_STEP
}

function bounded({ groups, users, tags }: MinuteSums): MinuteSums {
  const kept: Sums = new Map()
  const ordered = groups.size <= MAX_GROUPS ? groups : [...groups].sort(([, a], [, b]) => b.calls - a.calls)
  for (const [key, sum] of ordered) {
    const [project = '', , model = '', provider = ''] = key.split('\0')
    if (kept.size < MAX_GROUPS) kept.set(key, sum)
    else addSum(sumAt(kept, groupKey(project, '', model, provider)), sum)
  }
  return { groups: kept, users: largest(users, MAX_NAMES), tags: largest(tags, MAX_NAMES) }
}

/** Finds the rows whose JSON text may contain a name, without reading the others. */
export function namesUser(name: string) {
  const pattern = `%${JSON.stringify(name)
    .slice(1, -1)
    .replace(/[\\%_]/g, '\\$&')}%`
  return sql<boolean>`users like ${pattern} escape '\\'`
}

/** Takes an end user out of the sums of minutes. */
export async function eraseFromMinutes(write: Write, end_user: string, project_id: string | undefined): Promise<void> {
  const rows = await write
    .selectFrom('request_minutes')
    .select(['start', 'id', 'users'])
    .where(namesUser(end_user))
    .execute()
  for (const { start, id, users } of rows) {
    const left = (JSON.parse(users ?? '[]') as [string, ...StoredSum][]).filter(([key]) => {
      const at = key.indexOf('\0')
      return key.slice(at + 1) !== end_user || (project_id !== undefined && key.slice(0, at) !== project_id)
    })
    await write
      .updateTable('request_minutes')
      .set({ users: left.length === 0 ? null : JSON.stringify(left) })
      .where((row) => row.and({ start, id }))
      .execute()
  }
}
