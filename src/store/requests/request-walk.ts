/**
 * Walks through the rows of the request log that meet conditions, in the order of time, a bounded number of rows each
 * step. One condition, that which the fewest rows meet, is read from its index; the rows are then examined for the others.
 */
import { sql } from 'kysely'
import type { Database, Tables } from '../tables.ts'
import { byProvider, type Condition, conditionsOf, type Driver, providerOf } from './request-conditions.ts'
import type { RequestFilter, RequestPosition, RequestQuery } from './request-row.ts'

/** Rows examined by one statement: it blocks the event loop on SQLite. */
export const ROWS_PER_STEP = 4_000
/** Where fewer rows than these meet a condition, they are sorted. */
const MAX_SORTED = 8_000
/** Of several conditions, each is counted up to here, the first rows in the order of the search. */
const MAX_COUNTED = 2_000
/** No time is later. */
const MOST_MILLISECONDS = 8.64e15

type RowColumn = Exclude<keyof Tables['request_log'], 'detail' | 'family' | 'at_ms' | 'row_id'>
type FoundRow = RequestPosition & Partial<Tables['request_log']>

type Walk = {
  /** The next rows, at most `limit`. `end`: the last row that was examined, where there may be more besides those of the limit. */
  step(after: RequestPosition | undefined, limit: number): Promise<{ found: FoundRow[]; end?: RequestPosition }>
}

type WalkParts = Omit<RequestQuery, 'limit'> & {
  /** What is read of each row besides its position. */
  columns?: readonly RowColumn[]
}

/** Undefined: no row meets the conditions. */
export async function openWalk(
  db: Database,
  { filter, after, order = 'desc', columns = [] }: WalkParts,
): Promise<Walk | undefined> {
  const conditions = conditionsOf(filter)
  const provider = await providerOf(db, filter)
  if (provider === 'none') return undefined
  if (provider !== undefined) conditions.push(byProvider(provider))
  const driver = await chooseDriver(db, conditions, { filter, after, order })
  if (driver === 'none_match') return undefined
  const others = conditions.filter((one) => one !== driver).map(({ condition }) => condition)
  return {
    step: (position, limit) => readStep(db, { driver, others, filter, order, limit, columns }, position),
  }
}

const alsoOf = (columns: readonly RowColumn[]): Condition =>
  columns.length === 0 ? sql`` : sql`, ${sql.join(columns.map((column) => sql.ref(`examined.${column}`)))}`

/** Which rows are searched, by their time. */
type Order = NonNullable<RequestQuery['order']>
type Range = { filter: RequestFilter; after: RequestPosition | undefined; order: Order }
type Step = {
  driver: Driver | undefined
  others: readonly Condition[]
  filter: RequestFilter
  order: Order
  limit: number
  columns: readonly RowColumn[]
}

/** `end`: the last row that was examined, where there may be more. */
async function readStep(
  db: Database,
  { driver, others, filter, order, limit, columns }: Step,
  after: RequestPosition | undefined,
): Promise<{ found: FoundRow[]; end?: RequestPosition }> {
  const most = sql`limit ${limit}`
  const searched: Range = { filter, after, order }
  if (driver?.index === 'by_value') {
    const matched = sql`select ${OWN_POSITION}, ${SEARCHED} from request_log as examined where ${driver.condition} limit ${MAX_SORTED}`
    const conditions = and([rangeOf(sql`examined`, searched), ...others])
    return { found: await positions(db, sql`(${matched}) as examined where ${conditions}`, { order, most, columns }) }
  }
  const position = driver?.tag === undefined ? OWN_POSITION : HIT_POSITION
  if (others.length === 0) {
    const [source, range] = sourceOf(driver, searched)
    const found = await sql<FoundRow>`
      select ${position} ${alsoOf(columns)} from ${source} where ${range} ${orderOf(driver, order)} ${most}`.execute(db)
    return { found: found.rows }
  }
  // Its end is read first: rows that are added or deleted meanwhile are neither passed over nor found twice.
  const end = await endOfStep(db, driver, searched)
  const bound = end && (order === 'desc' ? { from_ms: end.at_ms } : { to_ms: end.at_ms + 1 })
  const [source, range] = sourceOf(driver, { ...searched, filter: { ...filter, ...bound } })
  const within = order === 'desc' ? sql`>=` : sql`<=`
  const step = end ? sql`${range} and (${position}) ${within} (${end.at_ms}, ${end.row_id})` : range
  // A limit of its own, so that these rows are read by this index, not by those of the other conditions.
  const examined = sql`select ${position}, ${SEARCHED} from ${source} where ${step} ${orderOf(driver, order)} limit ${NO_LIMIT}`
  const found = await positions(db, sql`(${examined}) as examined where ${and(others)}`, { order, most, columns })
  return { found, ...(end && { end }) }
}

/** The last row of a whole step; undefined: fewer rows are left. Read from the index alone. */
async function endOfStep(
  db: Database,
  driver: Driver | undefined,
  searched: Range,
): Promise<RequestPosition | undefined> {
  const [source, range] = sourceOf(driver, searched, 'index')
  const position = driver?.tag === undefined ? OWN_POSITION : HIT_POSITION
  const { rows } = await sql<RequestPosition>`
    select ${position} from ${source} where ${range} ${orderOf(driver, searched.order)} limit 1 offset ${ROWS_PER_STEP - 1}`.execute(
    db,
  )
  return rows[0]
}

/** What is read, in the order of its index, and which part of it; `index`: only positions. */
function sourceOf(
  driver: Driver | undefined,
  searched: Range,
  read: 'index' | 'rows' = 'rows',
): [Condition, Condition] {
  if (driver?.tag === undefined) {
    const range = rangeOf(sql`examined`, searched)
    return [sql`request_log as examined`, driver ? and([driver.condition, range]) : range]
  }
  const hits = sql`hits.tag = ${driver.tag} and ${rangeOf(sql`hits`, searched)}`
  if (read === 'index') return [sql`request_tags as hits`, hits]
  return [
    sql`request_tags as hits cross join request_log as examined`,
    sql`${hits} and examined.row_id = hits.row_id and examined.at_ms = hits.at_ms`,
  ]
}

function orderOf(driver: Driver | undefined, order: Order): Condition {
  const [table, way] = [driver?.tag === undefined ? sql`examined` : sql`hits`, order === 'desc' ? sql`desc` : sql`asc`]
  return sql`order by ${table}.at_ms ${way}, ${table}.row_id ${way}`
}

type Most = { order: Order; most: Condition; columns: readonly RowColumn[] }

async function positions(db: Database, from: Condition, { order, most, columns }: Most): Promise<FoundRow[]> {
  const { rows } = await sql<FoundRow>`
    select ${OWN_POSITION} ${alsoOf(columns)} from ${from} ${orderOf(undefined, order)} ${most}`.execute(db)
  return rows
}

const NO_LIMIT = Number.MAX_SAFE_INTEGER
const OWN_POSITION = sql`examined.at_ms, examined.row_id`
/** Those of the index, so that its order is seen to be that of the result. */
const HIT_POSITION = sql`hits.at_ms, hits.row_id`
const SEARCHED = sql.join(
  'request_id token_id project_id end_user session trace_id model provider target status error total_ms cost tags'
    .split(' ')
    .map((column) => sql.ref(`examined.${column}`)),
)

const and = (conditions: readonly Condition[]): Condition => sql.join([...conditions], sql` and `)

/** Times are always bounded, so that each statement has the same form. */
function rangeOf(table: Condition, { filter, after, order }: Range): Condition {
  const { from_ms = 0, to_ms = Number.MAX_SAFE_INTEGER } = filter
  const [at_ms, row_id] = [sql`${table}.at_ms`, sql`${table}.row_id`]
  if (order === 'asc') {
    if (!after || after.at_ms < from_ms) return sql`${at_ms} >= ${from_ms} and ${at_ms} < ${to_ms}`
    return sql`${at_ms} < ${to_ms} and (${at_ms}, ${row_id}) > (${after.at_ms}, ${after.row_id})`
  }
  if (!after || after.at_ms >= to_ms) return sql`${at_ms} >= ${from_ms} and ${at_ms} < ${to_ms}`
  return sql`${at_ms} >= ${from_ms} and (${at_ms}, ${row_id}) < (${after.at_ms}, ${after.row_id})`
}

/** Undefined: rows are read by time. */
async function chooseDriver(
  db: Database,
  conditions: readonly Driver[],
  range: Range,
): Promise<Driver | 'none_match' | undefined> {
  const [first] = conditions
  if (conditions.length === 1 && first?.index === 'by_time') return first
  let best: Driver | undefined
  let lowest = Number.POSITIVE_INFINITY
  for (const one of conditions) {
    if (one.index === 'no') continue
    const rank = await (one.index === 'by_time' ? rankByTime(db, one, range) : rankByValue(db, one))
    if (rank === 0) return 'none_match'
    if (rank >= lowest) continue
    best = one
    lowest = rank
  }
  return best
}

/**
 * How many of the searched rows meet it; of many, which need not be sorted, the time of one of the first in the order of
 * the search, after all counts: the further away it is, the fewer rows meet the condition.
 */
async function rankByTime(db: Database, driver: Driver, searched: Range): Promise<number> {
  const [source, range] = sourceOf(driver, searched, 'index')
  const at_ms = driver.tag === undefined ? sql`examined.at_ms` : sql`hits.at_ms`
  const isNewestFirst = searched.order === 'desc'
  const last = isNewestFirst ? sql`min(at_ms)` : sql`max(at_ms)`
  const { rows } = await sql<{ count: number; last_ms: number | null }>`
    select count(*) as count, ${last} as last_ms from (
      select ${at_ms} from ${source} where ${range} ${orderOf(driver, searched.order)} limit ${MAX_COUNTED + 1}) as matched`.execute(
    db,
  )
  const { count = 0, last_ms } = rows[0] ?? {}
  if (Number(count) <= MAX_COUNTED) return Number(count)
  return MAX_SORTED + 1 + (isNewestFirst ? Number(last_ms) : MOST_MILLISECONDS - Number(last_ms))
}

/** How many rows of all times meet it; too many cannot be sorted. */
async function rankByValue(db: Database, { condition }: Driver): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (
      select 1 from request_log as examined where ${condition} limit ${MAX_SORTED + 1}) as matched`.execute(db)
  const count = Number(rows[0]?.count ?? 0)
  return count <= MAX_SORTED ? count : Number.POSITIVE_INFINITY
}
