/** The admin API's request log. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import type { RequestReader } from '../../observe/requests/request-reader.ts'
import type { RequestView } from '../../observe/requests/request-view.ts'
import { invalidValue } from '../../spec/error.ts'
import { titled } from '../../spec/fields.ts'
import type { Audit } from '../audit/audit.ts'
import { noSuch, originOf } from './edit.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { REQUEST_FILTERS, readRequestQuery } from './request-query.ts'
import { adminRoute } from './route.ts'

type RequestRouteParts = { requests: RequestReader; audit: Audit }

const text = (description: string) => Type.String({ description })
const number = (description: string) => Type.Number({ description })
const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const amount = (description: string) => Type.Union([Type.Number(), Type.Null()], { description })

const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(schema)

const FeedbackObject = titled('RequestFeedback', {
  score: amount('null: none was given.'),
  text: orNull('null: none was given.'),
  created_ms: number('Unix milliseconds.'),
})

const AttemptObject = Type.Object(
  {
    target: text('provider/model.'),
    key: optional(text('The name of the key.')),
    start_ms: optional(number('From the arrival to its start.')),
    ms: optional(number('To its first byte or its error.')),
    error: optional(text('An error code.')),
    upstream_status: optional(Type.Integer({ description: 'The status that the provider returned.' })),
    hedge: optional(Type.Boolean({ description: 'It was sent because the first one was slow.' })),
    lost: optional(Type.Boolean({ description: 'It was given up because another one answered first.' })),
    next: optional(text('What followed it, where it did not serve the call.')),
  },
  { additionalProperties: true, title: 'RequestAttempt' },
)

const RequestObject = Type.Object(
  {
    object: Type.Literal('request'),
    id: text('Of the row: clients may repeat a request_id.'),
    request_id: text("The caller's where it gave one."),
    created_at: Type.Integer({ description: 'Its arrival, in unix seconds.' }),
    at_ms: number('The same in milliseconds.'),
    token_id: Type.String(),
    project_id: Type.Union([Type.String(), Type.Null()]),
    end_user: Type.Union([Type.String(), Type.Null()]),
    session: orNull('From the header x-gatehouse-session.'),
    trace_id: Type.Union([Type.String(), Type.Null()]),
    tags: Type.Array(Type.String(), { description: 'From x-gatehouse-tags, and pairs of metadata as key:value.' }),
    family: text('Empty where no call was made.'),
    model: Type.String(),
    provider: Type.String(),
    target: text('provider/model.'),
    status: Type.Integer({
      description: 'Of the response; 0: it is not the call of one request, as in the background.',
    }),
    error: orNull('An error code.'),
    total_ms: number('From its arrival to the last byte.'),
    input_tokens: Type.Integer(),
    output_tokens: Type.Integer(),
    cost: amount(
      'What the caller is charged, in the currency of the ledger; of a task, once it has ended. null: not known.',
    ),
    provider_cost: amount('What the provider charges; null: not known.'),
    attempts: Type.Array(AttemptObject, { description: 'Its upstream calls, in order.' }),
    playground: Type.Optional(
      Type.String({ description: 'The person who called, where the call is one of the playground.' }),
    ),
    feedback: Type.Union([FeedbackObject, Type.Null()]),
    method: optional(Type.String()),
    path: optional(text('Without its query.')),
    outcome: optional(text('How its response ended.')),
    requested_model: optional(text('The model that was requested, where another one served the call.')),
    key: optional(text('The name of the key of the provider.')),
    stream: optional(Type.Boolean({ description: 'It was streamed.' })),
    queued_ms: optional(number('It waited so long for a free place at the provider.')),
    first_byte_ms: optional(number('From its arrival to the first byte of the response.')),
    cache: optional(text('hit, miss or bypass; absent: the response cache is not used.')),
    cache_similarity: optional(number('Of a hit that was found by its meaning.')),
    upstream_status: optional(Type.Integer({ description: 'The status that the provider returned.' })),
    guards: optional(
      Type.Array(
        Type.Object({
          name: Type.String(),
          on: text('input or output.'),
          outcome: text('passed, would_replace, replaced, would_block, failed or blocked.'),
        }),
        { description: 'What its guards have decided.' },
      ),
    ),
    units: optional(Type.Record(Type.String(), Type.Unknown(), { description: 'What was used, as it is priced.' })),
    metadata: optional(Type.Record(Type.String(), Type.String())),
    task_id: optional(text('Of the task that it has created.')),
    websocket: optional(text('The connection that it came over.')),
  },
  { additionalProperties: true, title: 'Request' },
)

const NeighborsObject = titled('RequestNeighbors', {
  object: Type.Literal('request.neighbors'),
  newer: orNull('The `id` of a row; null: there is none.'),
  older: orNull('The `id` of a row; null: there is none.'),
  is_partial: Type.Boolean({
    description: 'Whether the search ended after a bounded number of rows, so that there may be another row after all.',
  }),
})

const Part = titled('ContentsPart', {
  type: text('text, tool_call, tool_result, or the kind of a part that is not recorded, such as image_url.'),
  id: Type.Optional(Type.String()),
  name: Type.Optional(Type.String({ description: 'Of the tool.' })),
  text: Type.Optional(Type.String({ description: 'The text, or the arguments of the tool.' })),
})

const ContentsObject = titled('RequestContents', {
  object: Type.Literal('request.contents'),
  id: text('Of the row.'),
  request_id: Type.String(),
  key_id: text('Of the key that they are encrypted with.'),
  input: Type.Array(Type.Object({ role: Type.String(), parts: Type.Array(Part) }), {
    description: 'The messages; the oldest are left out where not all fit.',
  }),
  output: Type.Union(
    [
      Type.Array(
        Type.Object({ index: Type.Integer(), finish_reason: orNull('Of the choice.'), parts: Type.Array(Part) }),
      ),
      Type.Null(),
    ],
    { description: 'By choice; null: `note` says why there is none.' },
  ),
  is_cut: Type.Boolean({ description: 'Whether something was left out for its size.' }),
  note: orNull('Why there is no output.'),
})

export function requestRoutes({ requests, audit }: RequestRouteParts): Route[] {
  async function list(context: Context): Promise<Response> {
    const { limit, after: start } = readPage(context.query())
    const after = start && readPosition(start)
    const filter = readRequestQuery(context)
    if (!filter) return listAnswer([], undefined)
    const { data, next } = await requests.page({ filter, after, limit })
    return listAnswer(data, next && [next.at_ms, next.row_id])
  }

  async function neighbors(context: Context): Promise<Response> {
    const row = await rowOf(context)
    const filter = readRequestQuery(context)
    const found = filter ? await requests.neighbors(row, filter) : { newer: null, older: null, is_partial: false }
    return Response.json({ object: 'request.neighbors', ...found })
  }

  async function rowOf(context: Context): Promise<RequestView> {
    const { request_row = '' } = context.params
    const found = /^\d{1,15}$/.test(request_row) ? await requests.find(Number(request_row)) : undefined
    const own = context.admin.project_id
    if (!found || (own !== undefined && found.project_id !== own)) throw noSuch('request', request_row)
    return found
  }

  const show = async (context: Context) => Response.json(await rowOf(context))

  async function contents(context: Context): Promise<Response> {
    const row = await rowOf(context)
    const { id, request_id, project_id } = row
    const found = await requests.contents(row)
    if (!found) throw noSuch('contents of the request', id)
    // Recorded before anybody has read them.
    const event = { action: 'request.read_contents', object_type: 'request', object_id: id, project_id }
    await audit.record({ ...originOf(context), ...event })
    return Response.json({ object: 'request.contents', id, request_id, ...found })
  }

  return [
    listRoute(['GET', '/admin/v1/requests', { right: 'read', project: 'own' }], {
      summary: 'Search the request log',
      description:
        'Calls, and refused requests of known tokens, newest first. All conditions must hold. A search examines a bounded number of rows: a page may be short, or empty, although more rows match; next_cursor continues it, and only null ends it. A project_admin sees those of its project.',
      query: REQUEST_FILTERS,
      of: [RequestObject, 'RequestList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['GET', '/admin/v1/requests/:request_row', { right: 'read', project: 'own' }], {
      summary: 'One request',
      description: 'A row of the request log, by its `id`.',
      params: { request_row: 'The `id` of a row.' },
      response: RequestObject,
      errors: ['storage_unavailable'],
      handle: show,
    }),
    adminRoute(['GET', '/admin/v1/requests/:request_row/neighbors', { right: 'read', project: 'own' }], {
      summary: 'The requests beside one',
      description:
        'The next newer and the next older row of those that meet all conditions, which are those of the search.',
      params: { request_row: 'The `id` of a row.' },
      query: REQUEST_FILTERS,
      response: NeighborsObject,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: neighbors,
    }),
    adminRoute(['GET', '/admin/v1/requests/:request_row/contents', { right: 'contents', project: 'own' }], {
      summary: 'The contents of a request',
      description:
        'The prompt and the response of a call, as far as they are recorded: redacted, and cut where they were too long. Only for an owner, and for the project_admin of its project. Each read is a row of the audit log.',
      params: { request_row: 'The `id` of a row.' },
      response: ContentsObject,
      errors: ['contents_unreadable', 'storage_unavailable'],
      handle: contents,
    }),
  ]
}

function readPosition([at = '', id = '']: string[]) {
  const [at_ms, row_id] = [Number(at), Number(id)]
  if (Number.isSafeInteger(at_ms) && Number.isSafeInteger(row_id)) return { at_ms, row_id }
  throw invalidValue('cursor', '"cursor" must be the next_cursor of the page before.')
}
