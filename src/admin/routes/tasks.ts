/** The admin API's tasks: list them, look at one, and cancel it. */
import Type from 'typebox'
import { IMAGE_FAMILIES, THREE_D_FAMILIES, VIDEO_FAMILIES } from '../../families/tasks/order-kinds.ts'
import { endOf, MAX_DEADLINE_SECONDS, resumeTask } from '../../families/tasks/resume-task.ts'
import { type BodyParts, optionalBodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { unixSeconds } from '../../kit/clock.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, integer, orNull, parameter, titled } from '../../spec/fields.ts'
import { readTaskStatuses, TASK_STATUSES, type Task, type TaskStatus } from '../../spec/task.ts'
import type { TaskStore, WebhookStore } from '../../store/store.ts'
import { objectIn, originOf } from './edit.ts'
import { listRoute, pageAnswer, readPage } from './list.ts'
import { adminRoute } from './route.ts'
import { AdminTask, AdminTaskDetail, taskDetail, taskRow } from './task-view.ts'

type TaskRouteParts = BodyParts & {
  tasks: Pick<TaskStore, 'list' | 'find' | 'requestCancel' | 'resume' | 'reopen' | 'steps'>
  webhooks: Pick<WebhookStore, 'retry' | 'ofTask'>
}

const ResumeRequest = closedObject('AdminTaskResume', {
  deadline_seconds: integer(
    { minimum: 1, maximum: MAX_DEADLINE_SECONDS },
    'From now on. Needed where the deadline of the task has passed.',
  ),
})

const AdminWebhook = titled('AdminWebhook', {
  task_id: Type.String(),
  webhook_id: Type.String({ description: 'The id of the event; the same in each delivery.' }),
  attempts: Type.Integer({ description: 'Since it was sent for the first time, or was made due again.' }),
  delivered_at: orNull(Type.Integer(), 'Unix seconds; null: not delivered.'),
})

const FAMILIES_OF: Record<string, readonly EndpointFamily[]> = {
  video: VIDEO_FAMILIES,
  '3d': THREE_D_FAMILIES,
  image: IMAGE_FAMILIES,
}
const KINDS = Object.keys(FAMILIES_OF)

const params = { task_id: 'The id of a task.' }

export function adminTaskRoutes({ tasks, webhooks, clock, settings }: TaskRouteParts): Route[] {
  const readResume = optionalBodyReader(ResumeRequest, { settings, clock })
  const { find, found, projectOf } = objectIn('task_id', 'task', tasks.find)

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { limit, after } = readPage(query)
    const [status, token_id] = [query.get('status'), query.get('token_id')]
    const project_id = context.admin.project_id ?? query.get('project_id') ?? undefined
    const [kind, model] = [query.get('kind'), query.get('model')]
    const rows = await tasks.list({
      limit: limit + 1,
      ...(after?.[0] !== undefined && { after: after[0] }),
      ...(status !== null && { statuses: readStatuses(status) }),
      ...(token_id !== null && { token_id }),
      ...(project_id !== undefined && { project_id }),
      ...(kind !== null && { families: readKind(kind) }),
      ...(model !== null && { model }),
    })
    return pageAnswer(rows, { limit, view: taskRow, keyOf: ({ task_id }) => [task_id] })
  }

  async function cancel(context: Context): Promise<Response> {
    const before = await found(context)
    const { task_id } = before
    const now = { now: unixSeconds(clock), now_ms: clock.now() }
    const task = await tasks.requestCancel(task_id, now, (changed) => ({
      ...auditOf(context, changed, 'task.cancel'),
      before: { status: before.status },
      after: { status: changed.status, is_cancel_requested: true },
    }))
    if (!task)
      throw new GatewayError('invalid_value', `${endOf((await find(context)) ?? before)}: there is nothing to cancel.`)
    return Response.json(taskRow(task))
  }

  const auditOf = (context: Context, { task_id, project_id, status, deadline_at }: Task, action: string) => ({
    ...originOf(context),
    at_ms: clock.now(),
    action,
    object_type: 'task',
    object_id: task_id,
    project_id,
    before: { status, deadline_at },
  })

  async function resume(context: Context): Promise<Response> {
    const { deadline_seconds } = await readResume(context)
    const task = await found(context)
    const now = unixSeconds(clock)
    await resumeTask(tasks, task, {
      requested: deadline_seconds === undefined ? undefined : now + deadline_seconds,
      now,
      now_ms: clock.now(),
      deadline_name: '"deadline_seconds": 7200',
      audit: (after) => ({ ...auditOf(context, task, 'task.resume'), after }),
    })
    return Response.json(taskRow((await find(context)) ?? task))
  }

  async function retryDelivery(context: Context): Promise<Response> {
    const task = await found(context)
    const { task_id } = task
    if (!(await webhooks.retry(task_id, clock.now(), auditOf(context, task, 'task.retry_delivery')))) {
      throw new GatewayError(
        'invalid_value',
        `The task ${task_id} has no webhook to deliver: it was submitted without one, or has not ended.`,
      )
    }
    const webhook = await webhooks.ofTask(task_id)
    const { callback_id = '', attempts = 0, delivered_at = null } = webhook ?? {}
    return Response.json({ task_id, webhook_id: callback_id, attempts, delivered_at })
  }

  return [
    listRoute(['GET', '/admin/v1/tasks', { right: 'read', project: 'own' }], {
      summary: 'List tasks',
      description: 'Newest first, without their requests. A project_admin sees those of its project.',
      query: {
        status: {
          description: `Only tasks in these states, separated by commas: ${TASK_STATUSES.join(', ')}, or unfinished for all that have not ended.`,
          schema: Type.String(),
          example: 'FAILURE',
        },
        kind: parameter('Only tasks that generate this.', Type.Union(KINDS.map((kind) => Type.Literal(kind)))),
        model: parameter('Only tasks of this model, by its id.'),
        token_id: parameter('Only tasks of this token.'),
        project_id: parameter('Only tasks of this project.'),
      },
      of: [AdminTask, 'AdminTaskList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['GET', '/admin/v1/tasks/:task_id', { right: 'read', project: projectOf }], {
      summary: 'Look at a task',
      description: 'Its state, its target, its steps, its files and its webhook; not its request.',
      params,
      response: AdminTaskDetail,
      errors: ['storage_unavailable'],
      async handle(context) {
        const task = await found(context)
        const [webhook, steps] = await Promise.all([webhooks.ofTask(task.task_id), tasks.steps(task.task_id)])
        return Response.json(taskDetail(task, webhook, steps))
      },
    }),
    adminRoute(['POST', '/admin/v1/tasks/:task_id/cancel', 'operate'], {
      summary: 'Cancel a task',
      description: 'It is canceled at its next step; a provider that has begun may still finish and charge for it.',
      params,
      response: AdminTask,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: cancel,
    }),
    adminRoute(['POST', '/admin/v1/tasks/:task_id/resume', 'operate'], {
      summary: 'Resume a task',
      description:
        'Its next step becomes due now. A task that failed after its provider had finished it copies its files again; one that timed out is polled for a late result. An order is never sent again.',
      params,
      request: ResumeRequest,
      body_optional: true,
      example: { deadline_seconds: 7_200 },
      response: AdminTask,
      errors: ['storage_unavailable'],
      handle: resume,
    }),
    adminRoute(['POST', '/admin/v1/tasks/:task_id/retry-delivery', 'operate'], {
      summary: 'Deliver a webhook again',
      description:
        'The webhook of an ended task becomes due again, whether or not it was delivered, with the id that it had: receivers can tell that it is the same event.',
      params,
      response: AdminWebhook,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: retryDelivery,
    }),
  ]
}

function readStatuses(text: string): TaskStatus[] {
  const { statuses, unknown } = readTaskStatuses(text)
  if (unknown === undefined) return statuses
  const rule = `"status" may contain ${TASK_STATUSES.join(', ')} and unfinished, not ${JSON.stringify(unknown.slice(0, 40))}.`
  throw invalidValue('status', rule)
}

function readKind(kind: string): EndpointFamily[] {
  const families = Object.hasOwn(FAMILIES_OF, kind) ? FAMILIES_OF[kind] : undefined
  if (families) return [...families]
  const rule = `"kind" must be one of ${KINDS.join(', ')}, not ${JSON.stringify(kind.slice(0, 40))}.`
  throw invalidValue('kind', rule)
}
