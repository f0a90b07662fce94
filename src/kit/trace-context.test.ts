import { describe, expect, it } from 'bun:test'
import { readTraceContext, type TraceContext, traceContextText, traceHeaders } from './trace-context.ts'

const TRACE: TraceContext = { trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16), is_sampled: true }

describe('a stored trace context', () => {
  it.each([
    ['with nothing but its ids', TRACE],
    ['that is not sampled', { ...TRACE, is_sampled: false }],
    ['with a parent and a tracestate', { ...TRACE, parent_id: 'c'.repeat(16), state: 'a=1, b=2 3' }],
  ])('%s is read as it was stored', (_, trace) => {
    expect(readTraceContext(traceContextText(trace))).toEqual(trace)
  })

  it.each([null, '', 'x', `${'0'.repeat(32)} ${'b'.repeat(16)} - 1`, `${'a'.repeat(32)} ${'0'.repeat(16)} - 1`])(
    'is none where its text is %p',
    (text) => {
      expect(readTraceContext(text)).toBeUndefined()
    },
  )
})

it('the headers name the span, whether it is sampled, and the state that came with it', () => {
  const traceparent = `00-${TRACE.trace_id}-${TRACE.span_id}-01`
  expect(traceHeaders(TRACE)).toEqual({ traceparent })
  expect(traceHeaders({ ...TRACE, state: 'a=1' })).toEqual({ traceparent, tracestate: 'a=1' })
  expect(traceHeaders({ ...TRACE, is_sampled: false }).traceparent).toEndWith('-00')
})
