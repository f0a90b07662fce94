/** What each search of the request log reads of a large table, as PostgreSQL executes it. */
import { afterEach, describe, spyOn, test } from 'bun:test'
import { Client } from 'pg'
import { ENGINES } from '../../test/kit/engines.ts'
import { requestRow } from '../../test/kit/request-rows.ts'
import type { RequestFilter } from './request-row.ts'
import type { Store } from './store.ts'

const ROWS = 20_000
/** What one statement may read: a step of the search, with the tag of each of its rows. */
const MOST_READ = 2 * 4_000 + 200

/** Every condition but the last ones is met by thousands of rows. */
const CONDITIONS: RequestFilter[] = [
  { token_id: 'tok_even' },
  { model: 'p/third' },
  { provider: 'p' },
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

async function fill({ requestLog }: Store): Promise<void> {
  const rows = Array.from({ length: ROWS }, (_, at) =>
    requestRow({
      row_id: at + 1,
      at_ms: at,
      token_id: at % 2 ? 'tok_odd' : 'tok_even',
      model: at % 3 ? 'p/other' : 'p/third',
      provider: 'p',
      project_id: at % 2 ? null : 'proj',
      end_user: 'ann',
      error: at % 2 ? 'upstream_error' : null,
      status: at % 2 ? 502 : 200,
      cost: at % 10_000 === 1 ? 50_000_000 : at % 1_000,
      total_ms: at % 10_000 === 1 ? 50_000 : at % 1_000,
      tags: at % 2 ? ['usual'] : [],
    }),
  )
  for (let at = 0; at < ROWS; at += 1_000) await requestLog.append(rows.slice(at, at + 1_000))
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
async function mostRead(work: () => Promise<unknown>): Promise<{ rows: number; plan: string }> {
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
  return read.reduce((most, one) => (one.rows > most.rows ? one : most), { rows: 0, plan: '' })
}

describe('a search of the request log', () => {
  const postgres = ENGINES.find(({ name }) => name === 'postgres')
  if (!postgres) throw new Error('the suite has no PostgreSQL')
  afterEach(() => postgres.cleanup())

  test('reads a bounded number of rows by each pair of conditions, with and without statistics of the tables', async () => {
    const store = await postgres.open()
    await fill(store)
    for (const statements of ['', 'analyze request_log, request_tags']) {
      if (statements) await postgres.run?.(statements)
      for (const filter of FILTERS) {
        const { rows, plan } = await mostRead(() => store.requestLog.search({ filter, limit: 50 }))
        if (rows === 0) throw new Error('no statement was seen')
        if (rows > MOST_READ) throw new Error(`${JSON.stringify(filter)} reads ${rows} rows: ${plan}`)
      }
    }
  })
})
