import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { TraceContext } from '../../kit/trace-context.ts'
import type { Span } from '../../observe/traces/span.ts'
import type { Task } from '../../spec/task.ts'
import type { TaskChange } from '../../store/store.ts'
import { blankTask } from './lifecycle.ts'
import { createTaskTraces, taskTrace } from './task-traces.ts'

const TRACE: TraceContext = { trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16), is_sampled: true }

function build(trace: TraceContext | undefined = TRACE) {
  const clock = manualClock()
  const spans: Span[] = []
  const traces = createTaskTraces(
    { newSpanId: () => 'c'.repeat(16), add: (span) => void spans.push(span), inTrace: (_, __, work) => work() },
    clock,
  )
  const task: Task = blankTask({
    task_id: 'task_1',
    token_id: 'tok_1',
    family: 'video-generation',
    model: 'acme/film',
    request: {},
    base_url: '',
    submit_time: 1,
    deadline_at: 2,
    due_ms: 0,
    trace: taskTrace(trace, 'task_1'),
    status: 'IN_PROGRESS',
    progress: 30,
    provider: 'acme',
    sent_at: 1,
    operation: {},
  })
  const step = async (change: TaskChange | undefined, fields: Partial<Task> = {}) => {
    spans.length = 0
    await traces.step(
      { ...task, ...fields },
      async () => {},
      () => change,
    )
    return spans.map(({ name }) => name)
  }
  return { step, spans, traces, task }
}

describe('a poll', () => {
  it.each<[string, TaskChange | undefined]>([
    ['that stored nothing', undefined],
    ['that changed only the time of the next', { due_ms: 5, failures: 0 }],
    ['that found the same progress', { status: 'IN_PROGRESS', progress: 30, failures: 0 }],
  ])('%s has no span', async (_, change) => {
    expect(await build().step(change)).toEqual([])
  })

  it.each<[string, TaskChange]>([
    ['that found more progress', { status: 'IN_PROGRESS', progress: 31 }],
    ['that failed', { failures: 1 }],
    ['that found its files', { made: [{ url: 'https://a.test' }] }],
  ])('%s has one', async (_, change) => {
    expect(await build().step(change)).toEqual(['task poll'])
  })

  it('that ends the task has one, beside that of the task', async () => {
    const { step, spans } = build()
    expect(await step({ status: 'FAILURE', fail_code: 'generation_failed' })).toEqual(['task poll', 'task acme/film'])
    expect(spans.map(({ error }) => error)).toEqual(['generation_failed', 'generation_failed'])
    expect(spans[0]?.trace.parent_id).toBe(spans[1]?.trace.span_id ?? '')
    expect(spans[1]?.trace.parent_id).toBe(TRACE.span_id)
  })

  it('after 200 claims has one only if it ends the task', async () => {
    const { step } = build()
    expect(await step({ progress: 31 }, { fence: 200 })).toEqual(['task poll'])
    expect(await step({ progress: 31 }, { fence: 201 })).toEqual([])
    expect(await step({ status: 'SUCCESS' }, { fence: 201 })).toHaveLength(2)
  })
})

describe('a step', () => {
  it('of a task without a trace, or of one that is not sampled, has no span', async () => {
    expect(await build().step({ progress: 31 }, { trace: null })).toEqual([])
    expect(await build({ ...TRACE, is_sampled: false }).step({ progress: 31 })).toEqual([])
  })

  it('that throws has one, and throws on', async () => {
    const { traces, spans, task } = build()
    const failing = traces.step(
      task,
      () => Promise.reject(new Error('secret')),
      () => undefined,
    )
    await expect(failing).rejects.toThrow('secret')
    expect(spans).toMatchObject([{ name: 'task poll', error: 'internal_error' }])
  })
})

describe('a delivery', () => {
  it('is sent in the trace of the task, sampled or not', async () => {
    const { traces, spans, task } = build({ ...TRACE, is_sampled: false, state: 'a=1' })
    let sent: Record<string, string> = {}
    await traces.delivery({ task, host: 'hook.test', attempt: 1 }, async (headers) => {
      sent = headers
      return { status: 500 }
    })
    expect(sent).toEqual({ traceparent: `00-${TRACE.trace_id}-${'c'.repeat(16)}-00`, tracestate: 'a=1' })
    expect(spans).toMatchObject([{ name: 'webhook', error: '500', attributes: { 'server.address': 'hook.test' } }])
  })
})
