/** The conditions of a search of the request log, and which of them an index finds. */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../tables.ts'
import type { RequestFilter } from './request-row.ts'

export type Condition = RawBuilder<unknown>
/** A condition, and whether the rows that meet it are found by an index, in the order of time or in another one. */
export type Driver = { condition: Condition; index: 'by_time' | 'by_value' | 'no'; tag?: string }

/** Of the indices of the expensive and the slow ones. */
const LEAST = { cost: 10_000_000, total_ms: 10_000 }

/** Searched by one value. */
export const VALUE_COLUMNS = [
  'request_id',
  'trace_id',
  'session',
  'end_user',
  'token_id',
  'project_id',
  'target',
  'model',
  'provider',
] as const

/** Targets have no index of their own: see `providerOf`. */
const INDEX_OF: Partial<Record<(typeof VALUE_COLUMNS)[number], Driver['index']>> = {
  request_id: 'by_value',
  target: 'no',
}

export const byProvider = (provider: string): Driver => ({
  condition: sql`examined.provider = ${provider}`,
  index: 'by_time',
})

/**
 * The provider of the target that is searched. The ids of providers and of models may contain a slash: it is the one that
 * the log knows; undefined where it knows several, or none is needed.
 */
export async function providerOf(
  db: Database,
  { target, provider }: RequestFilter,
): Promise<string | 'none' | undefined> {
  if (target === undefined || provider !== undefined) return undefined
  const known: string[] = []
  for (let at = target.indexOf('/'); at > 0 && known.length < 2; at = target.indexOf('/', at + 1)) {
    const id = target.slice(0, at)
    const { rows } = await sql`select 1 from request_log where provider = ${id} limit 1`.execute(db)
    if (rows.length > 0) known.push(id)
  }
  return known.length > 1 ? undefined : (known[0] ?? 'none')
}

/** The most selective kinds first: the first one decides where several are met by many rows. */
export function conditionsOf(filter: RequestFilter): Driver[] {
  const drivers: Driver[] = []
  const add = (condition: Condition, index: Driver['index'] = 'by_time') => void drivers.push({ condition, index })
  for (const column of VALUE_COLUMNS) {
    const value = filter[column]
    if (value !== undefined) add(sql`${sql.ref(`examined.${column}`)} = ${value}`, INDEX_OF[column] ?? 'by_time')
  }
  const { tag, error, status, min_cost, min_ms } = filter
  if (tag !== undefined) drivers.push({ condition: hasTag(tag), index: 'by_time', tag })
  if (error !== undefined) add(error === 'any' ? sql`examined.error is not null` : sql`examined.error = ${error}`)
  if (status !== undefined) add(statusIs(status), status >= 300 || (status >= 3 && status < 10) ? 'by_time' : 'no')
  if (min_cost !== undefined && min_cost > 0)
    add(atLeast('cost', LEAST.cost, min_cost), min_cost >= LEAST.cost ? 'by_value' : 'no')
  if (min_ms !== undefined && min_ms > 0)
    add(atLeast('total_ms', LEAST.total_ms, min_ms), min_ms >= LEAST.total_ms ? 'by_value' : 'no')
  return drivers
}

/** As a value, which is computed for each examined row: `exists` may become a join, which reads every row of the tag. */
const hasTag = (tag: string): Condition =>
  sql`(select 1 from request_tags where request_tags.tag = ${tag}
    and request_tags.at_ms = examined.at_ms and request_tags.row_id = examined.row_id) = 1`

/** The indices, one of statuses and one of classes, have no status below 300: nearly all rows have one. */
function statusIs(status: number): Condition {
  const own = sql.ref('examined.status')
  if (status >= 3 && status < 10) return sql`${own} >= 300 and ${own} / 100 = ${sql.lit(status)}`
  if (status > 0 && status < 3) return sql`${own} >= ${status * 100} and ${own} < ${status * 100 + 100}`
  return status >= 300 ? sql`${own} >= 300 and ${own} = ${status}` : sql`${own} = ${status}`
}

/** An index of a part of the rows is used where the statement says that it reads no others. */
function atLeast(column: 'cost' | 'total_ms', indexed: number, least: number): Condition {
  const own = sql.ref(`examined.${column}`)
  return least >= indexed ? sql`${own} >= ${sql.lit(indexed)} and ${own} >= ${least}` : sql`${own} >= ${least}`
}
