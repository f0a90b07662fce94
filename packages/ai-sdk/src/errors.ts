/** The errors that callers see. */
import { AISDKError, APICallError } from '@ai-sdk/provider'
import { z } from 'zod/v4'

/** A task that ended with `FAILURE`. */
export class TaskFailedError extends AISDKError {
  readonly taskId: string
  /** One of the gateway's `fail_code`s, such as `content_policy_violation`. */
  readonly failCode: string
  /** The same in a sentence: the gateway's `fail_reason`. */
  readonly failReason: string

  constructor({ taskId, failCode, failReason }: { taskId: string; failCode: string; failReason: string }) {
    super({ name: 'Gatehouse_TaskFailedError', message: failureText({ failCode, failReason }) })
    this.taskId = taskId
    this.failCode = failCode
    this.failReason = failReason
  }

  static override isInstance(error: unknown): error is TaskFailedError {
    return AISDKError.isInstance(error) && error.name === 'Gatehouse_TaskFailedError'
  }
}

export const failureText = ({ failCode, failReason }: { failCode: string; failReason: string }): string =>
  failReason === '' ? failCode : `${failCode}: ${failReason}`

/** The wait for this task has timed out. The task continues, and can be polled by its id. */
export class TaskTimeoutError extends AISDKError {
  readonly taskId: string

  constructor({ taskId, timeoutMs }: { taskId: string; timeoutMs: number }) {
    super({
      name: 'Gatehouse_TaskTimeoutError',
      message: `The task ${taskId} was not finished after ${timeoutMs} ms. It continues at the gateway.`,
    })
    this.taskId = taskId
  }

  static override isInstance(error: unknown): error is TaskTimeoutError {
    return AISDKError.isInstance(error) && error.name === 'Gatehouse_TaskTimeoutError'
  }
}

/** The body of an error of the gateway, in every family. */
const ErrorBody = z.object({
  error: z.object({
    message: z.string(),
    type: z.string().nullish(),
    param: z.string().nullish(),
    code: z.string().nullish(),
  }),
})

/** The gateway's errors, for the response handlers; `x-should-retry` takes precedence over the status. */
export const ERROR_STRUCTURE = {
  errorSchema: ErrorBody,
  errorToMessage: (body: z.infer<typeof ErrorBody>) => body.error.message,
  isRetryable({ status, headers }: Response): boolean {
    const retryHeader = headers.get('x-should-retry')
    if (retryHeader === 'true' || retryHeader === 'false') return retryHeader === 'true'
    return status === 408 || status === 409 || status === 429 || status >= 500
  },
}

/** The gateway's error code: of a refused request, of a failed task, or of the last of several retries. */
export function errorCodeOf(error: unknown): string | undefined {
  if (TaskFailedError.isInstance(error)) return error.failCode
  if (APICallError.isInstance(error)) return ErrorBody.safeParse(error.data).data?.error.code ?? undefined
  const last = error instanceof Error && 'lastError' in error ? error.lastError : undefined
  return last === undefined || last === error ? undefined : errorCodeOf(last)
}
