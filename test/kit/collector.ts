/**
 * An OTLP collector on loopback: it decodes what it receives with code that was generated from the protocol's own .proto
 * files, apart from the encoder that is tested.
 *
 *     const collector = startCollector()
 *     ... export to `collector.url` ...
 *     collector.received()    // spans, oldest first
 */
import * as generated from 'otlp-decoder/build/src/generated/root.js'

type Pairs = readonly { key: string; value: Value }[]
type Resource = { attributes: Pairs }
type ProtoSpan = {
  traceId: Uint8Array
  spanId: Uint8Array
  parentSpanId: Uint8Array | null
  name: string
  kind: number
  traceState: string | null
  startTimeUnixNano: unknown
  endTimeUnixNano: unknown
  status: { code: number | null; message: string | null } | null
  attributes: Pairs
  events: { name: string; attributes: Pairs }[]
}
type ProtoLog = {
  body: Value
  severityText: string | null
  traceId: Uint8Array | null
  timeUnixNano: unknown
  attributes: Pairs
}
type Decoder<T> = { decode(bytes: Uint8Array): T }
type Traces = { resourceSpans: { resource: Resource; scopeSpans: { spans: ProtoSpan[] }[] }[] }
type Logs = { resourceLogs: { resource: Resource; scopeLogs: { logRecords: ProtoLog[] }[] }[] }
type ProtoPoint = {
  attributes: Pairs
  asDouble?: number | null
  sum?: number | null
  count?: unknown
  explicitBounds?: number[]
  bucketCounts?: unknown[]
}
type ProtoMetric = {
  name: string
  unit: string
  sum: { isMonotonic: boolean; dataPoints: ProtoPoint[] } | null
  gauge: { dataPoints: ProtoPoint[] } | null
  histogram: { dataPoints: ProtoPoint[] } | null
}
type ProtoMetrics = { resourceMetrics: { scopeMetrics: { metrics: ProtoMetric[] }[] }[] }
type Generated = {
  trace: { v1: { ExportTraceServiceRequest: Decoder<Traces> } }
  logs: { v1: { ExportLogsServiceRequest: Decoder<Logs> } }
  metrics: { v1: { ExportMetricsServiceRequest: Decoder<ProtoMetrics> } }
}

/** The package has no types for these classes. */
const { opentelemetry } = generated as unknown as { opentelemetry: { proto: { collector: Generated } } }
const { ExportTraceServiceRequest } = opentelemetry.proto.collector.trace.v1
const { ExportMetricsServiceRequest } = opentelemetry.proto.collector.metrics.v1
const { ExportLogsServiceRequest } = opentelemetry.proto.collector.logs.v1

type Attributes = Record<string, unknown>

export type ReceivedSpan = {
  trace_id: string
  span_id: string
  /** Empty for the first span of a trace. */
  parent_id: string
  name: string
  kind: 'internal' | 'server' | 'client'
  state: string
  /** Unix milliseconds. */
  start_ms: number
  end_ms: number
  /** 2: an error. */
  status: { code: number; message: string }
  attributes: Attributes
  events: { name: string; attributes: Attributes }[]
  resource: Attributes
}

export type ReceivedLog = {
  body: unknown
  severity: string
  trace_id: string
  time_ms: number
  attributes: Attributes
  resource: Attributes
}

export type ReceivedMetric = {
  name: string
  unit: string
  kind: 'counter' | 'gauge' | 'histogram'
  points: { attributes: Attributes; value: number; count: number; bounds: number[]; buckets: number[] }[]
}

export type Collector = {
  /** For `endpoint`. */
  url: string
  spans: ReceivedSpan[]
  logs: ReceivedLog[]
  /** Of the last export. */
  metrics: ReceivedMetric[]
  /** The headers of each export. */
  exports: { path: string; headers: Record<string, string> }[]
  /** How it answers from now on; undefined: it takes everything. */
  answer: (() => Response | Promise<Response>) | undefined
  /** The spans until now, the oldest first. */
  received(): ReceivedSpan[]
  stop(): Promise<void>
}

export function startCollector(): Collector {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const bytes = new Uint8Array(await request.arrayBuffer())
      collector.exports.push({ path: pathname, headers: Object.fromEntries(request.headers) })
      if (collector.answer) return collector.answer()
      const body = request.headers.get('content-encoding') === 'gzip' ? Bun.gunzipSync(bytes) : bytes
      if (pathname === '/v1/traces') collector.spans.push(...spansIn(body))
      if (pathname === '/v1/logs') collector.logs.push(...logsIn(body))
      if (pathname === '/v1/metrics') collector.metrics = metricsIn(body)
      return new Response(new Uint8Array(), { headers: { 'content-type': 'application/x-protobuf' } })
    },
  })
  const collector: Collector = {
    url: `http://127.0.0.1:${server.port}`,
    spans: [],
    logs: [],
    metrics: [],
    exports: [],
    answer: undefined,
    received: () => collector.spans.toSorted((one, other) => one.start_ms - other.start_ms),
    stop: () => server.stop(true),
  }
  return collector
}

const KINDS = ['internal', 'internal', 'server', 'client'] as const

function spansIn(bytes: Uint8Array): ReceivedSpan[] {
  return ExportTraceServiceRequest.decode(bytes).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        trace_id: hex(span.traceId),
        span_id: hex(span.spanId),
        parent_id: hex(span.parentSpanId),
        name: span.name,
        kind: KINDS[span.kind] ?? 'internal',
        state: span.traceState ?? '',
        start_ms: msOf(span.startTimeUnixNano),
        end_ms: msOf(span.endTimeUnixNano),
        status: { code: span.status?.code ?? 0, message: span.status?.message ?? '' },
        attributes: attributesOf(span.attributes),
        events: span.events.map(({ name, attributes }) => ({ name, attributes: attributesOf(attributes) })),
        resource: attributesOf(resource.attributes),
      })),
    ),
  )
}

function logsIn(bytes: Uint8Array): ReceivedLog[] {
  return ExportLogsServiceRequest.decode(bytes).resourceLogs.flatMap(({ resource, scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) =>
      logRecords.map((record) => ({
        body: anyValue(record.body),
        severity: record.severityText ?? '',
        trace_id: hex(record.traceId),
        time_ms: msOf(record.timeUnixNano),
        attributes: attributesOf(record.attributes),
        resource: attributesOf(resource.attributes),
      })),
    ),
  )
}

function metricsIn(bytes: Uint8Array): ReceivedMetric[] {
  return ExportMetricsServiceRequest.decode(bytes).resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) =>
      metrics.map(({ name, unit, sum, gauge, histogram }) => ({
        name,
        unit,
        kind: sum ? ('counter' as const) : gauge ? ('gauge' as const) : ('histogram' as const),
        points: ((sum ?? gauge ?? histogram)?.dataPoints ?? []).map((point) => ({
          attributes: attributesOf(point.attributes),
          value: point.asDouble ?? point.sum ?? 0,
          count: Number(point.count ?? 0),
          bounds: point.explicitBounds ?? [],
          buckets: (point.bucketCounts ?? []).map(Number),
        })),
      })),
    ),
  )
}

const hex = (bytes: Uint8Array | null): string => (bytes ? Buffer.from(bytes).toString('hex') : '')
const msOf = (nanos: unknown): number => Number(BigInt(String(nanos ?? 0))) / 1e6

type Value = {
  stringValue: string | null
  intValue: unknown
  doubleValue: number | null
  boolValue: boolean | null
  arrayValue: { values: Value[] } | null
  kvlistValue: { values: Pairs } | null
}

const attributesOf = (pairs: Pairs): Attributes =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, anyValue(value)]))

/** The one member that is set. */
function anyValue({ stringValue, intValue, doubleValue, boolValue, arrayValue, kvlistValue }: Value): unknown {
  if (kvlistValue) return attributesOf(kvlistValue.values)
  if (arrayValue) return arrayValue.values.map(anyValue)
  if (intValue !== null) return Number(intValue)
  return stringValue ?? doubleValue ?? boolValue
}
