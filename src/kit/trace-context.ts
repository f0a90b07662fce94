/** The trace that a request, a call or a task belongs to (W3C Trace Context). */

export type TraceContext = {
  /** 32 hexadecimal digits. */
  readonly trace_id: string
  /** The span of this request or task: 16 hexadecimal digits. */
  readonly span_id: string
  /** The span of whoever caused it; absent: the trace begins here. */
  readonly parent_id?: string
  readonly is_sampled: boolean
  /** The header `tracestate` that came with it, checked. */
  readonly state?: string
}

/** The headers with which the receiver continues the trace, below the given span. */
export function traceHeaders({ trace_id, span_id, is_sampled, state }: TraceContext): Record<string, string> {
  const traceparent = `00-${trace_id}-${span_id}-${is_sampled ? '01' : '00'}`
  return state === undefined ? { traceparent } : { traceparent, tracestate: state }
}

const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/
const SPAN_ID = /^(?!0{16})[0-9a-f]{16}$/

/** For a stored context: undefined unless it is one. */
export function readTraceContext(text: string | null): TraceContext | undefined {
  if (text === null) return undefined
  const [trace_id = '', span_id = '', parent_id = '', sampled, ...state] = text.split(' ')
  if (!TRACE_ID.test(trace_id) || !SPAN_ID.test(span_id)) return undefined
  return {
    trace_id,
    span_id,
    is_sampled: sampled === '1',
    ...(SPAN_ID.test(parent_id) ? { parent_id } : {}),
    ...(state.length > 0 ? { state: state.join(' ') } : {}),
  }
}

/** The same as one line of text, to be stored. */
export const traceContextText = ({ trace_id, span_id, parent_id = '-', is_sampled, state }: TraceContext): string =>
  [trace_id, span_id, parent_id, is_sampled ? '1' : '0', ...(state === undefined ? [] : [state])].join(' ')
