/**
 * The request log in ClickHouse: makes its table, writes rows, and finds them again for the console. A row that is written twice
 * is one: its key is its time and its id, and the engine keeps one row of a key.
 */
import type { RequestSink } from '../../config/schema/request-log-schema.ts'
import { GatewayError } from '../../spec/error.ts'
import { VALUE_COLUMNS } from '../../store/requests/request-conditions.ts'
import { FACETS, MAX_FACET_VALUES } from '../../store/requests/request-facets.ts'
import type {
  FacetCounts,
  FacetName,
  RequestFilter,
  RequestLogStore,
  RequestRow,
} from '../../store/requests/request-row.ts'
import { ClickHouseError, createClickHouse, literal } from '../export/clickhouse.ts'

type Settings = NonNullable<RequestSink['clickhouse']>
type Reading = Pick<RequestLogStore, 'search' | 'facets' | 'find'>

export type ClickHouseLog = Reading & {
  /** The number of rows that are refused for good; their ids are assigned. Rejects where they are to be written again. */
  append(rows: readonly RequestRow[], signal: AbortSignal): Promise<number>
}

/** Of a statement of the console, and of each of its facets. */
const MAX_SECONDS = 10
const MAX_FACET_ROWS = 1_000_000
/** Errors of ClickHouse that say that these rows will never be taken: of parsing, and of values that have no place. */
const REFUSED = new Set([6, 26, 27, 33, 38, 41, 53, 69, 70, 72, 117, 131, 321, 349, 441])

const COLUMNS = {
  row_id: 'UInt64',
  at_ms: 'UInt64',
  request_id: 'String',
  token_id: 'LowCardinality(String)',
  project_id: 'LowCardinality(Nullable(String))',
  end_user: 'Nullable(String)',
  session: 'Nullable(String)',
  trace_id: 'Nullable(String)',
  family: 'LowCardinality(String)',
  model: 'LowCardinality(String)',
  provider: 'LowCardinality(String)',
  target: 'LowCardinality(String)',
  status: 'UInt16',
  error: 'LowCardinality(Nullable(String))',
  total_ms: 'Float64',
  cost: 'Nullable(Int64)',
  provider_cost: 'Nullable(Int64)',
  input_tokens: 'UInt64',
  output_tokens: 'UInt64',
  tags: 'Array(String)',
  detail: 'String',
} as const
const READ = Object.keys(COLUMNS).filter((name) => !/^(provider_cost|(in|out)put_tokens)$/.test(name))
/** Searched by one value that few rows have. */
const FILTERED = ['request_id', 'trace_id', 'session', 'end_user', 'token_id'] as const

/** `table`: with its database. Times of rows are milliseconds; amounts are billionths of the currency of the ledger. */
export function statementsOf({ database = 'default', table = 'gatehouse_requests', keep_days }: Settings): string[] {
  const name = `${database}.${table}`
  const time = `toDateTime(intDiv(at_ms, 1000), 'UTC')`
  const columns = Object.entries(COLUMNS).map(([column, type]) => `${column} ${type}`)
  const indexes = FILTERED.map((column) => `INDEX by_${column} ${column} TYPE bloom_filter(0.01) GRANULARITY 4`)
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (${[...columns, 'INDEX by_row row_id TYPE minmax GRANULARITY 1', ...indexes].join(', ')})
      ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(${time}) ORDER BY (at_ms, row_id)
      ${keep_days === undefined ? '' : `TTL ${time} + INTERVAL ${keep_days} DAY DELETE`}`,
    `CREATE VIEW IF NOT EXISTS ${name}_usage AS
      SELECT toStartOfHour(${time}) AS hour, token_id, project_id, family, model, provider, count() AS requests,
        countIf(isNotNull(error)) AS errors, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cost) / 1e9 AS cost, sum(provider_cost) / 1e9 AS provider_cost
      FROM ${name} FINAL GROUP BY hour, token_id, project_id, family, model, provider`,
  ]
}

export function createClickHouseLog(settings: Settings): ClickHouseLog {
  const { database = 'default', table = 'gatehouse_requests', create = true } = settings
  const name = `${database}.${table}`
  const clickhouse = createClickHouse(settings)
  let made: Promise<void> | undefined
  /** Once; after a failure with the next rows. */
  function make(signal?: AbortSignal): Promise<void> {
    made ??= (async () => {
      if (create) for (const statement of statementsOf(settings)) await clickhouse.run(statement, { signal })
    })().catch((error: unknown) => {
      made = undefined
      throw error
    })
    return made
  }
  const select = (statement: string) => reading(clickhouse.select(statement, MAX_SECONDS))

  return {
    async append(rows, signal) {
      await make(signal)
      try {
        await clickhouse.run(`INSERT INTO ${name} FORMAT JSONEachRow`, { rows: await linesOf(rows), signal })
        return 0
      } catch (error) {
        if (error instanceof ClickHouseError && REFUSED.has(error.code)) return rows.length
        throw error
      }
    },
    async search({ filter, after, limit, order = 'desc' }) {
      const conditions = conditionsOf(filter)
      if (after) {
        const sign = order === 'desc' ? '<' : '>'
        // The first is what the primary key finds.
        conditions.push(`at_ms ${sign}= ${after.at_ms}`, `(at_ms, row_id) ${sign} (${after.at_ms}, ${after.row_id})`)
      }
      // Of a row that is there twice until parts are merged, the second one is left out here: the engine need not sort them all.
      const most = 2 * (limit + 1)
      const given = await select(
        `SELECT ${READ.join(', ')} FROM ${name} ${where(conditions)} ORDER BY at_ms ${order}, row_id ${order} LIMIT ${most}`,
      )
      const found = [...new Map(given.map(rowOf).map((row) => [row.row_id, row])).values()]
      const rows = found.slice(0, limit)
      const last = rows.at(-1)
      const hasMore = found.length > limit || given.length === most
      return { rows, next: hasMore && last ? { at_ms: last.at_ms, row_id: last.row_id } : undefined }
    },
    async find(row_ids) {
      if (row_ids.length === 0) return []
      const ids = row_ids.map((id) => String(Math.trunc(id)))
      return (
        await select(
          `SELECT ${READ.join(', ')} FROM ${name} WHERE row_id IN (${ids.join(', ')}) LIMIT 1 BY row_id LIMIT ${ids.length}`,
        )
      ).map(rowOf)
    },
    async facets(filter) {
      const columns = ['row_id', 'at_ms', 'tags', ...Object.values(FACETS)].join(', ')
      const newest = `(SELECT ${columns} FROM (SELECT ${columns} FROM ${name} ${where(conditionsOf(filter))}
        ORDER BY at_ms DESC, row_id DESC LIMIT ${MAX_FACET_ROWS}) LIMIT 1 BY row_id)`
      const pairs = Object.entries(FACETS).map(([facet, column]) => `('${facet}', ifNull(toString(${column}), ''))`)
      const values = await select(
        `SELECT facet.1 AS name, facet.2 AS value, count() AS rows FROM ${newest}
        ARRAY JOIN arrayConcat([${pairs.join(', ')}], arrayMap(tag -> ('tag', tag), tags)) AS facet
        WHERE facet.2 != '' GROUP BY name, value ORDER BY rows DESC LIMIT ${MAX_FACET_VALUES + 1} BY name`,
      )
      const [all] = await select(`SELECT count() AS rows, min(at_ms) AS oldest_ms FROM ${newest}`)
      return facetsOf(values, all ?? {})
    },
  }
}

/** A statement that fails or takes too long is said to the console; the cause is logged. */
async function reading<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (cause) {
    const message = `ClickHouse did not answer the search within ${MAX_SECONDS} s or refused it; search a shorter time, or try again.`
    throw new GatewayError('storage_unavailable', message, { retry_after: 5, cause })
  }
}

/** A row takes some ten microseconds: calls go on between two turns. */
const ROWS_PER_TURN = 25

async function linesOf(rows: readonly RequestRow[]): Promise<string> {
  const lines: string[] = []
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % ROWS_PER_TURN === 0) await new Promise(setImmediate)
    const { detail, ...columns } = row
    lines.push(
      JSON.stringify({
        ...columns,
        provider_cost: detail.provider_cost ?? null,
        input_tokens: detail.units?.input_tokens ?? 0,
        output_tokens: detail.units?.output_tokens ?? 0,
        detail: JSON.stringify(detail),
      }),
    )
  }
  return `${lines.join('\n')}\n`
}

const rowOf = ({ detail, ...row }: Record<string, unknown>): RequestRow =>
  ({ ...row, detail: JSON.parse(String(detail)) }) as RequestRow

function conditionsOf(filter: RequestFilter): string[] {
  const conditions: string[] = []
  for (const column of VALUE_COLUMNS) {
    const value = filter[column]
    if (value !== undefined) conditions.push(`${column} = ${literal(value)}`)
  }
  const { from_ms, to_ms, tag, error, status, min_cost, min_ms } = filter
  if (from_ms !== undefined) conditions.push(`at_ms >= ${Math.ceil(from_ms)}`)
  if (to_ms !== undefined) conditions.push(`at_ms < ${Math.ceil(to_ms)}`)
  if (tag !== undefined) conditions.push(`has(tags, ${literal(tag)})`)
  if (error !== undefined) conditions.push(error === 'any' ? 'isNotNull(error)' : `error = ${literal(error)}`)
  if (status !== undefined)
    conditions.push(status > 0 && status < 10 ? `intDiv(status, 100) = ${status}` : `status = ${status}`)
  if (min_cost !== undefined && min_cost > 0) conditions.push(`cost >= ${Math.ceil(min_cost)}`)
  if (min_ms !== undefined && min_ms > 0) conditions.push(`total_ms >= ${min_ms}`)
  return conditions
}

const where = (conditions: readonly string[]): string =>
  conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`

function facetsOf(values: readonly Record<string, unknown>[], all: Record<string, unknown>): FacetCounts {
  const names = [...Object.keys(FACETS), 'tag'] as FacetName[]
  const counts = new Map<FacetName, Map<string, number>>(names.map((name) => [name, new Map()]))
  let isPartial = Number(all.rows ?? 0) >= MAX_FACET_ROWS
  for (const { name, value, rows } of values) {
    const known = counts.get(name as FacetName)
    if (known && known.size < MAX_FACET_VALUES) known.set(String(value), Number(rows))
    else isPartial = true
  }
  const rows = Number(all.rows ?? 0)
  return { counts, rows, oldest_ms: rows === 0 ? null : Number(all.oldest_ms), is_partial: isPartial }
}
