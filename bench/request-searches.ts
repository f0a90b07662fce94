/** Rows of a request log with frequent and rare values, and how long a search of them takes by each filter and by pairs of conditions. */
import type { RequestFilter, RequestRow } from '../src/store/requests/request-row.ts'
import type { Store } from '../src/store/store.ts'

const ROUNDS = 7
const MOST_MILLISECONDS = 100

/** The time over which rows are spread. */
export type Span = { rows: number; start_ms: number; span_ms: number }
/** `request_id`: of some row. */
type Searched = Span & { request_id: string }

const print = (line: string) => void process.stdout.write(`${line}\n`)

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

/** The row of this number, of the rows of a span. */
export function rowOf(at: number, { rows, start_ms, span_ms }: Span): RequestRow {
  const isFailed = random() < 0.02
  const provider = `vendor-${pick(6)}`
  const model = `model-${pick(60)}`
  const isSlow = random() < 0.0001
  return {
    row_id: at + 1,
    at_ms: start_ms + Math.floor((at / rows) * span_ms),
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

const filtersOf = ({ start_ms, span_ms, request_id }: Searched): Record<string, RequestFilter> => ({
  none: {},
  'a time in the middle': { from_ms: start_ms + span_ms / 3, to_ms: start_ms + span_ms / 2 },
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
  'request id': { request_id },
  'lowest cost, frequent': { min_cost: 500_000 },
  'lowest cost, rare': { min_cost: 1_000_000_000 },
  'duration, frequent': { min_ms: 1_000 },
  'duration, rare': { min_ms: 60_000 },
  'token, model and any error': { token_id: 'tok_0000000000000000', model: 'vendor-0/model-0', error: 'any' },
  'project, tag and cost': { project_id: 'proj_0000000000000000', tag: 'team:0', min_cost: 900_000 },
  'frequent token and slow': { token_id: 'tok_0000000000000000', min_ms: 60_000 },
  'frequent model, rare tag': { model: 'vendor-0/model-0', tag: 'rare' },
  'frequent model, provider of none': { model: 'vendor-0/model-0', provider: 'vendor-1' },
})

/** Each is combined with each other one: frequent values, rare ones, and values that no row has. */
const conditionsOf = ({ start_ms, span_ms }: Span): Record<string, RequestFilter> => ({
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
  'a time in the middle': { from_ms: start_ms + span_ms / 3, to_ms: start_ms + span_ms / 2 },
  'the oldest times': { to_ms: start_ms + span_ms / 50 },
})

function pairsOf(span: Span): Record<string, RequestFilter> {
  const named = Object.entries(conditionsOf(span))
  return Object.fromEntries(
    named.flatMap(([name, one], at) =>
      named
        .slice(at + 1)
        .filter(([, other]) => !Object.keys(other).some((key) => key in one))
        .map(([other_name, other]) => [`${name} + ${other_name}`, { ...one, ...other }]),
    ),
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
export async function measureSearches(
  title: string,
  store: Store,
  searched: Searched,
  { has_pairs = true } = {},
): Promise<boolean> {
  print(title)
  const results: Result[] = []
  for (const [name, filter] of Object.entries(filtersOf(searched))) results.push(await searchOften(store, name, filter))
  results.forEach(show)
  const combined: Result[] = []
  if (has_pairs)
    for (const [name, filter] of Object.entries(pairsOf(searched)))
      combined.push(await searchOften(store, name, filter))
  combined.sort((a, b) => b.median - a.median)
  if (has_pairs) {
    const half = combined[Math.floor(combined.length / 2)]?.median.toFixed(1)
    const short = combined.filter(({ is_short }) => is_short).length
    print(`  ${combined.length} pairs: half of them below ${half} ms, ${short} with a short page; the slowest ones:`)
    combined.slice(0, 5).forEach(show)
  }
  const slow = [...results, ...combined].filter(({ median }) => median > MOST_MILLISECONDS).length
  print(`  ${slow} searches above ${MOST_MILLISECONDS} ms`)
  return slow === 0
}
