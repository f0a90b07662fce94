/** A task that takes minutes, as clients see it (specification 2.6, 2.7, 3.2, 7) and as the gateway stores it. */
import Type from 'typebox'
import type { EndpointFamily } from './endpoint-family.ts'
import { list, text, titled } from './fields.ts'

/** In the order of a task's states. A task only moves forward; SUCCESS and FAILURE are final. */
export const TASK_STATUSES = ['NOT_START', 'SUBMITTED', 'QUEUED', 'IN_PROGRESS', 'SUCCESS', 'FAILURE'] as const
export const TaskStatus = Type.Enum([...TASK_STATUSES])
export type TaskStatus = (typeof TASK_STATUSES)[number]

export const isEndedStatus = (status: TaskStatus): boolean => status === 'SUCCESS' || status === 'FAILURE'

/** States separated by commas, in any case, or `unfinished` for all that have not ended. `unknown`: the first word that is none. */
export function readTaskStatuses(text: string): { statuses: TaskStatus[]; unknown?: string } {
  const statuses = new Set<TaskStatus>()
  for (const word of text.split(',').map((part) => part.trim())) {
    const named = TASK_STATUSES.filter((status) =>
      word.toLowerCase() === 'unfinished' ? !isEndedStatus(status) : status === word.toUpperCase(),
    )
    if (named.length === 0) return { statuses: [...statuses], unknown: word }
    for (const status of named) statuses.add(status)
  }
  return { statuses: [...statuses] }
}

type FailRow = { when: string; advice: string }

/** Every `fail_code`: when a task ends with it, and what the client should do. */
export const FAIL_CODES = {
  invalid_input: {
    when: 'The upstream rejected a field of the request.',
    advice: 'Change the field that `fail_reason` names, and submit again.',
  },
  content_policy_violation: {
    when: 'The upstream rejected the prompt, an input or the result for its content.',
    advice: 'Change the prompt or the inputs, and submit again.',
  },
  input_media_invalid: {
    when: 'An image or video of the request could not be fetched or read.',
    advice: 'Check its address and its format, and submit again.',
  },
  model_unavailable: {
    when: 'No target is available, or the upstream does not know the model.',
    advice: 'Choose another model, or ask the operator.',
  },
  upstream_error: { when: 'The upstream failed.', advice: 'Submit again; if it persists, choose another model.' },
  upstream_rate_limited: {
    when: 'The upstream accepted no more orders from this gateway.',
    advice: 'Submit again after a while.',
  },
  upstream_auth: { when: 'The upstream rejected the credentials of the gateway.', advice: 'Ask the operator.' },
  insufficient_quota: {
    when: "The gateway's account at the upstream has no money left.",
    advice: 'Ask the operator.',
  },
  generation_failed: {
    when: 'The upstream could not generate the result.',
    advice: 'Submit again, perhaps with another prompt.',
  },
  no_output: {
    when: 'The upstream reported success without a result, often by a filter.',
    advice: 'Change the prompt, and submit again.',
  },
  output_expired: {
    when: 'The file exists at the upstream, but could not be copied before the deadline, or is too large.',
    advice: 'Ask the operator to resume the task, or submit again.',
  },
  output_invalid: {
    when: 'The file of the upstream was incomplete or not of its type until the copy deadline.',
    advice: 'Submit again; if it persists, choose another model.',
  },
  timeout: {
    when: 'The task did not end before its deadline; the upstream may still finish it.',
    advice: 'Submit again; if it persists, ask the operator for a later deadline.',
  },
  canceled: { when: 'The task was canceled.', advice: 'Nothing.' },
  internal_error: { when: 'A fault of the gateway.', advice: 'Submit again; tell the operator the task_id.' },
  submit_outcome_unknown: {
    when: 'It is not known whether the upstream accepted the order, which is not sent again.',
    advice: 'Submit again if it may cost a second time.',
  },
} as const satisfies Record<string, FailRow>
export type FailCode = keyof typeof FAIL_CODES
export const FailCode = Type.Enum(Object.keys(FAIL_CODES) as FailCode[])

/** The times of a task are unix seconds, 0 until they are known. */
const unixTime = (description: string) => Type.Integer({ description: `${description} Unix timestamp, 0 until then.` })

const FailCodeOrNone = Type.String({
  description: 'One of the codes of the manual; empty unless the status is FAILURE.',
})

export const TaskData = titled('TaskData', {
  task_id: Type.String(),
  status: TaskStatus,
  progress: Type.String({ description: 'A percentage, such as `30%`; never decreases.' }),
  outputs: list(Type.String(), 'URLs; present when the status is SUCCESS.'),
  submit_time: unixTime('When the task was accepted.'),
  start_time: unixTime('When generation began.'),
  finish_time: unixTime('When the task ended.'),
  fail_code: FailCodeOrNone,
  fail_reason: Type.String({ description: 'Why it failed; empty unless the status is FAILURE.' }),
  result_url: text('The first of `outputs`.'),
})
export type TaskData = Type.Static<typeof TaskData>

/** Specification 2.6. */
export const TaskCreated = titled('TaskCreated', {
  code: Type.Literal('success'),
  data: Type.Object({ task_id: Type.String() }),
  message: Type.String(),
  fail_code: Type.String(),
})
export type TaskCreated = Type.Static<typeof TaskCreated>

/** Specification 2.7. */
export const TaskAnswer = titled('TaskAnswer', {
  code: Type.Literal('success'),
  message: Type.String(),
  data: TaskData,
})
export type TaskAnswer = Type.Static<typeof TaskAnswer>

export const TaskList = titled('TaskList', {
  code: Type.Literal('success'),
  message: Type.String(),
  data: Type.Object({
    tasks: Type.Array(TaskData),
    has_more: Type.Boolean(),
    next_cursor: Type.String({ description: 'For `after`; empty at the end.' }),
  }),
})
export type TaskList = Type.Static<typeof TaskList>

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
export type JsonObject = { [name: string]: Json }

/** A file that a task generated, as it is stored: in the gateway's storage (`key`), or at the provider (`url`). */
export type TaskOutput = {
  key?: string
  url?: string
  content_type: string
  /** Absent for files that the gateway did not copy. */
  bytes?: number
}

/** A generated file that is still to be copied. */
export type RemoteFile = { url: string; content_type?: string }

/**
 * The same, or a file without a URL, only bytes: the key says where they are stored. `polled`: the bytes came with
 * the response to a poll, so another poll returns them again; otherwise they came with the response to the
 * submission, only once.
 */
export type ComingOutput = RemoteFile | { key: string; content_type: string; polled?: true }

/**
 * A task as the gateway stores it. Times are unix seconds, except those that end in `_ms`, which only schedule the
 * work. `null` means not known yet.
 */
export type Task = {
  /** `task_` and 32 alphanumerics; never the provider's own id. */
  task_id: string
  token_id: string
  /** The project of the token at the submission. */
  project_id: string | null
  /** Whom the client named as the user of the task. */
  end_user: string | null
  family: EndpointFamily
  /** The model's full public id. */
  model: string
  status: TaskStatus
  /** Percent, 0 to 100. */
  progress: number
  submit_time: number
  start_time: number
  finish_time: number
  fail_code: FailCode | ''
  fail_reason: string
  /** The request with the specification's fields and defaults. Its media are the inputs of the task. */
  request: JsonObject
  /**
   * The `scheme://host` at which the client submitted the order. Only links in webhooks start with it, and only without
   * `server.base_url`: other links start with the address of the request that reads them.
   */
  base_url: string
  /** The provider; empty until a target is chosen. */
  provider: string
  /** The provider's name of the model. */
  upstream_model: string
  /** The name of the key that it is sent, polled and cancelled with; null: the provider has only one, or none was chosen. */
  provider_key: string | null
  /** What the caller asked of the routing; null: nothing. */
  call_options: { tags?: string[]; no_fallback?: true } | null
  /** The trace that it was submitted in, as one line of text; null: none. */
  trace: string | null
  /** Targets that certainly did not accept the submission: `<provider>/<its model>`, with
   * `#<key>` where the provider has several keys. */
  tried: string[]
  /** When the submission was about to be sent. It is stored before that. */
  sent_at: number | null
  /**
   * A digest of the provider's configuration at the submission. A submission in doubt is repeated only with the same
   * one.
   */
  sent_to: string | null
  /** The provider's response to the submission: everything that polling needs. */
  operation: Json
  /**
   * The files still to be copied after the provider has finished. For a task whose copying failed: what a resume
   * continues with.
   */
  made: ComingOutput[] | null
  outputs: TaskOutput[]
  outputs_expire_at: number | null
  deadline_at: number
  cancel_asked_at: number | null
  /** The outcome that the provider reported after the task had ended by its deadline or by a cancellation. */
  late_outcome: { status: 'SUCCESS' | 'FAILURE'; at: number; detail: string } | null
  /** The number of failed steps since the last successful one. */
  failures: number
  /** When the next step is due, in unix milliseconds; for a claimed task, when its lease expires; `null`: never. */
  due_ms: number | null
  /** The worker that holds the lease; empty: none. */
  leased_by: string
  /** Increases with every claim, so a write by a worker that lost its lease no longer matches. */
  fence: number
}
