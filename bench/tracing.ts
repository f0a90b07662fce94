/**
 * What traces add to a call: the processor time of reading the header, deciding on the sample and, where it is sampled, of
 * two spans, their encoding and their export to a collector on loopback. Ends with status 1 where a call that is not
 * sampled takes more than the bound.
 */
import { createTelemetry } from '../src/gateway/tracing.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import type { Recording } from '../src/observe/requests/requests.ts'
import { configOf } from '../test/kit/gateway.ts'

const MOST_MICROSECONDS = 1.5
const ROUNDS = 9
const CALLS = 20_000
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0'

const collector = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })

const CASES: Record<string, { sampling: number; traceparent?: string; most?: number }> = {
  'begins here, not sampled': { sampling: 0, most: MOST_MICROSECONDS },
  'traceparent, not sampled': { sampling: 1, traceparent: `${TRACEPARENT}0`, most: MOST_MICROSECONDS },
  sampled: { sampling: 1 },
}

const log = createLog({ clock: systemClock, level: 'error', pretty: false, write() {} })

const RECORDING: Recording = {
  offset: systemClock.now() - systemClock.steady(),
  each: (ended, record) => ended.forEach(record),
}

async function measure(sampling: number, headers: Headers): Promise<number> {
  const otlp = { endpoint: `http://127.0.0.1:${collector.port}`, sampling }
  const telemetry = await createTelemetry({
    config: configOf({ telemetry: { otlp } }),
    // Nothing may be dropped, or its export would cost nothing.
    environment: { OTEL_BSP_MAX_QUEUE_SIZE: '100000' },
    version: '0',
    process_id: 'gw_bench',
    clock: systemClock,
    log,
  })
  const tracing = telemetry?.tracing
  if (!telemetry || !tracing) throw new Error('No traces are exported.')
  const target = { provider: { id: 'acme', kind: 'chatcompat' }, model: 'm' }
  const request = new Request('http://a.test/v1/chat/completions', { method: 'POST', headers })
  Bun.gc(true)
  const before = process.cpuUsage()
  for (let call = 0; call < CALLS; call++) {
    const now = systemClock.steady()
    const context = { request, path: '/v1/chat/completions', route: '/v1/chat/completions', note: {}, arrived: now }
    tracing.openTrace(context as never)
    const attempt = { target, started: now, ms: 1, is_hedge: false, is_lost: false }
    const record = { call: { ...context, caller: { token_id: 't' } }, family: 'chatcompat', attempts: [attempt] }
    await tracing.traceAttempt(record.call as never, attempt as never, async () => {})
    const finished = { context, path: '/', status: 200, outcome: 'done', total_ms: 1 }
    tracing.record([{ request: finished, record, at: now, left: undefined }] as never, RECORDING)
    if (call % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await telemetry.close({ deadline_ms: 60_000 })
  const { user, system } = process.cpuUsage(before)
  const { dropped = 0, failed = 0 } = telemetry.counts().spans ?? {}
  if (dropped + failed > 0) throw new Error(`${dropped + failed} spans were lost.`)
  return (user + system) / CALLS
}

/** The same objects, and no traces. */
async function base(): Promise<number> {
  const target = { provider: { id: 'acme', kind: 'chatcompat' }, model: 'm' }
  const kept: unknown[] = []
  Bun.gc(true)
  const before = process.cpuUsage()
  for (let call = 0; call < CALLS; call++) {
    const now = systemClock.steady()
    const context = { path: '/v1/chat/completions', route: '/v1/chat/completions', note: {}, arrived: now }
    const attempt = { target, started: now, ms: 1, is_hedge: false, is_lost: false }
    const record = { call: { ...context, caller: { token_id: 't' } }, family: 'chatcompat', attempts: [attempt] }
    await (async () => {})()
    kept[call % 64] = record
    if (call % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS
}

const bases: number[] = []
const times = new Map<string, number[]>(Object.keys(CASES).map((name) => [name, []]))
for (let round = 0; round < ROUNDS; round++) {
  bases.push(await base())
  for (const [name, { sampling, traceparent }] of Object.entries(CASES))
    times.get(name)?.push(await measure(sampling, new Headers(traceparent ? { traceparent } : {})))
}

const median = (values: number[]): number => values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0
let isOver = false
for (const [name, { most }] of Object.entries(CASES)) {
  const added = median(times.get(name) ?? []) - median(bases)
  isOver ||= most !== undefined && added > most
  process.stdout.write(`${name}: ${added.toFixed(2)} us a call${most === undefined ? '' : ` (at most ${most})`}\n`)
}
await collector.stop(true)
process.exit(isOver ? 1 : 0)
