/** The admin API's live events: a stream that lasts as long as its reader may read it. */
import Type from 'typebox'
import type { ServerSettings } from '../../config/config.ts'
import { storedStream } from '../../families/shared/event-stream.ts'
import type { AdminAccess, Context, Route } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import type { LiveEvents } from '../../observe/requests/live-events.ts'
import { LIVE_EVENT_TYPES, type LiveEvent, readPlace } from '../../observe/requests/live-followers.ts'
import { invalidValue } from '../../spec/error.ts'
import { parameter, titled } from '../../spec/fields.ts'
import { readInteger } from './list.ts'
import { adminRoute } from './route.ts'

type EventRouteParts = {
  live: LiveEvents
  /** Rejects for a caller that may not, or may no longer. */
  admit(context: Context, access: AdminAccess): Promise<void>
  settings: Pick<ServerSettings, 'keep_alive_seconds'>
  clock: Clock
}

/** How soon a reader whose token was revoked, or whose session has ended, reads nothing more. */
const CHECK_MILLISECONDS = 10_000
/** As many as may wait for one reader. */
const MAX_NEWEST = 1_000
const ACCESS: AdminAccess = { right: 'read', project: 'own' }

const LiveEventObject = titled('LiveEvent', {
  type: Type.Union([...LIVE_EVENT_TYPES, 'dropped'].map((type) => Type.Literal(type))),
  at_ms: Type.Integer({ description: 'Unix milliseconds.' }),
  data: Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'Of `request` and `audit`: as in their lists, without `id`, feedback and hashes. Of `alert`: `event`, `message` and `data`. Of `task`: its state after a change, without its request. Of `dropped`: how many `events` the reader lost, because it read too slowly or came back too late; null: that is not known.',
    },
  ),
})

export function eventRoutes({ live, admit, settings, clock }: EventRouteParts): Route[] {
  function follow(context: Context): Response {
    const query = context.query()
    const [types, newest] = [readTypes(query.get('types')), readInteger(query, 'newest', MAX_NEWEST)]
    const ended = new AbortController()
    const { project_id, role, actor } = context.admin
    const after = readPlace(context.header('last-event-id'))
    const filter = { types, newest, project_id, actor, ...(after && { after }) }
    const events = live.follow(filter, AbortSignal.any([context.signal, ended.signal]))
    checkAgain(context, ended, ({ admin }) => admin.role === role && admin.project_id === project_id)
    return storedStream(written(events, ended), context, { settings, clock })
  }

  /** Ends the stream of an administrator that is none any more, or that has other rights than at its begin. */
  function checkAgain(context: Context, ended: AbortController, isSame: (context: Context) => boolean): void {
    const cancel = clock.after(CHECK_MILLISECONDS, () => {
      admit(context, ACCESS).then(
        () => (isSame(context) ? checkAgain(context, ended, isSame) : ended.abort()),
        () => ended.abort(),
      )
    })
    const stop = () => cancel()
    ended.signal.addEventListener('abort', stop, { once: true })
    context.signal.addEventListener('abort', stop, { once: true })
  }

  return [
    adminRoute(['GET', '/admin/v1/events', ACCESS], {
      summary: 'Follow what happens',
      description:
        'Server-sent events of all processes while they happen: requests that ended, alerts, tasks that change, and the audit log. Earlier events are in the lists. Who comes back with `Last-Event-ID` within a minute gets what happened meanwhile; `dropped` says where something is missing. Who is bound to a project sees what belongs to it.',
      headers: {
        'Last-Event-ID': parameter('The `id` of the last event that was read.'),
      },
      query: {
        types: parameter(`Only these, separated by commas: ${LIVE_EVENT_TYPES.join(', ')}. Default: all.`),
        newest: parameter(
          'Of the requests of each fifth of a second at most so many, the newest; `dropped` counts the others. Default: all.',
          Type.Integer({ minimum: 1, maximum: MAX_NEWEST }),
        ),
      },
      stream: LiveEventObject,
      errors: ['invalid_value', 'server_is_overloaded'],
      handle: async (context) => follow(context),
    }),
  ]
}

/** A batch is written at once. */
async function* written(batches: AsyncIterable<readonly LiveEvent[]>, ended: AbortController): AsyncGenerator<string> {
  try {
    for await (const batch of batches) yield batch.map(eventText).join('')
  } finally {
    ended.abort()
  }
}

const eventText = ({ type, at_ms, text, id }: LiveEvent): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: {"type":"${type}","at_ms":${at_ms},"data":${text}}\n\n`

function readTypes(text: string | null): readonly (typeof LIVE_EVENT_TYPES)[number][] {
  if (text === null) return LIVE_EVENT_TYPES
  return text.split(',').map((given) => {
    const known = LIVE_EVENT_TYPES.find((type) => type === given.trim())
    if (known) return known
    const rule = `"types" must be a list of ${LIVE_EVENT_TYPES.join(', ')}, separated by commas.`
    throw invalidValue('types', rule)
  })
}
