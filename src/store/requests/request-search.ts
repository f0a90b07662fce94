/**
 * Searches the request log. One condition, that which the fewest rows meet, is read from its index in the order of time,
 * newest first unless the oldest are wanted; the rows are then examined for the others. A search ends after a bounded number of rows and a bounded time, and its cursor
 * continues it.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Database, Tables } from '../tables.ts'
import type { RequestFilter, RequestPage, RequestPosition, RequestQuery, RequestRow } from './request-row.ts'

/** Rows examined by one statement: it blocks the event loop on SQLite. */
const ROWS_PER_STEP = 4_000
/** After its first step, a search starts no other one after so many milliseconds, */
const MAX_STARTED_MILLISECONDS = 30
/** or so many steps. */
const MAX_STEPS = 8
/** Where fewer rows than these meet a condition, they are sorted. */
const MAX_SORTED = 8_000
/** Of several conditions, each is counted up to here, the first rows in the order of the search. */
const MAX_COUNTED = 2_000
/** No time is later. */
const MOST_MILLISECONDS = 8.64e15

type Condition = RawBuilder<unknown>
/** A condition, and whether the rows that meet it are found by an index, in the order of time or in another one. */
type Driver = { condition: Condition; index: 'by_time' | 'by_value' | 'no'; tag?: string }

type FoundRow = Tables['request_log']

/** `now`: milliseconds that never go back. */
export async function searchRequests(
  db: Database,
  { filter, after, limit, order = 'desc' }: RequestQuery,
  now: () => number = () => performance.now(),
): Promise<RequestPage> {
  const started = now()
  const conditions = conditionsOf(filter)
  const provider = await providerOf(db, filter)
  if (provider === 'none') return { rows: [], next: undefined }
  if (provider !== undefined) conditions.push(byProvider(provider))
  const driver = await chooseDriver(db, conditions, { filter, after, order })
  if (driver === 'none_match') return { rows: [], next: undefined }
  const others = conditions.filter((one) => one !== driver).map(({ condition }) => condition)
  const found: RequestPosition[] = []
  let position = after
  for (let step = 0; step === 0 || (step < MAX_STEPS && now() - started < MAX_STARTED_MILLISECONDS); step++) {
    const step_of = { driver, others, filter, order, limit: limit + 1 - found.length }
    const { positions, end } = await readStep(db, step_of, position)
    found.push(...positions)
    if (found.length > limit) {
      const page = found.slice(0, limit)
      return { rows: await rowsAt(db, page), next: page.at(-1) }
    }
    position = end
    if (!end) break
    await nextTurn()
  }
  return { rows: await rowsAt(db, found), next: position }
}

async function rowsAt(db: Database, at: readonly RequestPosition[]): Promise<RequestRow[]> {
  if (at.length === 0) return []
  const ids = at.map(({ row_id }) => row_id)
  const rows = new Map((await findRows(db, ids)).map((row) => [row.row_id, row]))
  return ids.flatMap((id) => rows.get(id) ?? [])
}

export async function findRows(db: Database, row_ids: readonly number[]): Promise<RequestRow[]> {
  if (row_ids.length === 0) return []
  const rows = await db
    .selectFrom('request_log')
    .selectAll()
    .where('row_id', 'in', [...row_ids])
    .execute()
  return rows.map(toRow)
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Which rows are searched, by their time. */
type Order = NonNullable<RequestQuery['order']>
type Range = { filter: RequestFilter; after: RequestPosition | undefined; order: Order }
type Step = {
  driver: Driver | undefined
  others: readonly Condition[]
  filter: RequestFilter
  order: Order
  limit: number
}

/** `end`: the last row that was examined, where there may be more. */
async function readStep(
  db: Database,
  { driver, others, filter, order, limit }: Step,
  after: RequestPosition | undefined,
): Promise<{ positions: RequestPosition[]; end?: RequestPosition }> {
  const most = sql`limit ${limit}`
  const searched: Range = { filter, after, order }
  if (driver?.index === 'by_value') {
    const matched = sql`select ${OWN_POSITION}, ${SEARCHED} from request_log as examined where ${driver.condition} limit ${MAX_SORTED}`
    const conditions = and([rangeOf(sql`examined`, searched), ...others])
    return { positions: await positions(db, sql`(${matched}) as examined where ${conditions}`, { order, most }) }
  }
  const position = driver?.tag === undefined ? OWN_POSITION : HIT_POSITION
  if (others.length === 0) {
    const [source, range] = sourceOf(driver, searched)
    const found = await sql<RequestPosition>`
      select ${position} from ${source} where ${range} ${orderOf(driver, order)} ${most}`.execute(db)
    return { positions: found.rows }
  }
  // Its end is read first: rows that are added or deleted meanwhile are neither passed over nor found twice.
  const end = await endOfStep(db, driver, searched)
  const bound = end && (order === 'desc' ? { from_ms: end.at_ms } : { to_ms: end.at_ms + 1 })
  const [source, range] = sourceOf(driver, { ...searched, filter: { ...filter, ...bound } })
  const within = order === 'desc' ? sql`>=` : sql`<=`
  const step = end ? sql`${range} and (${position}) ${within} (${end.at_ms}, ${end.row_id})` : range
  // A limit of its own, so that these rows are read by this index, not by those of the other conditions.
  const examined = sql`select ${position}, ${SEARCHED} from ${source} where ${step} ${orderOf(driver, order)} limit ${NO_LIMIT}`
  const found = await positions(db, sql`(${examined}) as examined where ${and(others)}`, { order, most })
  return { positions: found, ...(end && { end }) }
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
  return [sql`request_tags as hits cross join request_log as examined`, sql`${hits} and examined.row_id = hits.row_id`]
}

function orderOf(driver: Driver | undefined, order: Order): Condition {
  const [table, way] = [driver?.tag === undefined ? sql`examined` : sql`hits`, order === 'desc' ? sql`desc` : sql`asc`]
  return sql`order by ${table}.at_ms ${way}, ${table}.row_id ${way}`
}

type Most = { order: Order; most: Condition }

async function positions(db: Database, from: Condition, { order, most }: Most): Promise<RequestPosition[]> {
  const { rows } = await sql<RequestPosition>`
    select ${OWN_POSITION} from ${from} ${orderOf(undefined, order)} ${most}`.execute(db)
  return rows
}

const NO_LIMIT = Number.MAX_SAFE_INTEGER
const OWN_POSITION = sql`examined.at_ms, examined.row_id`
/** Those of the index, so that its order is seen to be that of the result. */
const HIT_POSITION = sql`hits.at_ms, hits.row_id`
const SEARCHED = sql.join(
  'request_id token_id project_id end_user session trace_id model provider target status error total_ms cost'
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

/** Of the indices of the expensive and the slow ones. */
const LEAST = { cost: 10_000_000, total_ms: 10_000 }

const COLUMNS = [
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
const INDEX_OF: Partial<Record<(typeof COLUMNS)[number], Driver['index']>> = { request_id: 'by_value', target: 'no' }

const byProvider = (provider: string): Driver => ({
  condition: sql`examined.provider = ${provider}`,
  index: 'by_time',
})

/**
 * The provider of the target that is searched. The ids of providers and of models may contain a slash: it is the one that
 * the log knows; undefined where it knows several, or none is needed.
 */
async function providerOf(db: Database, { target, provider }: RequestFilter): Promise<string | 'none' | undefined> {
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
function conditionsOf(filter: RequestFilter): Driver[] {
  const drivers: Driver[] = []
  const add = (condition: Condition, index: Driver['index'] = 'by_time') => void drivers.push({ condition, index })
  for (const column of COLUMNS) {
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

const toRow = ({ tags, detail, ...row }: FoundRow): RequestRow => ({
  ...row,
  tags: tags === null ? [] : (JSON.parse(tags) as string[]),
  detail: JSON.parse(detail) as RequestRow['detail'],
})
