/** Tasks that take minutes: ordered once, polled until they end, canceled. */
import { APICallError } from '@ai-sdk/provider'
import { delay, isRecord, retryWithExponentialBackoff } from '@ai-sdk/provider-utils'
import { z } from 'zod/v4'
import { TaskFailedError, TaskTimeoutError } from './errors.ts'
import { type CallParts, sendRequest } from './http.ts'
import { type Connection, lowercased, type TaskRules } from './settings.ts'

const Created = z.object({ data: z.object({ task_id: z.string().min(1) }) })
const TaskResponse = z.object({
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
export type Task = z.infer<typeof TaskResponse>['data']

/** With a longer wait, proxies on the path might time out. */
const WAIT_SECONDS = 25
/** On top of the requested wait: then the connection is closed, and the poll is repeated. */
const ANSWER_MILLISECONDS = 30_000
/** With delays that double from a second, about a minute: the time that a gateway needs to restart. */
const MAX_POLL_RETRIES = 6
const CANCEL_MILLISECONDS = 5_000

/** `path`: of the family, such as `/video/generations`. */
type TaskClientParts = { connection: Connection; path: string; rules: TaskRules }
type TaskCall = CallParts & { taskId: string }

export function createTaskClient({ connection, path, rules }: TaskClientParts) {
  const pathOf = (taskId: string) => `${path}/${encodeURIComponent(taskId)}`

  /** One poll; `waitSeconds`: the gateway holds the response back until the state changes. */
  async function poll({ taskId, waitSeconds, headers, abortSignal }: TaskCall & { waitSeconds: number }) {
    const { [IDEMPOTENCY_KEY]: _, ...sent } = lowercased(headers)
    const query = waitSeconds > 0 ? `?wait=${Math.ceil(waitSeconds * 1000) / 1000}` : ''
    const limit = AbortSignal.timeout(waitSeconds * 1000 + ANSWER_MILLISECONDS)
    const signal = abortSignal ? AbortSignal.any([abortSignal, limit]) : limit
    const request = { path: `${pathOf(taskId)}${query}`, schema: TaskResponse, headers: sent, abortSignal: signal }
    try {
      const { value, responseHeaders } = await sendRequest(connection, request)
      return { value: value.data, responseHeaders }
    } catch (error) {
      if (!limit.aborted || abortSignal?.aborted) throw error
      const message = 'The gateway did not respond in time.'
      throw new APICallError({
        message,
        url: connection.url(request.path),
        requestBodyValues: {},
        cause: error,
        isRetryable: true,
      })
    }
  }

  /** A failed poll does not mean that the task has failed. */
  const withRetries = (abortSignal: AbortSignal | undefined) =>
    retryWithExponentialBackoff({
      maxRetries: MAX_POLL_RETRIES,
      initialDelayInMs: rules.pollIntervalMs,
      shouldRetry: (error) => APICallError.isInstance(error) && error.isRetryable && !abortSignal?.aborted,
      createRetryError: ({ errors }) => errors.at(-1),
      ...(abortSignal === undefined ? {} : { abortSignal }),
    })

  async function waitUntilFinished({ taskId, headers, abortSignal }: TaskCall) {
    const end = Date.now() + rules.timeoutMs
    for (;;) {
      const polledAt = Date.now()
      if (polledAt >= end) throw new TaskTimeoutError({ taskId, timeoutMs: rules.timeoutMs })
      const waitSeconds = Math.min(WAIT_SECONDS, (end - polledAt) / 1000)
      const response = await withRetries(abortSignal)(() => poll({ taskId, waitSeconds, headers, abortSignal }))
      if (response.value.status === 'FAILURE') throw new TaskFailedError(failureOf(response.value))
      if (response.value.status === 'SUCCESS') return response
      const pause = Math.min(polledAt + rules.pollIntervalMs, end) - Date.now()
      if (pause > 0) await delay(pause, abortSignal === undefined ? {} : { abortSignal })
    }
  }

  /** Nothing waits for the result: the call has been aborted. */
  async function cancel(taskId: string, headers: CallParts['headers']): Promise<void> {
    const abortSignal = AbortSignal.timeout(CANCEL_MILLISECONDS)
    await sendRequest(connection, {
      path: `${pathOf(taskId)}/cancel`,
      schema: z.unknown(),
      body: {},
      headers,
      abortSignal,
    })
  }

  return {
    /** Orders once for one key, however often it is called. */
    async order({ body, key, headers, abortSignal }: CallParts & { body: unknown; key: string }) {
      const sent = { ...lowercased(headers), [IDEMPOTENCY_KEY]: key }
      const { value, responseHeaders } = await sendRequest(connection, {
        path,
        schema: Created,
        body,
        headers: sent,
        abortSignal,
      })
      return { value: { taskId: value.data.task_id }, responseHeaders }
    },
    poll,
    /** Polls until the task ends. Throws TaskFailedError, TaskTimeoutError, and what an aborted call throws. */
    async follow(call: TaskCall) {
      try {
        return await waitUntilFinished(call)
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
 * The key of one call: the caller's own, or one that stays the same when the call is repeated, since a retry passes the
 * same options object.
 */
export function createKeys(): (call: object & Pick<CallParts, 'headers'>) => string {
  const keys = new WeakMap<object, string>()
  return (call) => {
    const own = lowercased(call.headers)[IDEMPOTENCY_KEY]
    if (own !== undefined) return own
    const key = keys.get(call) ?? `gatehouse_${crypto.randomUUID()}`
    keys.set(call, key)
    return key
  }
}

/** The id of a task in the operation that `start` returned: `{ task_id }`, or the bare id. */
export function taskIdIn(operation: unknown): string {
  const id = isRecord(operation) ? operation.task_id : operation
  if (typeof id === 'string' && id !== '') return id
  throw new TypeError('The operation must be the one that start returned.')
}
