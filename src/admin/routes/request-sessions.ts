/** The admin API's sessions of calls: requests that callers put together, such as those of a conversation or a run of an agent. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import type { RequestReader } from '../../observe/requests/request-reader.ts'
import type { RequestView } from '../../observe/requests/request-view.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { eachNewest, REQUEST_FILTERS, readRequestQuery } from './request-query.ts'
import { adminRoute } from './route.ts'

type RequestSessionParts = { requests: Pick<RequestReader, 'page'> }

const MAX_SESSIONS = 200
const MAX_MODELS = 20

const OF_NEWEST = 'Of its newest request.'
const Session = titled('RequestSession', {
  session: Type.String({
    description: 'As the header x-gatehouse-session names it: a filter of `GET /admin/v1/requests`.',
  }),
  project_id: orNull(Type.String(), OF_NEWEST),
  token_id: Type.String({ description: OF_NEWEST }),
  end_user: orNull(Type.String(), OF_NEWEST),
  requests: Type.Integer(),
  errors: Type.Integer(),
  models: Type.Array(Type.String(), { description: 'At most 20.' }),
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  cost: orNull(Type.Number(), 'null: that of one of them is not known.'),
  first_at: Type.Integer({ description: 'Unix seconds, of its oldest request that was looked at.' }),
  last_at: Type.Integer({ description: 'Unix seconds.' }),
})
type Session = Type.Static<typeof Session>
const Sessions = titled('RequestSessionList', {
  object: Type.Literal('request.sessions'),
  data: Type.Array(Session, { description: 'The one with the newest request first.' }),
  partial: Type.Boolean({ description: 'The log has more rows than were looked at: numbers may be too small.' }),
})

export function requestSessionRoutes({ requests }: RequestSessionParts): Route[] {
  async function list(context: Context): Promise<Response> {
    const filter = readRequestQuery(context)
    if (!filter) return Response.json({ object: 'request.sessions', data: [], partial: false })
    const sessions = new Map<string, Session>()
    const partial = await eachNewest(requests, filter, (row) => {
      if (row.session !== null) add(sessions, row.session, row)
    })
    const data = [...sessions.values()].slice(0, MAX_SESSIONS)
    return Response.json({ object: 'request.sessions', data, partial: partial || data.length < sessions.size })
  }

  return [
    adminRoute(['GET', '/admin/v1/request-sessions', { right: 'read', project: 'own' }], {
      summary: 'List sessions of calls',
      description:
        'Requests of the log by their session, from at most the newest 2,000 rows that meet the filters. Who is bound to a project sees those of it.',
      query: REQUEST_FILTERS,
      response: Sessions,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: list,
    }),
  ]
}

/** Rows come newest first. */
function add(sessions: Map<string, Session>, session: string, row: RequestView): void {
  const { project_id, token_id, end_user, created_at, model } = row
  let sum = sessions.get(session)
  if (!sum) {
    const nothing = { requests: 0, errors: 0, models: [], input_tokens: 0, output_tokens: 0, cost: 0 }
    sum = { session, project_id, token_id, end_user, ...nothing, first_at: created_at, last_at: created_at }
    sessions.set(session, sum)
  }
  sum.requests++
  if (row.error !== null || row.status >= 400) sum.errors++
  if (model !== '' && !sum.models.includes(model) && sum.models.length < MAX_MODELS) sum.models.push(model)
  sum.input_tokens += row.input_tokens
  sum.output_tokens += row.output_tokens
  sum.cost = sum.cost === null || row.cost === null ? null : sum.cost + row.cost
  sum.first_at = Math.min(sum.first_at, created_at)
}
