/** The request log in ClickHouse: its rows are found as those of the store are, a row is there once, and its failures are said. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'bun:test'
import { DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { loadConfig } from '../src/config/load/load.ts'
import { createClickHouse } from '../src/observe/export/clickhouse.ts'
import { createClickHouseLog, statementsOf } from '../src/observe/requests/clickhouse-log.ts'
import { openStore } from '../src/store/open-store.ts'
import type { RequestFilter, RequestRow } from '../src/store/requests/request-row.ts'
import { OWNER, startAdminGateway } from './kit/admin.ts'
import { CLICKHOUSE_ENGINES } from './kit/clickhouse.ts'
import { requestRow } from './kit/request-rows.ts'

const START = 1_767_225_600_000
const ROWS = 300
const HOSTILE = `a'b\\c"); DROP TABLE x; -- {y:String} ünï\n\t\u{1F600}`
const never = new AbortController().signal

/** Rows in which every condition is met by some; two have one time. */
const rows: RequestRow[] = Array.from({ length: ROWS }, (_, index) =>
  requestRow({
    row_id: index + 1,
    at_ms: START + Math.floor(index / 2) * 60_000,
    request_id: index === 7 ? HOSTILE : `req_${index}`,
    token_id: `tok_${index % 3}`,
    project_id: index % 4 === 0 ? null : `proj_${index % 2}`,
    end_user: index % 5 === 0 ? HOSTILE : null,
    session: index % 6 === 0 ? 's' : null,
    trace_id: index % 7 === 0 ? 'f'.repeat(32) : null,
    model: `m${index % 2}`,
    provider: index % 2 === 0 ? 'acme' : 'b/c',
    target: index % 2 === 0 ? 'acme/large' : 'b/c/small',
    status: [200, 429, 500, 0][index % 4] as number,
    error: index % 4 === 1 ? 'rate_limit_exceeded' : null,
    total_ms: index * 100 + 0.5,
    cost: index % 3 === 0 ? null : index * 1_000_000,
    tags: index % 9 === 0 ? ['team:red', HOSTILE] : [],
    detail: index % 2 === 0 ? { units: { input_tokens: index, output_tokens: 2 } as never, provider_cost: 5 } : {},
  }),
)

const FILTERS: RequestFilter[] = [
  {},
  { from_ms: START + 600_000, to_ms: START + 1_200_000 },
  { request_id: HOSTILE },
  { trace_id: 'f'.repeat(32), session: 's' },
  { end_user: HOSTILE },
  { tag: HOSTILE },
  { tag: 'none' },
  { token_id: 'tok_1', project_id: 'proj_1' },
  { model: 'm1', provider: 'b/c' },
  { target: 'acme/large' },
  { status: 429 },
  { status: 5 },
  { status: 0 },
  { error: 'any' },
  { error: 'rate_limit_exceeded', min_ms: 15_000.25 },
  { min_cost: 100_000_000 },
]

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

describe.each(CLICKHOUSE_ENGINES)('with $name', ({ isCurrent, start }) => {
  let engine: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    engine = await start()
  }, 120_000)
  afterAll(() => engine.stop())

  /** Older servers know neither these types nor these indexes, so the table is made for them. */
  async function logOf(table: string) {
    const { stop: _, ...settings } = { ...engine, table, keep_days: 3_660 }
    if (!isCurrent) {
      const [create = ''] = statementsOf({ url: engine.url, table })
      const plain = create
        .replaceAll(/LowCardinality\(((?:Nullable\()?String\)?)\)/g, '$1')
        .replaceAll(/, INDEX \w+ \w+ TYPE \S+ GRANULARITY \d/g, '')
      await createClickHouse(settings).run(plain, {})
    }
    return {
      settings: { ...settings, create: isCurrent },
      log: createClickHouseLog({ ...settings, create: isCurrent }),
    }
  }

  it('finds, counts and pages rows as the store does, each once though they were sent twice', async () => {
    const { log } = await logOf('found')
    expect(await log.append(rows, never)).toBe(0)
    expect(await log.append(rows.slice(100), never)).toBe(0)
    const store = await openStore({ url: 'sqlite::memory:' })
    closing.push(() => store.close())
    await store.requestLog.append(rows)
    for (const filter of FILTERS) {
      for (const order of ['asc', 'desc'] as const) {
        const read = async (reader: Pick<typeof log, 'search'>) => {
          const found: RequestRow[] = []
          for (let page = await reader.search({ filter, limit: 41, order }); ; ) {
            found.push(...page.rows)
            if (!page.next) return found
            page = await reader.search({ filter, limit: 41, order, after: page.next })
          }
        }
        expect({ filter, found: await read(log) }).toEqual({ filter, found: await read(store.requestLog) })
      }
      const sorted = ({ counts, ...rest }: Awaited<ReturnType<typeof log.facets>>) => ({
        ...rest,
        counts: [...counts].map(([name, values]) => [name, [...values].sort()]),
      })
      expect(sorted(await log.facets(filter))).toEqual(sorted(await store.requestLog.facets(filter)))
    }
    const ids = [7, 8, 299, 1_000]
    const byId = (found: RequestRow[]) => found.sort((a, b) => a.row_id - b.row_id)
    expect(byId(await log.find(ids))).toEqual(byId(await store.requestLog.find(ids)))
  }, 120_000)

  it('sums usage of each row once', async () => {
    if (!isCurrent) return
    const { settings, log } = await logOf('used')
    for (let time = 0; time < 2; time++) await log.append(rows, never)
    const [sums] = await createClickHouse(settings).select(
      'SELECT sum(requests) AS requests, sum(input_tokens) AS tokens, sum(cost) AS cost FROM default.used_usage',
      10,
    )
    const cost = rows.reduce((sum, row) => sum + (row.cost ?? 0), 0) / 1e9
    const tokens = rows.reduce((sum, { detail }) => sum + (detail.units?.input_tokens ?? 0), 0)
    expect(sums).toEqual({ requests: ROWS, tokens, cost: expect.closeTo(cost, 6) })
  }, 120_000)

  it('refuses rows for good where it will never take them, and no others', async () => {
    const { log } = await logOf('refused')
    const bad = requestRow({ status: 'no number' as never })
    expect(await log.append([bad], never)).toBe(1)
    const { settings } = await logOf('other')
    const missing = createClickHouseLog({ ...settings, table: 'missing', create: false })
    await expect(missing.append([requestRow()], never)).rejects.toThrow(/ClickHouse answered \d+, code 60\./)
    await expect(missing.search({ filter: {}, limit: 1 })).rejects.toMatchObject({ code: 'storage_unavailable' })
  }, 120_000)

  it('is searched by the admin API, with rows that the store does not have', async () => {
    const { settings } = await logOf('served')
    const request_log = { ...DEFAULT_REQUEST_LOG, enabled: false, reader: 'clickhouse' as const }
    const gateway = await startAdminGateway({ request_log: { ...request_log, sinks: [{ clickhouse: settings }] } })
    closing.push(() => gateway[Symbol.asyncDispose]())
    const json = { model: 'sandbox/moderation', input: 'hi' }
    for (const id of ['first', 'second'])
      await (await gateway.call('/v1/moderations', { json, headers: { 'x-request-id': id } })).arrayBuffer()
    const read = async (path: string) => {
      const response = await gateway.call(path, { headers: { authorization: `Bearer ${OWNER}` } })
      expect(response.status).toBe(200)
      return (await response.json()) as { data: { id: string; request_id: string }[] }
    }
    const { data } = await read('/admin/v1/requests?model=sandbox/moderation')
    expect(data.map(({ request_id }) => request_id).sort()).toEqual(['first', 'second'])
    expect(await read(`/admin/v1/requests/${data[0]?.id}`)).toMatchObject({ request_id: data[0]?.request_id as string })
  }, 120_000)
})

describe('a sink of ClickHouse', () => {
  function recorded(answer: (statement: string) => Response) {
    const statements: { query: string; body: string; key: string | null }[] = []
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const query = new URL(request.url).searchParams.get('query') ?? ''
        const body = await request.text()
        statements.push({ query, body, key: request.headers.get('x-clickhouse-key') })
        return answer(query || body)
      },
    })
    closing.push(() => server.stop(true))
    return { url: `http://127.0.0.1:${server.port}`, statements }
  }

  it('makes its table again after a failure, sends the password in a header, and repeats neither in its errors', async () => {
    let isAway = true
    const { url, statements } = recorded(() =>
      isAway ? new Response(`Code: 516. DB::Exception: secret-password`, { status: 403 }) : new Response(),
    )
    const log = createClickHouseLog({ url, password: 'secret-password', keep_days: 30 })
    const failure = await log.append([requestRow()], never).catch((error: Error) => error.message)
    expect(failure).toBe('ClickHouse answered 403, code 516.')
    isAway = false
    expect(await log.append([requestRow()], never)).toBe(0)
    expect(statements.map(({ query, body }) => (query || body).slice(0, 12))).toEqual([
      'CREATE TABLE',
      'CREATE TABLE',
      'CREATE VIEW ',
      'INSERT INTO ',
    ])
    expect(statements[1]?.body).toContain("TTL toDateTime(intDiv(at_ms, 1000), 'UTC') + INTERVAL 30 DAY DELETE")
    expect(new Set(statements.map(({ key }) => key))).toEqual(new Set(['secret-password']))
    expect(JSON.parse(statements[3]?.body ?? '')).toMatchObject({ row_id: 1, request_id: 'req_1', detail: '{}' })
  })

  it('follows no redirect', async () => {
    const elsewhere = recorded(() => new Response())
    const { url } = recorded(() => new Response('', { status: 307, headers: { location: elsewhere.url } }))
    const log = createClickHouseLog({ url, password: 'secret-password', create: false })
    await expect(log.append([requestRow()], never)).rejects.toThrow('ClickHouse answered 307.')
    expect(elsewhere.statements).toEqual([])
  })
})

describe('a configuration', () => {
  const problemsOf = (request_log: object) => {
    const load = { environment: {}, cwd: '/', flags: {}, readFile: () => JSON.stringify({ request_log }) }
    try {
      loadConfig(load as never)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  it('with a reader needs the sink that it reads, and a sink is one of its kinds', () => {
    const clickhouse = { url: 'https://clickhouse.example.com' }
    expect(problemsOf({ reader: 'clickhouse' })).toContain('needs one sink with `clickhouse`, found 0')
    expect(problemsOf({ sinks: [{ clickhouse, file: { path: 'a' } }] })).toContain('must have one of')
    expect(problemsOf({ sinks: [{ clickhouse: { ...clickhouse, table: 'a; DROP' } }] })).toContain('table')
    expect(problemsOf({ sinks: [{ clickhouse: { ...clickhouse, keep_days: 3_661 } }] })).toContain('keep_days')
    expect(problemsOf({ reader: 'clickhouse', sinks: [{ clickhouse: { ...clickhouse, keep_days: 3_660 } }] })).toBe('')
  })
})
