/** What goes wrong, as those who call see it. */
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

/** Nobody waits for this task any more. It goes on: its state can be asked for by its id. */
export class TaskTimeoutError extends AISDKError {
  readonly taskId: string

  constructor({ taskId, timeoutMs }: { taskId: string; timeoutMs: number }) {
    super({
      name: 'Gatehouse_TaskTimeoutError',
      message: `The task ${taskId} was not done after ${timeoutMs} ms. It goes on at the gateway.`,
    })
    this.taskId = taskId
  }

  static override isInstance(error: unknown): error is TaskTimeoutError {
    return AISDKError.isInstance(error) && error.name === 'Gatehouse_TaskTimeoutError'
  }
}

/** The gateway's body of an error, in every family. */
const ErrorBody = z.object({
  error: z.object({
    message: z.string(),
    type: z.string().nullish(),
    param: z.string().nullish(),
    code: z.string().nullish(),
  }),
})

/** How the gateway tells its errors, for whatever reads answers; `x-should-retry` knows better than the status. */
export const ERROR_STRUCTURE = {
  errorSchema: ErrorBody,
  errorToMessage: (body: z.infer<typeof ErrorBody>) => body.error.message,
  isRetryable({ status, headers }: Response): boolean {
    const told = headers.get('x-should-retry')
    if (told === 'true' || told === 'false') return told === 'true'
    return status === 408 || status === 409 || status === 429 || status >= 500
  },
}

/** The gateway's code of what went wrong: of a refused request, of a failed task, or of the last of several tries. */
export function errorCodeOf(error: unknown): string | undefined {
  if (TaskFailedError.isInstance(error)) return error.failCode
  if (APICallError.isInstance(error)) return ErrorBody.safeParse(error.data).data?.error.code ?? undefined
  const last = error instanceof Error && 'lastError' in error ? error.lastError : undefined
  return last === undefined || last === error ? undefined : errorCodeOf(last)
}
