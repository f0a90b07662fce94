/**
 * Traces by OTLP, with the packages of the OpenTelemetry SDK: ids, samplers, the format of the headers, encoding and
 * transport. This file loads them, so it is imported only where an export is configured.
 */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { parseTraceParent, TraceState } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  RandomIdGenerator,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { TraceContext } from '../../kit/trace-context.ts'
import type { Span, SpanAttributes } from '../traces/span.ts'
import {
  createExportQueue,
  type ExporterParts,
  type ExportQueue,
  exporterOptions,
  hrTime,
  originOf,
} from './otlp-common.ts'
import type { OtlpSettings } from './otlp-settings.ts'

export type Tracer = {
  /** The trace of a request with these headers: that of its client where they name one, else a new one. */
  open(headers?: { get(name: string): string | null }): TraceContext
  newSpanId(): string
  /** Returns at once. A span that is not sampled is ignored. */
  add(span: Span): void
} & Pick<ExportQueue<unknown>, 'counts' | 'close'>

/** The header has 55 characters; later versions may append more. Longer ones are not looked at. */
const MAX_TRACEPARENT = 512
/** As W3C Trace Context requires vendors to pass on at least. */
const MAX_TRACESTATE = 512

export function createTracer(parts: ExporterParts): Tracer {
  const { settings, endpoint, clock, log } = parts
  const exporter = new OTLPTraceExporter(exporterOptions(endpoint))
  const ids = new RandomIdGenerator()
  const sampler = samplerOf(settings.sampler)
  const origin = originOf(parts)
  const queue = createExportQueue<ReadableSpan>(exporter, { name: 'spans', limits: settings.spans_batch, clock, log })

  function parentOf(headers: { get(name: string): string | null } | undefined) {
    const header = settings.is_propagated ? headers?.get('traceparent') : undefined
    if (!headers || !header || header.length > MAX_TRACEPARENT) return undefined
    const parent = parseTraceParent(header)
    const state = parent ? headers.get('tracestate') : null
    return parent && { ...parent, isRemote: true, state: state ? checkedState(state) : undefined }
  }

  return {
    open(headers) {
      const parent = parentOf(headers)
      const trace_id = parent?.traceId ?? ids.generateTraceId()
      const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
      const { decision } = sampler.shouldSample(context, trace_id, '', SpanKind.SERVER, {}, [])
      const opened = {
        trace_id,
        span_id: ids.generateSpanId(),
        is_sampled: decision === SamplingDecision.RECORD_AND_SAMPLED,
      }
      if (!parent) return opened
      const below = { ...opened, parent_id: parent.spanId }
      return parent.state === undefined ? below : { ...below, state: parent.state }
    },
    newSpanId: () => ids.generateSpanId(),
    add(span) {
      if (!span.trace.is_sampled) return
      queue.add(readable(span, origin), bytesOf(span))
    },
    counts: queue.counts,
    close: queue.close,
  }
}

function samplerOf({ name, ratio }: OtlpSettings['sampler']): Sampler {
  const [, isParentBased, root = name] = /^(parentbased_)?(.*)$/.exec(name) ?? []
  const own = root === 'always_off' ? new AlwaysOffSampler() : undefined
  const sampler = own ?? (root === 'always_on' ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(ratio))
  return isParentBased ? new ParentBasedSampler({ root: sampler }) : sampler
}

/** Undefined for one that is too long or has no valid member: the trace continues without it. */
function checkedState(text: string): string | undefined {
  if (text.length > MAX_TRACESTATE) return undefined
  return new TraceState(text).serialize() || undefined
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

type Origin = Pick<ReadableSpan, 'resource' | 'instrumentationScope'>

function readable(
  { trace, name, kind, start_ms, end_ms, attributes, events, error }: Span,
  origin: Origin,
): ReadableSpan {
  const { trace_id: traceId, span_id: spanId, parent_id, state } = trace
  const common = { traceId, traceFlags: TraceFlags.SAMPLED, ...(state ? { traceState: new TraceState(state) } : {}) }
  const context = { ...common, spanId }
  const ended = Math.max(start_ms, end_ms)
  return {
    name,
    kind: KINDS[kind],
    spanContext: () => context,
    ...(parent_id === undefined ? {} : { parentSpanContext: { ...common, spanId: parent_id } }),
    startTime: hrTime(start_ms),
    endTime: hrTime(ended),
    duration: hrTime(ended - start_ms),
    status: error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: defined(attributes),
    links: [],
    events: (events ?? []).map((one) => ({
      name: one.name,
      time: hrTime(one.at_ms),
      attributes: defined(one.attributes),
    })),
    ended: true,
    ...origin,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

function defined(attributes: SpanAttributes): Record<string, string | number | boolean | string[]> {
  const out: Record<string, string | number | boolean | string[]> = {}
  for (const name in attributes) {
    const value = attributes[name]
    if (value !== undefined) out[name] = value as string
  }
  return out
}

/** What a span holds besides its texts, with some 20 attributes. */
const BARE_BYTES = 2_048

function bytesOf({ attributes, events = [] }: Span): number {
  let bytes = BARE_BYTES
  for (const one of [attributes, ...events.map((event) => event.attributes)])
    for (const value of Object.values(one)) if (typeof value === 'string') bytes += 2 * value.length
  return bytes
}
