/** Encodes a task for its clients (specification 2.6, 2.7), and the errors of this family. */
import type { Outputs } from '../../outputs/outputs.ts'
import { type ErrorCode, errorBody, type GatewayError } from '../../spec/error.ts'
import type { FailCode, Task, TaskAnswer, TaskCreated, TaskData, TaskList } from '../../spec/task.ts'
import type { TaskErrorBody } from '../../spec/task-error.ts'
import { kindOf } from './order-kinds.ts'

/** Where links lead: `base_url` is known only when they are read, since the gateway may have moved since the order. */
type Links = { outputs: Pick<Outputs, 'link'>; base_url: string }

/** Links are created on each read, so that each is valid for its full lifetime from then on. */
export function taskData(task: Task, links: Links): TaskData {
  const { task_id, status, submit_time, start_time, finish_time } = task
  const has_failed = status === 'FAILURE'
  const data: TaskData = {
    task_id,
    status,
    progress: `${task.progress}%`,
    submit_time,
    start_time,
    finish_time,
    fail_code: has_failed ? task.fail_code : '',
    fail_reason: has_failed ? task.fail_reason : '',
  }
  if (status !== 'SUCCESS') return data
  data.outputs = outputUrls(task, links)
  const [first] = data.outputs
  if (first !== undefined) data.result_url = first
  return data
}

/** Copied files have links of the gateway, the rest have the provider's URLs. */
function outputUrls({ task_id, family, outputs: files }: Task, { outputs, base_url }: Links): string[] {
  const path = kindOf(family).content_path
  return files.flatMap(({ key, url }, index) => {
    if (key !== undefined) return [outputs.link({ base_url, path, task_id, index })]
    return url === undefined ? [] : [url]
  })
}

export const encodeTask = (task: Task, links: Links, message = ''): TaskAnswer => ({
  code: 'success',
  message,
  data: taskData(task, links),
})

export const encodeTaskCreated = ({ task_id }: Task): TaskCreated => ({
  code: 'success',
  data: { task_id },
  message: '',
  fail_code: '',
})

export const encodeTaskList = ({ tasks, has_more }: { tasks: Task[]; has_more: boolean }, links: Links): TaskList => ({
  code: 'success',
  message: '',
  data: {
    tasks: tasks.map((task) => taskData(task, links)),
    has_more,
    next_cursor: (has_more && tasks.at(-1)?.task_id) || '',
  },
})

/** Where an error could also have been the failure of a task, both have the same code. */
const FAIL_CODE_OF: Partial<Record<ErrorCode, FailCode>> = {
  invalid_json: 'invalid_input',
  missing_required_parameter: 'invalid_input',
  invalid_type: 'invalid_input',
  invalid_value: 'invalid_input',
  unsupported_parameter: 'invalid_input',
  unsupported_value: 'invalid_input',
  unsupported_endpoint: 'model_unavailable',
  ambiguous_model: 'invalid_input',
  input_media_invalid: 'input_media_invalid',
  content_policy_violation: 'content_policy_violation',
  content_blocked: 'content_policy_violation',
  model_not_found: 'model_unavailable',
  model_not_allowed: 'model_unavailable',
  model_retired: 'model_unavailable',
  no_available_channel: 'model_unavailable',
  insufficient_quota: 'insufficient_quota',
  internal_error: 'internal_error',
}

/** One body with both the flat form that this family's clients expect and the nested form of all others. */
export const encodeTaskError = (error: GatewayError): TaskErrorBody => ({
  code: error.code,
  message: error.message,
  data: null,
  fail_code: error.detail.fail_code ?? FAIL_CODE_OF[error.code] ?? '',
  ...errorBody(error),
})
