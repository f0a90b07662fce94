/**
 * Spans of tasks, in the trace of their submission: one for the whole task, below it one for each step that changed
 * something and one for each delivery of its webhook. Without a trace a step costs one check.
 */
import type { Clock } from '../../kit/clock.ts'
import { sha256 } from '../../kit/secret.ts'
import { readTraceContext, type TraceContext, traceContextText, traceHeaders } from '../../kit/trace-context.ts'
import type { Span, SpanAttributes } from '../../observe/traces/span.ts'
import type { Task } from '../../spec/task.ts'
import type { TaskChange } from '../../store/store.ts'
import { isEnded } from './lifecycle.ts'

/** Where spans go, and how requests to a provider get their trace. */
export type WorkTracer = {
  newSpanId(): string
  add(span: Span): void
  /** Requests of `work` to this provider are sent in the trace, where it may have it. */
  inTrace<Result>(trace: TraceContext, provider: string, work: () => Promise<Result>): Promise<Result>
}

export type TaskTraces = {
  /** `changeOf`: what the step has stored last; undefined: nothing. */
  step(task: Task, run: () => Promise<void>, changeOf: () => TaskChange | undefined): Promise<void>
  /** `deliver` gets the headers of the trace. */
  delivery<Result extends { status: number; error?: string }>(
    delivery: { task: Task; host: string; attempt: number },
    deliver: (headers: Record<string, string>) => Promise<Result>,
  ): Promise<Result>
}

/** After so many claims of a task only its end has a span: a task may be polled or copied for a day. */
const MAX_TRACED_CLAIMS = 200

/** The trace of a task that is submitted in this one, to be stored. Its span is named after the task. */
export const taskTrace = (trace: TraceContext | undefined, task_id: string): string | null => {
  if (!trace) return null
  const { state, ...rest } = trace
  const own = { ...rest, parent_id: trace.span_id, span_id: sha256(task_id).slice(0, 16) }
  return traceContextText(state === undefined ? own : { ...own, state })
}

export function createTaskTraces(tracer: WorkTracer, clock: Clock): TaskTraces {
  const below = ({ span_id: parent_id, ...rest }: TraceContext): TraceContext => ({
    ...rest,
    parent_id,
    span_id: tracer.newSpanId(),
  })

  /** Where the step has ended the task. */
  function addTask(task: Task, trace: TraceContext, change: TaskChange): void {
    const { status, provider, upstream_model } = { ...task, ...change }
    const fail_code = change.fail_code || undefined
    tracer.add({
      trace,
      name: `task ${task.model}`,
      kind: 'internal',
      // Seconds are all that is stored.
      start_ms: task.submit_time * 1000,
      end_ms: clock.now(),
      attributes: {
        ...common(task),
        'gatehouse.token_id': task.token_id,
        'gatehouse.project_id': task.project_id ?? undefined,
        'gatehouse.provider': provider || undefined,
        'gatehouse.provider_model': upstream_model || undefined,
        'gatehouse.task.status': status,
        'error.type': fail_code,
      },
      error: fail_code === 'canceled' ? undefined : fail_code,
    })
  }

  return {
    async step(task, run, changeOf) {
      const trace = readTraceContext(task.trace)
      if (!trace) return run()
      const start_ms = clock.now()
      const add = (change: TaskChange | undefined, thrown?: 'internal_error') => {
        if (!trace.is_sampled || !isWorthASpan(task, change, thrown)) return
        tracer.add({
          trace: below(trace),
          name: `task ${stepOf(task)}`,
          kind: task.provider === '' || task.made ? 'internal' : 'client',
          start_ms,
          end_ms: clock.now(),
          attributes: stepAttributes(task, change, thrown),
          error: thrown ?? (change?.fail_code || undefined),
        })
        if (change && hasEnded(task, change)) addTask(task, trace, change)
      }
      try {
        await tracer.inTrace(trace, task.provider, run)
        add(changeOf())
      } catch (error) {
        add(changeOf(), 'internal_error')
        throw error
      }
    },

    async delivery({ task, host, attempt }, deliver) {
      const trace = readTraceContext(task.trace)
      if (!trace) return deliver({})
      const own = below(trace)
      const start_ms = clock.now()
      const answer = await deliver(traceHeaders(own))
      const { status } = answer
      const error = answer.error ?? (status >= 200 && status < 300 ? undefined : String(status))
      const attributes = {
        'gatehouse.task_id': task.task_id,
        'http.request.method': 'POST',
        'http.response.status_code': status || undefined,
        'server.address': host,
        'gatehouse.webhook.attempt': attempt,
        'error.type': error,
      }
      tracer.add({ trace: own, name: 'webhook', kind: 'client', start_ms, end_ms: clock.now(), attributes, error })
      return answer
    },
  }
}

const common = (task: Task): SpanAttributes => ({
  'gen_ai.operation.name': 'generate_content',
  'gen_ai.request.model': task.model,
  'gatehouse.task_id': task.task_id,
})

function stepAttributes(task: Task, change: TaskChange | undefined, thrown: string | undefined): SpanAttributes {
  const { provider, upstream_model, provider_key, status, progress } = { ...task, ...change }
  return {
    ...common(task),
    'gen_ai.request.model': upstream_model || task.model,
    'gatehouse.provider': provider || undefined,
    'gatehouse.key': provider_key ?? undefined,
    'gatehouse.task.status': status,
    'gatehouse.task.progress': progress,
    'gatehouse.task.failures': change?.failures || undefined,
    'error.type': thrown ?? (change?.fail_code || undefined),
  }
}

/** By what the step finds: the same order as that of the worker. */
function stepOf(task: Task): string {
  if (isEnded(task)) return 'late outcome'
  if (task.cancel_asked_at !== null) return 'cancel'
  if (task.status === 'NOT_START') return 'prepare'
  if (task.sent_at === null) return 'submit'
  if (task.operation === null) return 'look up'
  return task.made ? 'copy' : 'poll'
}

const hasEnded = (task: Task, { status = task.status }: TaskChange): boolean => !isEnded(task) && isEnded({ status })

function isWorthASpan(task: Task, change: TaskChange | undefined, thrown: string | undefined): boolean {
  if (change && hasEnded(task, change)) return true
  if (task.fence > MAX_TRACED_CLAIMS || (!change && !thrown)) return false
  if (thrown || (change?.failures ?? 0) > 0 || change?.made !== undefined) return true
  const moves = (change?.status ?? task.status) !== task.status || (change?.progress ?? task.progress) !== task.progress
  return moves || stepOf(task) !== 'poll'
}
