/** How much a search of the request log reads of a large table, and where it ends. */
import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { Client } from 'pg'
import { ENGINES } from '../../../test/kit/engines.ts'
import { startPostgres } from '../../../test/kit/postgres.ts'
import { requestRow } from '../../../test/kit/request-rows.ts'
import type { Engine } from '../engine.ts'
import { openPostgres } from '../engines/postgres.ts'
import { openSqlite } from '../engines/sqlite.ts'
import { requestLogStore } from './request-log.ts'
import type { RequestFilter, RequestLogStore, RequestPosition, RequestRow } from './request-row.ts'
import { searchRequests } from './request-search.ts'

const ROWS = 20_000
/** What one statement may read: a step of the search, with the tag of each of its rows. */
const MOST_READ = 2 * 4_000 + 200

/** Every condition but the last ones is met by thousands of rows. */
const CONDITIONS: RequestFilter[] = [
  { token_id: 'tok_even' },
  { model: 'p/third' },
  { provider: 'p' },
  { target: 'p/m' },
  { project_id: 'proj' },
  { end_user: 'ann' },
  { tag: 'usual' },
  { error: 'any' },
  { status: 200 },
  { status: 5 },
  { status: 4 },
  { min_cost: 500 },
  { min_cost: 2_000 },
  { min_ms: 500 },
  { min_ms: 2_000 },
  { to_ms: ROWS / 2 },
  { min_cost: 20_000_000 },
  { min_ms: 20_000 },
]

const FILTERS = CONDITIONS.flatMap((one, at) => [
  one,
  ...CONDITIONS.slice(at + 1).map((other) => ({ ...one, ...other })),
])

const rows = (): RequestRow[] =>
  Array.from({ length: ROWS }, (_, at) =>
    requestRow({
      row_id: at + 1,
      at_ms: at,
      ...(at === 9 && { request_id: 'req_unique' }),
      token_id: at % 2 ? 'tok_odd' : 'tok_even',
      model: at % 3 ? 'p/other' : 'p/third',
      provider: 'p',
      target: at % 2 ? 'p/m' : 'p/n',
      project_id: at % 2 ? null : 'proj',
      end_user: 'ann',
      error: at % 2 ? 'upstream_error' : null,
      status: at % 2 ? 502 : 200,
      cost: at % 10_000 === 1 ? 50_000_000 : at % 1_000,
      total_ms: at % 10_000 === 1 ? 50_000 : at % 1_000,
      tags: at % 2 ? ['usual'] : [],
    }),
  )

async function fill(log: RequestLogStore, added: readonly RequestRow[]): Promise<void> {
  for (let at = 0; at < added.length; at += 1_000) await log.append(added.slice(at, at + 1_000))
}

type PlanNode = { [name: string]: unknown; 'Node Type': string; Plans?: PlanNode[] }

/** The rows that a plan has read from tables and indexes, those that its conditions removed included. */
function rowsRead(node: PlanNode): number {
  const number = (name: string) => Number(node[name] ?? 0)
  const own = 'Relation Name' in node || 'Index Name' in node
  const rows = number('Actual Rows') + number('Rows Removed by Filter') + number('Rows Removed by Index Recheck')
  const below = (node.Plans ?? []).reduce((sum, plan) => sum + rowsRead(plan), 0)
  return below + (own ? rows * number('Actual Loops') : 0)
}

/** The most that one statement of `work` reads, as PostgreSQL executes it on the same connection. */
async function mostRead(work: () => Promise<unknown>): Promise<{ statements: number; rows: number; plan: string }> {
  const query = Client.prototype.query as (this: Client, ...given: unknown[]) => unknown
  const plans: Promise<PlanNode>[] = []
  const spy = spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...given: unknown[]) {
    const [text, values] = given
    if (typeof text === 'string' && /\brequest_(log|tags)\b/.test(text)) {
      const explained = query.call(this, `explain (analyze, format json) ${text}`, values) as Promise<{
        rows: { 'QUERY PLAN': { Plan: PlanNode }[] }[]
      }>
      plans.push(explained.then(({ rows }) => rows[0]?.['QUERY PLAN'][0]?.Plan ?? { 'Node Type': 'none' }))
    }
    return query.apply(this, given)
  } as typeof Client.prototype.query)
  try {
    await work()
  } finally {
    spy.mockRestore()
  }
  const read = (await Promise.all(plans)).map((plan) => ({ rows: rowsRead(plan), plan: JSON.stringify(plan) }))
  const most = read.reduce((most, one) => (one.rows > most.rows ? one : most), { rows: 0, plan: '' })
  return { statements: plans.length, ...most }
}

describe('a search of the request log', () => {
  const postgres = ENGINES.find(({ name }) => name === 'postgres')
  if (!postgres) throw new Error('the suite has no PostgreSQL')
  afterEach(() => postgres.cleanup())

  test('reads a bounded number of rows by each pair of conditions, with and without statistics of the tables', async () => {
    const store = await postgres.open()
    await fill(store.requestLog, rows())
    for (const before of ['', 'analyze request_log, request_tags']) {
      if (before) await postgres.run?.(before)
      for (const filter of FILTERS) {
        const { statements, rows, plan } = await mostRead(() => store.requestLog.search({ filter, limit: 50 }))
        if (statements === 0) throw new Error('no statement was seen')
        if (rows > MOST_READ) throw new Error(`${JSON.stringify(filter)} reads ${rows} rows: ${plan}`)
      }
    }
  })
})

describe('SQLite', () => {
  test('reads the rows of each pair of conditions from an index in the order of time, and sorts only a bounded number', async () => {
    const engine = await openSqlite(':memory:')
    const log = requestLogStore(engine)
    await fill(log, rows())
    const prepare = spyOn(Database.prototype, 'prepare')
    try {
      for (const order of ['desc', 'asc'] as const)
        for (const filter of FILTERS) await log.search({ filter, limit: 50, order })
      const statements = [...new Set(prepare.mock.calls.map(([statement]) => statement))]
      expect(statements.length).toBeGreaterThan(50)
      const file = prepare.mock.contexts[0] as Database
      prepare.mockRestore()
      for (const statement of statements) {
        const plan = file
          .query<{ detail: string }, []>(`explain query plan ${statement}`)
          .all()
          .map(({ detail }) => detail)
        expect(plan.filter((step) => /^SCAN (?!examined$|matched$)/.test(step))).toEqual([])
        const sorts = plan.some((step) => step.includes('TEMP B-TREE'))
        const isByValue = plan.some((step) => /INDEX request_log_by_(cost|duration|request) /.test(step))
        if (sorts && !isByValue) throw new Error(`${statement}\n${plan.join('\n')}`)
      }
    } finally {
      prepare.mockRestore()
      await engine.close()
    }
  })
})

/** What each condition of the admin API is read by. Of a status below 300 and of small amounts, by time. */
const INDEXES: [RequestFilter, string][] = [
  [{}, 'by_time'],
  [{ request_id: 'req_unique' }, 'by_request'],
  [{ trace_id: 't' }, 'by_trace'],
  [{ session: 's' }, 'by_session'],
  [{ end_user: 'ann' }, 'by_user'],
  [{ token_id: 'tok_even' }, 'by_token'],
  [{ project_id: 'proj' }, 'by_project'],
  [{ model: 'p/third' }, 'by_model'],
  [{ target: 'p/m' }, 'by_provider'],
  [{ provider: 'p' }, 'by_provider'],
  [{ error: 'any' }, 'errors'],
  [{ error: 'upstream_error' }, 'by_error'],
  [{ status: 502 }, 'by_status'],
  [{ status: 5 }, 'by_class'],
  [{ status: 200 }, 'by_time'],
  [{ min_cost: 20_000_000 }, 'by_cost'],
  [{ min_ms: 20_000 }, 'by_duration'],
  [{ min_cost: 500 }, 'by_time'],
]

describe('a condition alone', () => {
  let engine: Engine
  let log: RequestLogStore
  beforeAll(async () => {
    engine = await openSqlite(':memory:')
    log = requestLogStore(engine)
    await fill(log, rows())
  })
  afterAll(() => engine.close())

  test.each(INDEXES)('%j is read by the index %s', async (filter, index) => {
    const prepare = spyOn(Database.prototype, 'prepare')
    await log.search({ filter, limit: 5 })
    const statements = prepare.mock.calls.map(([statement]) => statement)
    const file = prepare.mock.contexts[0] as Database
    prepare.mockRestore()
    const used = statements
      .flatMap((statement) => file.query<{ detail: string }, []>(`explain query plan ${statement}`).all())
      .flatMap(({ detail }) => /USING (?:COVERING )?INDEX request_log_(\w+)/.exec(detail)?.[1] ?? [])
    expect([...new Set(used)]).toEqual([index])
  })

  test('a tag is read by the key of its table', async () => {
    const prepare = spyOn(Database.prototype, 'prepare')
    await log.search({ filter: { tag: 'usual' }, limit: 5 })
    const [statement = ''] = prepare.mock.calls.map(([statement]) => statement)
    const file = prepare.mock.contexts[0] as Database
    prepare.mockRestore()
    const [plan] = file.query<{ detail: string }, []>(`explain query plan ${statement}`).all()
    expect(plan?.detail).toMatch(/^SEARCH hits USING .*INDEX .*\(tag=\?/)
  })
})

describe('a search by target', () => {
  test.each([
    ['a/b/c', [3, 2, 1]],
    ['a/b', [4]],
    ['b/c', []],
    ['nothing', []],
  ])('finds %s, whichever of its slashes ends the provider', async (target, expected) => {
    const engine = await openSqlite(':memory:')
    const log = requestLogStore(engine)
    await fill(log, [
      requestRow({ row_id: 1, at_ms: 1, provider: 'a', target: 'a/b/c' }),
      requestRow({ row_id: 2, at_ms: 2, provider: 'a/b', target: 'a/b/c' }),
      requestRow({ row_id: 3, at_ms: 3, provider: 'a', target: 'a/b/c' }),
      requestRow({ row_id: 4, at_ms: 4, provider: 'a', target: 'a/b' }),
    ])
    const { rows: found } = await log.search({ filter: { target }, limit: 9 })
    expect(found.map(({ row_id }) => row_id)).toEqual(expected)
    await engine.close()
  })
})

const OPEN: Record<string, () => Promise<Engine>> = {
  SQLite: () => openSqlite(':memory:'),
  PostgreSQL: async () => openPostgres(await (await startPostgres()).createDatabase()),
}
for (const [name, open] of Object.entries(OPEN)) {
  describe(`${name}: a search`, () => {
    const MANY = 33_000
    let engine: Engine
    beforeAll(async () => {
      engine = await open()
      // Two common conditions that only the oldest two rows meet together, with a class of their own.
      const many = Array.from({ length: MANY }, (_, at) =>
        requestRow({
          row_id: at + 1,
          at_ms: at,
          total_ms: at < 2 ? 9_000 : 1,
          ...(at < 2 ? { status: 404, error: 'model_not_found' } : at % 2 && { status: 502, error: 'upstream_error' }),
          model: at < MANY / 2 ? 'p/old' : 'p/new',
        }),
      )
      await fill(requestLogStore(engine), many)
    })
    afterAll(() => engine.close())

    /** A clock that gives each search so many milliseconds at each reading. */
    type Given = { after?: RequestPosition; step_ms: number; order?: 'asc' | 'desc'; limit?: number }
    const search = (filter: RequestFilter, { step_ms, limit = 5, ...query }: Given) => {
      let at_ms = 0
      const now = () => (at_ms += step_ms)
      return engine.readInOrder((reads) => searchRequests(reads, { filter, limit, ...query }, now))
    }
    const idsOf = (found: readonly RequestRow[]) => found.map(({ row_id }) => row_id)
    const slow: RequestFilter = { token_id: 'tok_1', min_ms: 5_000 }

    test('examines 4,000 rows where they have taken 30 ms, and is continued where it ended', async () => {
      const first = await search(slow, { step_ms: 30 })
      expect([first.rows, first.next]).toEqual([[], { at_ms: MANY - 4_000, row_id: MANY - 3_999 }])
      const later = await search(slow, { after: { at_ms: 4_000, row_id: 4_001 }, step_ms: 30 })
      expect([idsOf(later.rows), later.next]).toEqual([[2, 1], { at_ms: 0, row_id: 1 }])
      const last = await search(slow, { after: { at_ms: 3_999, row_id: 4_000 }, step_ms: 30 })
      expect([idsOf(last.rows), last.next]).toEqual([[2, 1], undefined])
    })

    test('goes on while it has taken less than 30 ms, for at most 32,000 rows', async () => {
      const first = await search(slow, { step_ms: 0 })
      expect([first.rows, first.next]).toEqual([[], { at_ms: MANY - 32_000, row_id: MANY - 31_999 }])
      const second = await search(slow, { after: { at_ms: 31_999, row_id: 32_000 }, step_ms: 0 })
      expect([idsOf(second.rows), second.next]).toEqual([[2, 1], undefined])
      // After the first 4,000 rows, the clock is read before each step.
      const at29 = await search(slow, { step_ms: 9.9 })
      expect(at29.next?.at_ms).toBe(MANY - 16_000)
      const at30 = await search(slow, { step_ms: 10 })
      expect(at30.next?.at_ms).toBe(MANY - 12_000)
    })

    test('reads the oldest first, and is continued where it ended', async () => {
      const order = 'asc'
      const rare = { token_id: 'tok_1', status: 4 }
      expect(idsOf((await search(rare, { step_ms: 0, order })).rows)).toEqual([1, 2])
      const after = { at_ms: 0, row_id: 1 }
      expect(idsOf((await search(rare, { after, step_ms: 0, order })).rows)).toEqual([2])
      expect(idsOf((await search({}, { after, step_ms: 0, order, limit: 3 })).rows)).toEqual([2, 3, 4])
      expect(idsOf((await search({ from_ms: 5, to_ms: 7 }, { after, step_ms: 0, order })).rows)).toEqual([6, 7])
      // The slow rows are the oldest: the others are examined step by step.
      const first = await search(slow, { after: { at_ms: 2, row_id: 3 }, step_ms: 30, order })
      expect([first.rows, first.next]).toEqual([[], { at_ms: 4_002, row_id: 4_003 }])
    })

    test('finds the same rows in both directions, by every pair of conditions', async () => {
      const conditions = [{ error: 'any' }, { status: 502 }, { model: 'p/old' }, { token_id: 'tok_1' }, { min_ms: 2 }]
      for (const one of conditions)
        for (const other of conditions) {
          const filter = { ...one, ...other, from_ms: 0, to_ms: 40 }
          const down = await search(filter, { step_ms: 0, limit: 100 })
          const up = await search(filter, { step_ms: 0, limit: 100, order: 'asc' })
          expect(idsOf(up.rows)).toEqual(idsOf(down.rows).reverse())
        }
    })

    test('finds a class of statuses among many of another one', async () => {
      const { rows, next } = await search({ status: 4 }, { step_ms: 30 })
      expect([idsOf(rows), next]).toEqual([[2, 1], undefined])
    })

    test('ends at once where a condition is met in none of the times', async () => {
      const filter = { token_id: 'tok_1', model: 'p/old', min_ms: 5_000, from_ms: MANY / 2 }
      expect(await search(filter, { step_ms: 30 })).toEqual({ rows: [], next: undefined })
    })

    test('reads by the condition that is rarer among the newest rows', async () => {
      // Of the newest rows half have failed: the errors of 8,000 rows are examined, not the rows of the token.
      const filter = { token_id: 'tok_1', error: 'any', min_ms: 5_000 }
      const { next } = await search(filter, { step_ms: 30 })
      expect(next?.at_ms).toBeLessThan(MANY - 7_900)
    })
  })
}
