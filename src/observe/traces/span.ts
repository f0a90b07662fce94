/** A finished span, as plain data. */
import type { TraceContext } from '../../kit/trace-context.ts'

export type SpanAttributes = Record<string, string | number | boolean | readonly string[] | undefined>

export type Span = {
  /** Its own id, and that of its parent. */
  trace: TraceContext
  name: string
  kind: 'server' | 'client' | 'internal'
  /** Unix milliseconds, with fractions. */
  start_ms: number
  end_ms: number
  /** Members that are undefined are left out. */
  attributes: SpanAttributes
  events?: readonly { name: string; at_ms: number; attributes: SpanAttributes }[]
  /** Set where what it describes has failed: a code, never a text of a provider. */
  error?: string | undefined
}
