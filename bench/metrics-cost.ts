/**
 * What observing adds to a call on its path: the processor time of counting one settled request with its call, in the same
 * run as the same counts made with prom-client's own objects and, where they are installed, with those of OpenTelemetry's
 * SDK; and that of the metrics with the access log and the row of the request log, until they are queued. Ends with status 1
 * where ours take more than the bounds. Rows are written later, in batches: `npm run bench:cost` counts that too.
 */
import type { CallRecord } from '../src/calls/call.ts'
import type { FinishedRequest } from '../src/http/context.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { createCallMetrics } from '../src/observe/metrics/call-metrics.ts'
import { CALL_METRICS } from '../src/observe/metrics/metric-table.ts'
import { createMetrics, type MetricDefinition } from '../src/observe/metrics/metrics.ts'
import { createRequestLog } from '../src/observe/requests/request-log.ts'
import { createAccessLog, createRequests, type EndedRequest, type Recorder } from '../src/observe/requests/requests.ts'
import type { LedgerEntry } from '../src/store/ledger/ledger-entry.ts'

const MOST_MICROSECONDS = 2
/** Of all that observes a call, but for contents. */
const MOST_IN_ALL = 6
const ROUNDS = 15
const CALLS = 20_000
/** Different models, tokens and targets: more than fit into one entry of any cache. */
const KINDS = 50

type Ended = { request: FinishedRequest; record: CallRecord }

function endedCall(n: number): Ended {
  const provider = { id: `vendor-${n % 5}`, kind: 'chatcompat' }
  const target = { provider, model: `large-${n}` }
  const { signal } = new AbortController()
  const token_id = `tok_${n}`
  const caller = { token_id, project_id: `proj_${n % 7}` }
  const units = { input_tokens: 120 + n, output_tokens: 300, cached_tokens: 64 }
  const entry = { kind: 'call', provider: provider.id, upstream_model: target.model, model: `vendor/large-${n}`, units }
  const record = {
    call: { request_id: 'req_1', caller, signal, arrived: 0 },
    family: 'chatcompat',
    model: `vendor/large-${n}`,
    target,
    attempts: [{ target, started: 0, ms: 180, error: undefined, is_hedge: false, is_lost: false }],
    is_stream: true,
    entries: [{ ...entry, requests: 1, errors: 0, amount: 1_234_567, cost: 1_000_000 } as LedgerEntry],
    units,
    error: undefined,
  }
  const context = {
    request_id: 'req_0123456789abcdefghij',
    caller,
    record,
    header: () => null,
    request: { method: 'POST' },
    route: '/v1/chat/completions',
    note: { stream: true, first_byte_ms: 190 },
  }
  const request = { context, path: '/v1/chat/completions', status: 200, outcome: 'done', total_ms: 2_400 }
  return { request, record } as unknown as Ended
}

const calls = Array.from({ length: KINDS }, (_, n) => endedCall(n))

function recorder(): Recorder {
  const metrics = createMetrics({ max_values: 200, max_series: 1_000 })
  return createCallMetrics({ metrics, currency: () => 'USD' }).record
}

function ours(): (ended: Ended) => void {
  const record = recorder()
  const each = (ended: readonly EndedRequest[], count: (one: EndedRequest) => void) => ended.forEach(count)
  return ({ request, record: call }) => record([{ request, record: call, at: 0, left: undefined }], { offset: 0, each })
}

/** As a gateway has it: no spans are exported, and nobody follows live events. */
function everything(): { count(ended: Ended): void; flush(): Promise<void> } {
  const log = createLog({ clock: systemClock, level: 'info', pretty: false, write: () => {} })
  const store = { reserve: async () => 1, append: async () => {}, prune: async () => false }
  const settings = () => ({ enabled: true, keep_days: 7 })
  const requestLog = createRequestLog({ store, settings, clock: systemClock, log })
  const recorders = [createAccessLog({ log }), requestLog.record, recorder()]
  const requests = createRequests({ recorders, clock: systemClock, log })
  return { count: ({ request }) => requests.requestFinished(request), flush: requestLog.flush }
}

/** The labels of the same 17 counts that a streamed call makes. */
function countsOf({ record }: Ended) {
  const { target, model = '', call, entries = [] } = record
  const { units, amount, cost } = entries[0] as LedgerEntry
  const genAi = {
    gen_ai_operation_name: 'chat',
    gen_ai_provider_name: target?.provider.id ?? '',
    gen_ai_request_model: model,
    gen_ai_response_model: model,
  }
  const of = { provider: target?.provider.id ?? '', upstream_model: target?.model ?? '' }
  const owner = { project: call.caller.project_id ?? '' }
  const { token_id: token } = call.caller
  const currency = 'USD'
  return [
    ['duration', { ...genAi, error_type: '' }, 2.4],
    ['first_token', genAi, 0.19],
    ['per_token', genAi, 0.007],
    ['token_usage', { ...genAi, gen_ai_token_type: 'input' }, units.input_tokens],
    ['token_usage', { ...genAi, gen_ai_token_type: 'output' }, units.output_tokens],
    ['requests', { method: 'POST', route: '/v1/chat/completions', status: '200', outcome: 'done' }, 1],
    ['tokens', { ...of, model, token_type: 'input' }, units.input_tokens],
    ['tokens', { ...of, model, token_type: 'output' }, units.output_tokens],
    ['tokens', { ...of, model, token_type: 'cached' }, 64],
    ['charged', { ...of, model, currency }, amount ?? 0],
    ['cost', { ...of, model, currency }, cost ?? 0],
    ['entries', { kind: 'call' }, 1],
    ['project_calls', owner, 1],
    ['project_charged', { ...owner, currency }, amount ?? 0],
    ['token_calls', { token }, 1],
    ['attempts', { ...of, key: '', outcome: 'served', error_type: '' }, 1],
    ['attempt_duration', of, 0.18],
  ] as const
}

async function promClient(): Promise<(ended: Ended) => void> {
  const { Counter, Histogram, Registry } = await import('prom-client')
  const registers = [new Registry()]
  const made = new Map<string, (labels: Record<string, string>, value: number) => void>()
  for (const [key, { name, help, type, labels: labelNames, buckets = [] }] of Object.entries<MetricDefinition>(
    CALL_METRICS,
  )) {
    if (type === 'histogram') {
      const histogram = new Histogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers })
      made.set(key, (labels, value) => histogram.observe(labels, value))
    } else {
      const counter = new Counter({ name, help, labelNames: [...labelNames], registers })
      made.set(key, (labels, value) => counter.inc(labels, value))
    }
  }
  return (ended) => {
    for (const [key, labels, value] of countsOf(ended)) made.get(key)?.(labels, value)
  }
}

/** Undefined: `npm install --no-save @opentelemetry/sdk-metrics` adds it to the table. */
async function openTelemetry(): Promise<((ended: Ended) => void) | undefined> {
  const name = '@opentelemetry/sdk-metrics'
  type Instrument = { add?(value: number, labels: object): void; record?(value: number, labels: object): void }
  type Meter = Record<'createCounter' | 'createHistogram', (name: string, options: object) => Instrument>
  let sdk: { MeterProvider: new (o: object) => { getMeter(name: string): Meter }; MetricReader: new () => object }
  try {
    sdk = await import(name)
  } catch {
    return undefined
  }
  // Without a reader the SDK would drop what it is given.
  class Reader extends (sdk.MetricReader as new () => object) {
    async onShutdown() {}
    async onForceFlush() {}
  }
  const meter = new sdk.MeterProvider({ readers: [new Reader()] }).getMeter('bench')
  const made = new Map<string, (labels: object, value: number) => void>()
  for (const [key, { name, type, buckets = [] }] of Object.entries<MetricDefinition>(CALL_METRICS)) {
    if (type === 'histogram') {
      const histogram = meter.createHistogram(name, { advice: { explicitBucketBoundaries: [...buckets] } })
      made.set(key, (labels, value) => histogram.record?.(value, labels))
    } else {
      const counter = meter.createCounter(name, {})
      made.set(key, (labels, value) => counter.add?.(value, labels))
    }
  }
  return (ended) => {
    for (const [key, labels, value] of countsOf(ended)) made.get(key)?.(labels, value)
  }
}

/** Microseconds of processor time a call. */
function measure(count: (ended: Ended) => void): number {
  Bun.gc(true)
  const before = process.cpuUsage()
  for (let n = 0; n < CALLS; n++) count(calls[n % KINDS] as Ended)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS
}

const print = (line: string) => void process.stdout.write(`${line}\n`)
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const all = everything()
const subjects = [
  { name: 'nothing', count: () => {}, times: [0].slice(1) },
  { name: 'Gatehouse (all 22 metrics of calls)', count: ours(), times: [0].slice(1) },
  { name: 'Gatehouse (metrics, access log, request log)', count: all.count, times: [0].slice(1) },
  { name: 'prom-client (17 counts)', count: await promClient(), times: [0].slice(1) },
]
const otel = await openTelemetry()
if (otel) subjects.push({ name: 'OpenTelemetry SDK (17 counts)', count: otel, times: [] })
for (let round = -3; round < ROUNDS; round++) {
  for (const { count, times } of subjects) {
    const time = measure(count)
    await all.flush()
    if (round >= 0) times.push(time)
  }
}
print('| counted by | µs a call | slowest round |\n| --- | ---: | ---: |')
for (const { name, times } of subjects)
  print(`| ${name} | ${median(times).toFixed(2)} | ${Math.max(...times).toFixed(2)} |`)
const added = median(subjects[1]?.times ?? []) - median(subjects[0]?.times ?? [])
print(`\nMetrics add ${added.toFixed(2)} µs to a call; the bound is ${MOST_MICROSECONDS} µs.`)
const in_all = median(subjects[2]?.times ?? []) - median(subjects[0]?.times ?? [])
print(`With the access log and the request log it is ${in_all.toFixed(2)} µs; the bound is ${MOST_IN_ALL} µs.`)
if (!(added <= MOST_MICROSECONDS && in_all <= MOST_IN_ALL)) process.exitCode = 1
