/**
 * Spans of requests and their calls, made from the settled record: a server span for a request, a client span for each of
 * its attempts. Nothing is done where the trace is not sampled.
 */
import type { CallRecord } from '../../calls/call.ts'
import type { Attempt } from '../../calls/routing/attempt.ts'
import type { TraceContext } from '../../kit/trace-context.ts'
import type { EndedRequest, Recorder } from '../requests/requests.ts'
import {
  attemptAttributes,
  brokenBy,
  callAttributes,
  isServing,
  operationOf,
  requestAttributes,
} from './call-attributes.ts'
import { capturedAttributes, capturedEvents } from './captured-attributes.ts'
import type { Span } from './span.ts'

/** The part of a tracer that is used here. */
type Spans = { newSpanId(): string; add(span: Span): void }

type CallTracesParts = {
  tracer: Spans
  /** Whether no request has this trace: the call has a span of its own. */
  isOwn(trace: TraceContext): boolean
}

/** `offset`: from the steady clock to unix milliseconds. */
type Ended = EndedRequest & { trace: TraceContext; offset: number }

export function createCallTraces({ tracer, isOwn }: CallTracesParts): Recorder {
  function addSpans(one: Ended): void {
    const { record, trace } = one
    const end_ms = one.request ? startOf(one) + one.request.total_ms : one.at + one.offset
    if (one.request || isOwn(trace)) tracer.add(callSpan(one, end_ms))
    record?.attempts.forEach((attempt, index) => {
      tracer.add(attemptSpan(attempt, { ...one, record, number: index + 1, end_ms }))
    })
  }

  function attemptSpan(attempt: Attempt, of: { record: CallRecord; number: number; end_ms: number } & Ended): Span {
    const { record, trace, offset, number, end_ms } = of
    const { span_id: parent_id, ...same } = trace
    const serves = isServing(attempt, record)
    const start_ms = attempt.started + offset
    // Of a stream, `ms` is the time to its first part.
    const capture = serves ? record.call.capture : undefined
    const isOpen = attempt.ms === undefined || (serves && record.is_stream)
    return {
      trace: { ...same, parent_id, span_id: attempt.span_id ?? tracer.newSpanId() },
      name: `${operationOf(record.family)} ${attempt.target.model}`,
      kind: 'client',
      start_ms,
      end_ms: isOpen ? end_ms : start_ms + (attempt.ms ?? 0),
      attributes: { ...attemptAttributes(attempt, record, number), ...(capture && capturedAttributes(capture)) },
      events: capture ? capturedEvents(capture, end_ms) : [],
      error: attempt.error ?? (serves ? brokenBy(record) : undefined),
    }
  }

  return (ended, { offset, each }) =>
    each(ended, (one) => {
      const trace = one.request ? one.request.context.trace : one.record.call.trace
      if (trace?.is_sampled) addSpans({ ...one, trace, offset })
    })
}

const startOf = ({ request, record, offset }: Ended): number =>
  (request ? request.context.arrived : (record?.call.arrived ?? 0)) + offset

function callSpan(ended: Ended, end_ms: number): Span {
  const { request, record, trace } = ended
  const ofCall = record ? callAttributes(record) : {}
  const common = { trace, start_ms: startOf(ended), end_ms }
  if (!request) {
    const error = record?.error
    return {
      ...common,
      name: `${ofCall['gen_ai.operation.name']} ${record?.model}`,
      kind: 'internal',
      attributes: ofCall,
      error,
    }
  }
  const { context } = request
  return {
    ...common,
    name: context.route === undefined ? context.request.method : `${context.request.method} ${context.route}`,
    kind: 'server',
    attributes: { ...ofCall, ...requestAttributes(request), 'error.type': context.note.error ?? record?.error },
    error: errorOf(ended),
  }
}

/** A request that the client got wrong is no fault of the server. */
function errorOf({ request, record }: EndedRequest): string | undefined {
  if (!request) return record?.error
  const { status, outcome, context } = request
  if (status >= 500) return context.note.error ?? String(status)
  if (outcome === 'cut') return record?.error ?? 'response_cut'
  return status < 400 && record ? brokenBy(record) : undefined
}
