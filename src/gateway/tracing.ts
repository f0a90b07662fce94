/** Traces (read from requests, kept with calls and tasks, sent to providers that may have them) and the export by OTLP. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { TraceAttempt } from '../calls/call.ts'
import type { Config } from '../config/config.ts'
import type { WorkTracer } from '../families/tasks/task-traces.ts'
import type { Context } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { type TraceContext, traceHeaders } from '../kit/trace-context.ts'
import type { OtlpLogs } from '../observe/export/otlp-logs.ts'
import type { ExportCounts } from '../observe/export/otlp-settings.ts'
import { type OtlpSettings, otlpSettings } from '../observe/export/otlp-settings.ts'
import type { Tracer } from '../observe/export/otlp-traces.ts'
import type { ReadFamily } from '../observe/metrics/metrics.ts'
import type { Recorder } from '../observe/requests/requests.ts'
import { createCallTraces } from '../observe/traces/call-traces.ts'

type Tracing = {
  record: Recorder
  /** Sets the trace of a request of the API. */
  openTrace(context: Context): void
  /** Executes an attempt in its trace. */
  traceAttempt: TraceAttempt
  workTracer: WorkTracer
  /** The headers for a request to this provider in the trace of the work that is going on; undefined: none. */
  headersFor(provider: string): Record<string, string> | undefined
}

export type Telemetry = {
  /** Undefined: no traces are exported. */
  tracing: Tracing | undefined
  /** Where rows of the request log go; undefined: no log records are exported. */
  logs: OtlpLogs | undefined
  /** Exports these metrics from now on, where that is configured. */
  exportMetrics(families: () => readonly ReadFamily[]): void
  /** What was exported and what was lost since the start, for metrics. */
  counts(): { spans?: ExportCounts; logs?: ExportCounts }
  close(options: { deadline_ms: number }): Promise<void>
}

type TelemetryParts = {
  config: Config
  environment: Record<string, string | undefined>
  version: string
  process_id: string
  clock: Clock
  log: Log
}

/** The API, without the pages of the manual, probes and metrics. */
const TRACED_PATH = /^\/v1(beta)?\//
/** Of a prompt, and of a response, in a span. */
const MAX_CHARACTERS = 16_384
/** Shorter stops still get this long to export what is queued. */
const MIN_CLOSE_MILLISECONDS = 500

/** Undefined where no export is configured. Only then are the libraries loaded. */
export async function createTelemetry(parts: TelemetryParts): Promise<Telemetry | undefined> {
  const { config, environment, version, process_id: instance_id, clock, log } = parts
  const { settings, problems } = otlpSettings(config.telemetry.otlp, environment)
  for (const problem of problems) log.warn('a variable of OpenTelemetry is wrong', { problem })
  if (!settings) return undefined
  const common = { settings, version, instance_id, clock, log }
  const { traces: endpoint, logs: logs_endpoint } = settings
  const tracer = endpoint && (await import('../observe/export/otlp-traces.ts')).createTracer({ ...common, endpoint })
  const tracing = tracer && createTracing(tracer, settings)
  const logs =
    logs_endpoint &&
    (await import('../observe/export/otlp-logs.ts')).createOtlpLogs({
      ...common,
      endpoint: logs_endpoint,
      event_name: 'gatehouse.request',
    })
  const metrics_endpoint = settings.metrics
  const metrics =
    metrics_endpoint &&
    (await import('../observe/export/otlp-metrics.ts')).createOtlpMetrics({ ...common, endpoint: metrics_endpoint })
  return {
    tracing,
    logs,
    exportMetrics: (families) => metrics?.start(families),
    counts: () => ({ ...(tracer && { spans: tracer.counts() }), ...(logs && { logs: logs.counts() }) }),
    async close({ deadline_ms: given }) {
      const deadline_ms = Math.max(given, MIN_CLOSE_MILLISECONDS)
      await Promise.all([tracer?.close({ deadline_ms }), logs?.close({ deadline_ms }), metrics?.close({ deadline_ms })])
    },
  }
}

function createTracing(tracer: Tracer, settings: OtlpSettings): Tracing {
  /** The traces of calls that belong to no request. */
  const own = new WeakSet<TraceContext>()
  /** What is sent in the trace of the work that is going on. */
  const outgoing = new AsyncLocalStorage<TraceContext>()
  const isSentTo = (provider: string): boolean =>
    settings.is_propagated && (settings.propagate_to.includes(provider) || settings.propagate_to.includes('*'))

  return {
    record: createCallTraces({ tracer, isOwn: (trace) => own.has(trace) }),
    openTrace(context) {
      if (!TRACED_PATH.test(context.path)) return
      context.trace = tracer.open(context.request.headers)
      if (context.trace.is_sampled) context.capture = { max_characters: settings.contents ? MAX_CHARACTERS : 0 }
    },
    traceAttempt(call, attempt, execute) {
      if (!call.trace) {
        if (!call.is_detached) return execute()
        call.trace = tracer.open()
        own.add(call.trace)
      }
      if (!isSentTo(attempt.target.provider.id)) return execute()
      const { trace } = call
      if (trace.is_sampled) attempt.span_id = tracer.newSpanId()
      return outgoing.run({ ...trace, span_id: attempt.span_id ?? trace.span_id }, execute)
    },
    workTracer: {
      newSpanId: tracer.newSpanId,
      add: tracer.add,
      inTrace: (trace, provider, work) => (isSentTo(provider) ? outgoing.run(trace, work) : work()),
    },
    headersFor(provider) {
      const trace = outgoing.getStore()
      return trace && isSentTo(provider) ? traceHeaders(trace) : undefined
    },
  }
}
