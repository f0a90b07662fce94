/** The admin API's alerts: what is open, and what was. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import type { AlertHistoryRow, AlertHistoryStore } from '../../store/admin/alert-store.ts'
import { noSuch, originOf } from './edit.ts'
import { listAnswer, listRoute, readOneOf, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type AlertRouteParts = { alertHistory: Omit<AlertHistoryStore, 'record'>; clock: Clock }

const ROOT = '/admin/v1/alerts'
const STATES = ['open', 'past'] as const
const time = (description: string) => Type.Integer({ description })
const AlertObject = titled('Alert', {
  object: Type.Literal('alert'),
  alert_id: Type.String(),
  type: Type.String({ description: 'As in `alerts.events` of the configuration.' }),
  message: Type.String({ description: 'One sentence.' }),
  data: Type.Object({}, { additionalProperties: true, description: 'What it consists of, without secrets.' }),
  state: Type.Enum([...STATES], {
    description:
      'open: it holds now, or was raised lately and no operator has closed it. A failing target, a refused key, a delayed ledger or a full disk is past 3 minutes after it was seen last; any other event after the time in which it is sent once, mostly a day.',
  }),
  times: Type.Integer({ description: 'How often it was seen, counted at most once a minute by each process.' }),
  raised_at: time('Unix seconds.'),
  last_seen_at: time('Unix seconds.'),
  open_until: time('Unix seconds; later where it is seen again before.'),
  closed_at: orNull(Type.Integer(), 'When an operator closed it.'),
  closed_by: orNull(Type.String(), 'Who did.'),
})

export function alertRoutes({ alertHistory, clock }: AlertRouteParts): Route[] {
  const view = (row: AlertHistoryRow): Type.Static<typeof AlertObject> => ({
    object: 'alert',
    alert_id: row.alert_id,
    type: row.type,
    message: row.message,
    data: row.data,
    state: row.closed_ms === null && row.open_until_ms > clock.now() ? 'open' : 'past',
    times: row.times,
    raised_at: Math.floor(row.first_ms / 1000),
    last_seen_at: Math.floor(row.last_ms / 1000),
    open_until: Math.floor(row.open_until_ms / 1000),
    closed_at: row.closed_ms === null ? null : Math.floor(row.closed_ms / 1000),
    closed_by: row.closed_by,
  })

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const state = readOneOf(query, 'state', STATES)
    const type = query.get('type') ?? undefined
    const { rows, next } = await alertHistory.page({
      ...readPage(query),
      now_ms: clock.now(),
      ...(state !== undefined && { is_open: state === 'open' }),
      ...(type !== undefined && { type }),
    })
    return listAnswer(rows.map(view), next)
  }

  async function close(context: Context): Promise<Response> {
    const { alert_id = '' } = context.params
    const present = await alertHistory.find(alert_id)
    if (!present) throw noSuch('alert', alert_id)
    const now_ms = clock.now()
    const audit = {
      ...originOf(context),
      at_ms: now_ms,
      action: 'alert.close',
      object_type: 'alert',
      object_id: alert_id,
    }
    const { type, message } = present
    const closed = await alertHistory.close(
      alert_id,
      { now_ms, by: context.admin.actor },
      { ...audit, after: { type, message } },
    )
    if (!closed)
      throw new GatewayError('invalid_value', `The alert ${alert_id} is not open: there is nothing to close.`)
    return Response.json(view(closed))
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'List alerts',
      description:
        'Open and past ones, newest first, whether or not `alerts` of the configuration sends them somewhere. The newest 10,000 of 90 days are kept.',
      query: {
        state: parameter('Only these. Default: all.', Type.Enum([...STATES])),
        type: parameter('Only this event, such as `breaker.open`.'),
      },
      of: [AlertObject, 'AlertList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['POST', `${ROOT}/:alert_id/close`, 'operate'], {
      summary: 'Close an alert',
      description: 'It is past, although it may still hold: it opens again only after it was over.',
      params: { alert_id: 'The id of an alert.' },
      response: AlertObject,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: close,
    }),
  ]
}
