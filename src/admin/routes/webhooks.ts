/** The admin API's webhooks: the deliveries of ended tasks with their attempts, and another delivery. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import type { WebhookStore } from '../../store/store.ts'
import type { WebhookDelivery, WebhookState } from '../../store/tasks/webhook-row.ts'
import { objectIn, originOf } from './edit.ts'
import { listAnswer, listRoute, readOneOf, readPage } from './list.ts'
import { adminRoute } from './route.ts'
import { withoutQuery } from './task-view.ts'

type WebhookRouteParts = { webhooks: Pick<WebhookStore, 'page' | 'delivery' | 'retry'>; clock: Clock }

const ROOT = '/admin/v1/webhooks'
const ONE = `${ROOT}/:webhook_id`
const STATES = ['pending', 'delivered', 'given_up'] as const satisfies WebhookState[]
const nullable = (description: string) => orNull(Type.Integer(), description)
const WebhookObject = titled('Webhook', {
  object: Type.Literal('webhook'),
  webhook_id: Type.String({ description: 'As its receiver gets it in `webhook-id`.' }),
  task_id: Type.String(),
  token_id: Type.String(),
  project_id: orNull(Type.String()),
  url: Type.String({ description: 'Without its query.' }),
  state: Type.Enum([...STATES], { description: 'given_up: it was not delivered, and no attempt is left.' }),
  ended_at: Type.Integer({ description: 'When its task ended, in unix seconds.' }),
  next_attempt_at: nullable('Unix seconds; null: none is left.'),
  delivered_at: nullable('Unix seconds; null: not delivered.'),
  attempts: Type.Array(
    Type.Object({
      at_ms: Type.Integer({ description: 'Unix milliseconds.' }),
      status: Type.Integer({ description: 'Of the response; 0: there was none.' }),
      error: orNull(Type.String(), 'Why there was none.'),
      took_ms: Type.Integer(),
    }),
    { description: 'Of the last 90 days, in order.' },
  ),
})
type WebhookView = Type.Static<typeof WebhookObject>

export function webhookRoutes({ webhooks, clock }: WebhookRouteParts): Route[] {
  const { found, projectOf } = objectIn('webhook_id', 'webhook of an ended task', webhooks.delivery)

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const state = readOneOf(query, 'state', STATES)
    const own = context.admin.project_id
    const project_id = query.get('project_id') ?? own
    if (own !== undefined && project_id !== own) return listAnswer([], undefined)
    const { rows, next } = await webhooks.page({
      ...readPage(query),
      ...(state !== undefined && { state }),
      ...(project_id !== undefined && { project_id }),
    })
    return listAnswer(rows.map(view), next)
  }

  async function redeliver(context: Context): Promise<Response> {
    const { task_id, callback_id, project_id, delivered_at } = await found(context)
    const at_ms = clock.now()
    const audit = {
      ...originOf(context),
      at_ms,
      action: 'task.retry_delivery',
      object_type: 'task',
      object_id: task_id,
      project_id,
      before: { webhook_id: callback_id, delivered_at },
    }
    await webhooks.retry(task_id, at_ms, audit)
    return Response.json(view(await found(context)))
  }

  const params = { webhook_id: 'The id of a webhook.' }
  return [
    listRoute(['GET', ROOT, { right: 'read', project: 'own' }], {
      summary: 'List webhooks',
      description:
        'Of ended tasks, the last to end first, each with its attempts. Who is bound to a project sees those of it.',
      query: {
        state: parameter('Only these. Default: all.', Type.Enum([...STATES])),
        project_id: parameter('Only webhooks of this project.'),
      },
      of: [WebhookObject, 'WebhookList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['GET', ONE, { right: 'read', project: projectOf }], {
      summary: 'A webhook',
      description: 'With its attempts.',
      params,
      response: WebhookObject,
      errors: ['storage_unavailable'],
      handle: async (context) => Response.json(view(await found(context))),
    }),
    adminRoute(['POST', `${ONE}/redeliver`, 'operate'], {
      summary: 'Deliver a webhook once more',
      description: 'It becomes due now with the id that it had, whether or not it was delivered.',
      params,
      response: WebhookObject,
      errors: ['storage_unavailable'],
      handle: redeliver,
    }),
  ]
}

const secondsOf = (ms: number | null): number | null => (ms === null ? null : Math.floor(ms / 1000))

function view({ callback_id, due_ms, delivered_at, ended_ms, tries, url, ...webhook }: WebhookDelivery): WebhookView {
  const { task_id, token_id, project_id } = webhook
  return {
    object: 'webhook',
    webhook_id: callback_id,
    task_id,
    token_id,
    project_id,
    url: withoutQuery(url),
    state: due_ms !== null ? 'pending' : delivered_at !== null ? 'delivered' : 'given_up',
    ended_at: Math.floor(ended_ms / 1000),
    next_attempt_at: secondsOf(due_ms),
    delivered_at,
    attempts: tries,
  }
}
