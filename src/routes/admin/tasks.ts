/** The admin API's tasks: list them, look at one, and cancel it. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'
import { TASK_STATUSES, type Task, type TaskStatus } from '../../spec/task.ts'
import type { TaskStore } from '../../store/store.ts'
import { noSuch, originOf } from './edit.ts'
import { LIST_PARAMETERS, listAnswer, listSchema, readPage } from './list.ts'

export type TaskRouteParts = {
  tasks: Pick<TaskStore, 'list' | 'find' | 'requestCancel'>
  clock: Clock
}

const text = (description: string) => Type.String({ description })
const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const AdminTask = Type.Object(
  {
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
    sent_at: Type.Union([Type.Integer(), Type.Null()], { description: 'When the order was about to be sent.' }),
    deadline_at: Type.Integer(),
  },
  { title: 'AdminTask' },
)
type AdminTask = Type.Static<typeof AdminTask>

const params = { task_id: 'The id of a task.' }

export function adminTaskRoutes({ tasks, clock }: TaskRouteParts): Route[] {
  const find = async (context: Context) => tasks.find(context.params.task_id ?? '')
  const projectOf = async (context: Context) => (await find(context))?.project_id ?? null

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { limit, after } = readPage(query)
    const [status, token_id] = [query.get('status'), query.get('token_id')]
    const project_id = context.admin.project_id ?? query.get('project_id') ?? undefined
    const rows = await tasks.list({
      limit: limit + 1,
      ...(after?.[0] !== undefined && { after: after[0] }),
      ...(status !== null && { statuses: [readStatus(status)] }),
      ...(token_id !== null && { token_id }),
      ...(project_id !== undefined && { project_id }),
    })
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    return listAnswer(page.map(shown), last && [last.task_id])
  }

  async function cancel(context: Context): Promise<Response> {
    const { task_id = '' } = context.params
    const before = await find(context)
    if (!before) throw noSuch('task', task_id)
    const now = { now: unixSeconds(clock), now_ms: clock.now() }
    const task = await tasks.requestCancel(task_id, now, (changed) => ({
      ...originOf(context),
      at_ms: clock.now(),
      action: 'task.cancel',
      object_type: 'task',
      object_id: task_id,
      project_id: changed.project_id,
      before: { status: before.status },
      after: { status: changed.status, is_cancel_requested: true },
    }))
    if (!task) throw new GatewayError('invalid_value', `The task ${task_id} has ended: there is nothing to cancel.`)
    return Response.json(shown(task))
  }

  return [
    {
      method: 'GET',
      path: '/admin/v1/tasks',
      admin: { right: 'read', project: 'own' },
      operation: {
        summary: 'List tasks',
        description: 'Newest first, without their requests. A project_admin sees those of its project.',
        tag: 'Admin',
        query: {
          ...LIST_PARAMETERS,
          status: { description: 'Only tasks in this state.', schema: Type.Enum(TASK_STATUSES) },
          token_id: { description: 'Only tasks of this token.', schema: Type.String() },
          project_id: { description: 'Only tasks of this project.', schema: Type.String() },
        },
        response: listSchema(AdminTask, 'AdminTaskList'),
        errors: ['invalid_value', 'storage_unavailable'],
      },
      handle: list,
    },
    {
      method: 'GET',
      path: '/admin/v1/tasks/:task_id',
      admin: { right: 'read', project: projectOf },
      operation: {
        summary: 'Look at a task',
        description: 'Its state, its target and why it failed; not its request.',
        tag: 'Admin',
        params,
        response: AdminTask,
        errors: ['object_not_found', 'storage_unavailable'],
      },
      async handle(context) {
        const task = await find(context)
        if (!task) throw noSuch('task', context.params.task_id)
        return Response.json(shown(task))
      },
    },
    {
      method: 'POST',
      path: '/admin/v1/tasks/:task_id/cancel',
      admin: { right: 'operate' },
      operation: {
        summary: 'Cancel a task',
        description: 'It is canceled at its next step; a provider that has begun may still finish and charge for it.',
        tag: 'Admin',
        params,
        response: AdminTask,
        errors: ['invalid_value', 'object_not_found', 'storage_unavailable'],
      },
      handle: cancel,
    },
  ]
}

function readStatus(status: string): TaskStatus {
  const known = TASK_STATUSES.find((one) => one === status)
  if (known) return known
  throw new GatewayError('invalid_value', `"status" must be one of ${TASK_STATUSES.join(', ')}.`, { param: 'status' })
}

/** Not its request, which may hold contents. */
const shown = (task: Task): AdminTask => ({
  task_id: task.task_id,
  token_id: task.token_id,
  project_id: task.project_id,
  end_user: task.end_user,
  family: task.family,
  model: task.model,
  status: task.status,
  progress: task.progress,
  submit_time: task.submit_time,
  start_time: task.start_time,
  finish_time: task.finish_time,
  fail_code: task.fail_code,
  fail_reason: task.fail_reason,
  provider: task.provider,
  upstream_model: task.upstream_model,
  provider_key: task.provider_key,
  sent_at: task.sent_at,
  deadline_at: task.deadline_at,
})
