/**
 * How long a search of a million rows of the request log takes by each filter and by pairs of conditions, on SQLite and
 * on PostgreSQL, before and after ANALYZE, and what adding a row costs. Ends with status 1 where a search takes more than the bound.
 */
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openStore } from '../src/store/open-store.ts'
import type { RequestFilter, RequestRow } from '../src/store/requests/request-row.ts'
import type { Store } from '../src/store/store.ts'
import { startPostgres } from '../test/kit/postgres.ts'

const ROWS = Number(process.env.BENCH_ROWS ?? 1_000_000)
const ROWS_PER_BATCH = 500
const ROUNDS = 7
const MOST_MILLISECONDS = 100
const START = Date.UTC(2026, 0, 1)
const WEEK = 7 * 86_400_000

/** The same numbers in every run. */
function createRandom(): () => number {
  let state = 42
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const random = createRandom()
/** From 0 on, the small ones more often. */
const pick = (count: number): number => Math.floor(random() ** 3 * count)

function rowOf(at: number): RequestRow {
  const isFailed = random() < 0.02
  const provider = `vendor-${pick(6)}`
  const model = `model-${pick(60)}`
  const isSlow = random() < 0.0001
  return {
    row_id: at + 1,
    at_ms: START + Math.floor((at / ROWS) * WEEK),
    request_id: `req_${at.toString(36).padStart(9, '0')}${Math.floor(random() * 2 ** 48).toString(36)}`,
    token_id: `tok_${pick(200).toString().padStart(16, '0')}`,
    project_id: random() < 0.7 ? `proj_${pick(30).toString().padStart(16, '0')}` : null,
    end_user: random() < 0.5 ? `user-${pick(20_000)}` : null,
    session: random() < 0.3 ? `session-${pick(100_000)}` : null,
    trace_id: random() < 0.1 ? at.toString(16).padStart(32, '0') : null,
    family: 'chatcompat',
    model: `${provider}/${model}`,
    provider,
    target: `${provider}/${model}`,
    status: isFailed ? 502 : 200,
    error: isFailed ? (random() < 0.01 ? 'upstream_cut' : 'upstream_error') : null,
    total_ms: isSlow ? 90_000 : Math.round(random() * 20_000) / 10,
    cost: isSlow ? 5_000_000_000 : Math.floor(random() * 1_000_000),
    tags:
      random() < 0.2 ? [`team:${pick(20)}`, at % 100_000 === 0 ? 'rare' : 'usual'] : at % 100_000 === 0 ? ['rare'] : [],
    detail: {
      method: 'POST',
      path: '/v1/chat/completions',
      outcome: 'done',
      first_byte_ms: 123.4,
      units: { input_tokens: 1200, output_tokens: 300, cached_tokens: 1000 },
      provider_cost: 4_000,
      attempts: [{ target: `${provider}/${model}`, ms: 120.5 }],
    },
  }
}

const print = (line: string) => void process.stdout.write(`${line}\n`)
const newest = rowOf(0)
const FILTERS: Record<string, RequestFilter> = {
  none: {},
  'a time in the middle': { from_ms: START + WEEK / 3, to_ms: START + WEEK / 2 },
  'frequent token': { token_id: 'tok_0000000000000000' },
  'rare token': { token_id: 'tok_0000000000000199' },
  'unknown token': { token_id: 'tok_none' },
  'frequent project': { project_id: 'proj_0000000000000000' },
  'rare project': { project_id: 'proj_0000000000000029' },
  'frequent model': { model: 'vendor-0/model-0' },
  'rare model': { model: 'vendor-5/model-59' },
  'rare target': { target: 'vendor-5/model-59' },
  'frequent provider': { provider: 'vendor-0' },
  'rare provider': { provider: 'vendor-5' },
  'status 200': { status: 200 },
  'status 502': { status: 502 },
  'status 503 (none)': { status: 503 },
  'class 5': { status: 5 },
  'class 4 (none)': { status: 4 },
  'any error': { error: 'any' },
  'rare error': { error: 'upstream_cut' },
  'end user': { end_user: 'user-19999' },
  'frequent end user': { end_user: 'user-0' },
  session: { session: 'session-99999' },
  'frequent tag': { tag: 'team:0' },
  'rare tag': { tag: 'rare' },
  'trace id': { trace_id: (700_000).toString(16).padStart(32, '0') },
  'request id': { request_id: newest.request_id },
  'lowest cost, frequent': { min_cost: 500_000 },
  'lowest cost, rare': { min_cost: 1_000_000_000 },
  'duration, frequent': { min_ms: 1_000 },
  'duration, rare': { min_ms: 60_000 },
  'token, model and any error': { token_id: 'tok_0000000000000000', model: 'vendor-0/model-0', error: 'any' },
  'project, tag and cost': { project_id: 'proj_0000000000000000', tag: 'team:0', min_cost: 900_000 },
  'frequent token and slow': { token_id: 'tok_0000000000000000', min_ms: 60_000 },
  'frequent model, rare tag': { model: 'vendor-0/model-0', tag: 'rare' },
  'frequent model, provider of none': { model: 'vendor-0/model-0', provider: 'vendor-1' },
}

/** Each is combined with each other one: frequent values, rare ones, and values that no row has. */
const CONDITIONS: Record<string, RequestFilter> = {
  'frequent token': { token_id: 'tok_0000000000000000' },
  'rare token': { token_id: 'tok_0000000000000199' },
  'frequent project': { project_id: 'proj_0000000000000000' },
  'rare project': { project_id: 'proj_0000000000000029' },
  'frequent model': { model: 'vendor-0/model-0' },
  'frequent target': { target: 'vendor-0/model-0' },
  'frequent provider': { provider: 'vendor-0' },
  'another provider': { provider: 'vendor-1' },
  'frequent end user': { end_user: 'user-0' },
  'rare end user': { end_user: 'user-15000' },
  session: { session: 'session-0' },
  'frequent tag': { tag: 'usual' },
  'tag of a team': { tag: 'team:0' },
  'any error': { error: 'any' },
  'frequent error': { error: 'upstream_error' },
  'rare error': { error: 'upstream_cut' },
  'status 200': { status: 200 },
  'status 502': { status: 502 },
  'status 503 (none)': { status: 503 },
  'class 4 (none)': { status: 4 },
  'class 5': { status: 5 },
  'lowest cost, half': { min_cost: 500_000 },
  'lowest cost, one of 10,000': { min_cost: 999_900 },
  'lowest cost, rare': { min_cost: 1_000_000_000 },
  'duration, half': { min_ms: 1_000 },
  'duration, one of 10,000': { min_ms: 1_999.9 },
  'duration, rare': { min_ms: 60_000 },
  'a time in the middle': { from_ms: START + WEEK / 3, to_ms: START + WEEK / 2 },
  'the oldest times': { to_ms: START + WEEK / 50 },
}

function pairs(): Record<string, RequestFilter> {
  const named = Object.entries(CONDITIONS)
  return Object.fromEntries(
    named.flatMap(([name, one], at) =>
      named
        .slice(at + 1)
        .filter(([, other]) => !Object.keys(other).some((key) => key in one))
        .map(([other_name, other]) => [`${name} + ${other_name}`, { ...one, ...other }]),
    ),
  )
}

async function fill(store: Store): Promise<number> {
  let spent = 0
  for (let at = 0; at < ROWS; at += ROWS_PER_BATCH) {
    const rows = Array.from({ length: Math.min(ROWS_PER_BATCH, ROWS - at) }, (_, one) => rowOf(at + one))
    const cpu = process.cpuUsage()
    await store.requestLog.append(rows)
    const used = process.cpuUsage(cpu)
    spent += used.user + used.system
  }
  return spent / ROWS
}

async function add(name: string, store: Store): Promise<void> {
  const started = performance.now()
  const cpu = await fill(store)
  const wall = ((performance.now() - started) * 1000) / ROWS
  print(
    `${name}: ${ROWS} rows; adding one: ${cpu.toFixed(1)} us of processor time of the gateway, ${wall.toFixed(1)} us in all`,
  )
}

type Result = { name: string; median: number; worst: number; found: number; is_short: boolean }

async function searchOften(store: Store, name: string, filter: RequestFilter): Promise<Result> {
  const times: number[] = []
  let found = 0
  let is_short = false
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    const { rows, next } = await store.requestLog.search({ filter, limit: 50 })
    times.push(performance.now() - start)
    found = rows.length
    is_short = next !== undefined && rows.length < 50
  }
  times.sort((a, b) => a - b)
  return { name, median: times[Math.floor(ROUNDS / 2)] ?? 0, worst: times.at(-1) ?? 0, found, is_short }
}

function show({ name, median, worst, found, is_short }: Result): void {
  const note = is_short ? ' (more behind the cursor)' : ''
  print(
    `  ${name.padEnd(52)} ${median.toFixed(1).padStart(7)} ms, at most ${worst.toFixed(1).padStart(7)}; ${found} rows${note}`,
  )
}

/** Whether every search is within the bound. */
async function measure(title: string, store: Store): Promise<boolean> {
  print(title)
  const results: Result[] = []
  for (const [name, filter] of Object.entries(FILTERS)) results.push(await searchOften(store, name, filter))
  results.forEach(show)
  const combined: Result[] = []
  for (const [name, filter] of Object.entries(pairs())) combined.push(await searchOften(store, name, filter))
  combined.sort((a, b) => b.median - a.median)
  const half = combined[Math.floor(combined.length / 2)]?.median.toFixed(1)
  const short = combined.filter(({ is_short }) => is_short).length
  const slow = [...results, ...combined].filter(({ median }) => median > MOST_MILLISECONDS).length
  print(`  ${combined.length} pairs: half of them below ${half} ms, ${short} with a short page; the slowest ones:`)
  combined.slice(0, 5).forEach(show)
  print(`  ${slow} searches above ${MOST_MILLISECONDS} ms`)
  return slow === 0
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-request-log-'))
const results: boolean[] = []
try {
  const path = join(directory, 'gatehouse.db')
  const sqlite = await openStore({ url: `sqlite:${path}` })
  await add('SQLite', sqlite)
  const size = new Database(path, { readonly: true })
    .query<{ bytes: number }, []>('select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()')
    .get()
  print(`  ${((size?.bytes ?? 0) / ROWS).toFixed(0)} bytes a row`)
  results.push(await measure('SQLite', sqlite))
  await sqlite.close()
  const server = await startPostgres()
  const url = await server.createDatabase()
  const postgres = await openStore({ url })
  await add('PostgreSQL', postgres)
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query("select pg_total_relation_size('request_log') as bytes")
  print(`  ${(Number(rows[0]?.bytes) / ROWS).toFixed(0)} bytes a row`)
  results.push(await measure('PostgreSQL, without statistics of the tables', postgres))
  await client.query('vacuum analyze request_log')
  await client.query('vacuum analyze request_tags')
  await client.end()
  results.push(await measure('PostgreSQL, after VACUUM ANALYZE', postgres))
  await postgres.close()
} finally {
  rmSync(directory, { recursive: true, force: true })
}
process.exit(results.every(Boolean) ? 0 : 1)
