/** How the admin API shows tasks: never their requests, which may hold contents, nor what their providers answered. */
import Type from 'typebox'
import { pick } from '../../kit/pick.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { type Json, TASK_STATUSES, type Task } from '../../spec/task.ts'
import type { WebhookStore } from '../../store/store.ts'
import type { TaskStep } from '../../store/tasks/task-step.ts'

const text = (description: string) => Type.String({ description })
const nullable = (description: string) => orNull(Type.String(), description)

const TaskFields = {
  task_id: Type.String(),
  token_id: Type.String(),
  project_id: nullable('Of the token at the submission.'),
  end_user: nullable('Whom the client named.'),
  family: Type.String(),
  model: Type.String(),
  status: Type.Enum(TASK_STATUSES),
  progress: Type.Integer({ minimum: 0, maximum: 100 }),
  submit_time: Type.Integer({ description: 'Unix seconds; so are the other times.' }),
  start_time: Type.Integer(),
  finish_time: Type.Integer({ description: '0: not finished.' }),
  fail_code: text('Empty: it has not failed.'),
  fail_reason: text('Empty: it has not failed.'),
  provider: text('Empty until a target is chosen.'),
  upstream_model: Type.String(),
  provider_key: nullable('The name of the key; null: the provider has only one.'),
  sent_at: orNull(Type.Integer(), 'When the order was about to be sent.'),
  deadline_at: Type.Integer(),
}
export const AdminTask = titled('AdminTask', TaskFields)
type AdminTask = Type.Static<typeof AdminTask>

const time = (description: string) => orNull(Type.Integer(), description)

export const AdminTaskDetail = titled('AdminTaskDetail', {
  ...TaskFields,
  operation_id: nullable("The provider's own id of the operation, for a question to it; null: none is known."),
  tried: Type.Array(Type.String(), { description: 'Targets that certainly did not accept it.' }),
  failures: Type.Integer({ description: 'Failed steps since the last successful one.' }),
  next_step_ms: time('When its next step is due, or its lease expires, in unix milliseconds; null: never.'),
  worker: text('The process that holds the lease; empty: none.'),
  cancel_requested_at: time('null: it was not.'),
  late_outcome: orNull(
    Type.Object({ status: Type.Enum(['SUCCESS', 'FAILURE']), at: Type.Integer(), detail: Type.String() }),
    'What its provider reported after the task had ended.',
  ),
  steps: Type.Array(
    Type.Object({
      at_ms: Type.Integer({ description: 'Unix milliseconds.' }),
      status: Type.Enum(TASK_STATUSES),
      provider: text('Empty until a target is chosen.'),
      upstream_model: Type.String(),
      provider_key: orNull(Type.String()),
      failures: Type.Integer({
        description: 'Failed steps since the last successful one; the first 50 are recorded.',
      }),
      fail_code: text('Empty: it has not failed.'),
    }),
    {
      description: 'Its states, targets and failed steps, each when it was first reached. The first is its submission.',
    },
  ),
  files_to_copy: Type.Integer(),
  outputs: Type.Array(
    Type.Object({
      file: text('The name of the stored file, or the address without its query.'),
      content_type: Type.String(),
      bytes: orNull(Type.Integer()),
    }),
  ),
  outputs_expire_at: time('null: they are kept.'),
  webhook: orNull(
    Type.Object({
      webhook_id: Type.String(),
      url: text('Without its query.'),
      attempts: Type.Integer(),
      delivered_at: time('null: not delivered.'),
      last_status: time('0: no response; null: not attempted.'),
    }),
    'null: it was submitted without one.',
  ),
})
export type AdminTaskDetail = Type.Static<typeof AdminTaskDetail>

/** Not its request, which may hold contents. */
export const taskRow = (task: Task): AdminTask => ({
  ...pick(task, 'task_id', 'token_id', 'project_id', 'end_user', 'family', 'model', 'status', 'progress'),
  ...pick(task, 'submit_time', 'start_time', 'finish_time', 'fail_code', 'fail_reason', 'provider', 'upstream_model'),
  ...pick(task, 'provider_key', 'sent_at', 'deadline_at'),
})

/** Under which names the kinds of providers store it. */
const OPERATION_NAMES = ['id', 'request_id', 'task_id', 'name', 'path', 'operation']

/** No address: its query may hold a secret. */
function operationId(operation: Json): string | null {
  if (typeof operation === 'string') return operation === '' || operation.includes('://') ? null : operation
  if (typeof operation !== 'object' || operation === null || Array.isArray(operation)) return null
  for (const name of OPERATION_NAMES) {
    const member = Object.hasOwn(operation, name) ? operation[name] : undefined
    const id = member === undefined ? null : operationId(member)
    if (id !== null) return id
  }
  return null
}

type Hook = Awaited<ReturnType<WebhookStore['ofTask']>>

export function taskDetail(task: Task, webhook: Hook, steps: readonly TaskStep[]): AdminTaskDetail {
  return {
    ...taskRow(task),
    operation_id: operationId(task.operation),
    tried: task.tried,
    failures: task.failures,
    next_step_ms: task.due_ms,
    worker: task.leased_by,
    cancel_requested_at: task.cancel_asked_at,
    late_outcome: task.late_outcome,
    steps: [submission(task), ...steps],
    files_to_copy: task.made?.length ?? 0,
    outputs: task.outputs.map(({ key, url = '', content_type, bytes = null }) => ({
      file: key ?? withoutQuery(url),
      content_type,
      bytes,
    })),
    outputs_expire_at: task.outputs_expire_at,
    webhook: webhook
      ? {
          webhook_id: webhook.callback_id,
          url: withoutQuery(webhook.url),
          attempts: webhook.attempts,
          delivered_at: webhook.delivered_at,
          last_status: webhook.last_status,
        }
      : null,
  }
}

const submission = ({ submit_time }: Task): TaskStep => ({
  at_ms: submit_time * 1000,
  status: 'NOT_START',
  provider: '',
  upstream_model: '',
  provider_key: null,
  failures: 0,
  fail_code: '',
})

/** A query often contains a secret. */
export function withoutQuery(text: string): string {
  const url = URL.parse(text)
  return url ? `${url.origin}${url.pathname}${url.search === '' ? '' : '?...'}` : '(no address)'
}
