/** What takes minutes: ordered once, asked for until it has ended, canceled. */
import { APICallError } from '@ai-sdk/provider'
import { delay, isRecord, retryWithExponentialBackoff } from '@ai-sdk/provider-utils'
import { z } from 'zod/v4'
import { TaskFailedError, TaskTimeoutError } from './errors.ts'
import { type Answer, ask } from './http.ts'
import { type Connection, lowered, type TaskRules } from './settings.ts'

const Created = z.object({ data: z.object({ task_id: z.string().min(1) }) })
const Told = z.object({
  data: z.object({
    task_id: z.string(),
    status: z.string(),
    progress: z.string().nullish(),
    outputs: z.array(z.string()).nullish(),
    submit_time: z.number().nullish(),
    finish_time: z.number().nullish(),
    fail_code: z.string().nullish(),
    fail_reason: z.string().nullish(),
  }),
})
export type Task = z.infer<typeof Told>['data']

/** Longer, and proxies on the way might give up. */
const WAIT_SECONDS = 25
/** On top of what an answer is held back: then the connection is given up, and the question is asked again. */
const ANSWER_MILLISECONDS = 30_000
/** Doubling from a second it is about a minute, which is what a gateway needs to start again. */
const QUESTIONS_REPEATED = 6
const CANCEL_MILLISECONDS = 5_000

type Call = { headers?: Record<string, string | undefined> | undefined; abortSignal?: AbortSignal | undefined }

export type TaskClient = {
  /** Orders once for one key, however often it is called. */
  order(call: Call & { body: unknown; key: string }): Promise<Answer<{ taskId: string }>>
  /** One question; `waitSeconds`: held back until there is news. */
  look(call: Call & { taskId: string; waitSeconds: number }): Promise<Answer<Task>>
  /** Until it is done. Throws TaskFailedError, TaskTimeoutError, and what an aborted call throws. */
  follow(call: Call & { taskId: string }): Promise<Answer<Task>>
}

/** `path`: of the family, such as `/video/generations`. */
export function createTaskClient({
  connection,
  path,
  rules,
}: {
  connection: Connection
  path: string
  rules: TaskRules
}): TaskClient {
  const pathOf = (taskId: string) => `${path}/${encodeURIComponent(taskId)}`

  async function look({ taskId, waitSeconds, headers, abortSignal }: Parameters<TaskClient['look']>[0]) {
    const { [IDEMPOTENCY_KEY]: _, ...sent } = lowered(headers)
    const query = waitSeconds > 0 ? `?wait=${Math.ceil(waitSeconds * 1000) / 1000}` : ''
    const limit = AbortSignal.timeout(waitSeconds * 1000 + ANSWER_MILLISECONDS)
    const signal = abortSignal ? AbortSignal.any([abortSignal, limit]) : limit
    const asked = { path: `${pathOf(taskId)}${query}`, schema: Told, headers: sent, abortSignal: signal }
    try {
      const { value, responseHeaders } = await ask(connection, asked)
      return { value: value.data, responseHeaders }
    } catch (error) {
      if (!limit.aborted || abortSignal?.aborted) throw error
      const message = 'The gateway did not answer in time.'
      throw new APICallError({
        message,
        url: connection.url(asked.path),
        requestBodyValues: {},
        cause: error,
        isRetryable: true,
      })
    }
  }

  /** A question that fails says nothing about the task. */
  const patiently = (abortSignal: AbortSignal | undefined) =>
    retryWithExponentialBackoff({
      maxRetries: QUESTIONS_REPEATED,
      initialDelayInMs: rules.pollIntervalMs,
      shouldRetry: (error) => APICallError.isInstance(error) && error.isRetryable && !abortSignal?.aborted,
      createRetryError: ({ errors }) => errors.at(-1),
      ...(abortSignal === undefined ? {} : { abortSignal }),
    })

  async function untilEnded({ taskId, headers, abortSignal }: Parameters<TaskClient['follow']>[0]) {
    const end = Date.now() + rules.timeoutMs
    for (;;) {
      const asked = Date.now()
      if (asked >= end) throw new TaskTimeoutError({ taskId, timeoutMs: rules.timeoutMs })
      const waitSeconds = Math.min(WAIT_SECONDS, (end - asked) / 1000)
      const told = await patiently(abortSignal)(() => look({ taskId, waitSeconds, headers, abortSignal }))
      if (told.value.status === 'FAILURE') throw new TaskFailedError(failureOf(told.value))
      if (told.value.status === 'SUCCESS') return told
      const pause = Math.min(asked + rules.pollIntervalMs, end) - Date.now()
      if (pause > 0) await delay(pause, abortSignal === undefined ? {} : { abortSignal })
    }
  }

  /** What becomes of it nobody waits for: the call has been aborted. */
  async function cancel(taskId: string, headers: Call['headers']): Promise<void> {
    const abortSignal = AbortSignal.timeout(CANCEL_MILLISECONDS)
    await ask(connection, { path: `${pathOf(taskId)}/cancel`, schema: z.unknown(), body: {}, headers, abortSignal })
  }

  return {
    async order({ body, key, headers, abortSignal }) {
      const sent = { ...lowered(headers), [IDEMPOTENCY_KEY]: key }
      const { value, responseHeaders } = await ask(connection, {
        path,
        schema: Created,
        body,
        headers: sent,
        abortSignal,
      })
      return { value: { taskId: value.data.task_id }, responseHeaders }
    },
    look,
    async follow(call) {
      try {
        return await untilEnded(call)
      } catch (error) {
        if (call.abortSignal?.aborted && rules.cancelOnAbort) await cancel(call.taskId, call.headers).catch(() => {})
        throw error
      }
    },
  }
}

const IDEMPOTENCY_KEY = 'idempotency-key'

export const failureOf = ({ task_id, fail_code, fail_reason }: Task) => ({
  taskId: task_id,
  failCode: fail_code || 'generation_failed',
  failReason: fail_reason ?? '',
})

/**
 * The key of one call: the caller's own, or one that stays the same when the same call is made again, since those who try
 * again hand in the very same options.
 */
export function createKeys(): (call: object & Pick<Call, 'headers'>) => string {
  const made = new WeakMap<object, string>()
  return (call) => {
    const own = lowered(call.headers)[IDEMPOTENCY_KEY]
    if (own !== undefined) return own
    const key = made.get(call) ?? `gatehouse_${crypto.randomUUID()}`
    made.set(call, key)
    return key
  }
}

/** A task's id in what `start` has handed out: `{ task_id }`, or the bare id. */
export function taskIdIn(operation: unknown): string {
  const id = isRecord(operation) ? operation.task_id : operation
  if (typeof id === 'string' && id !== '') return id
  throw new TypeError('The operation must be what the start of this generation has handed out.')
}
