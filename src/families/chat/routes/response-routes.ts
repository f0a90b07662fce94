/** The routes of stored responses: retrieve, delete, cancel, list the input. */
import Type from 'typebox'
import type { ServerSettings } from '../../../config/config.ts'
import type { Context, Route } from '../../../http/context.ts'
import { jsonResponse } from '../../../http/live.ts'
import type { Clock } from '../../../kit/clock.ts'
import { isRecord } from '../../../kit/json.ts'
import { type OutputItem, visibleItem } from '../../../protocols/responses/client/items.ts'
import { ResponsesAnswer, ResponsesEvent } from '../../../protocols/responses/client/schema.ts'
import { invalidValue } from '../../../spec/error.ts'
import { idList, idPage, parameter, titled } from '../../../spec/fields.ts'
import type { JsonObject } from '../../../spec/task.ts'
import { storedStream } from '../../shared/event-stream.ts'
import { PAGE_PARAMETERS, parsePage } from '../../tasks/routes/request-parameters.ts'
import type { Background } from '../background-responses.ts'
import { LINKS_TO_RESPONSE } from '../dialects/responses.ts'
import type { StoredResponses } from '../stored-responses.ts'

const Deleted = titled('ResponseDeleted', {
  id: Type.String(),
  object: Type.Literal('response'),
  deleted: Type.Literal(true),
})
export const ConversationItem = Type.Record(Type.String(), Type.Unknown(), { title: 'ConversationItem' })
export const ItemList = idList('ResponseItemList', Type.Record(Type.String(), Type.Unknown()))

const PATH = '/v1/responses/:response_id'
const params = { response_id: 'The id of a response that was stored.' }
export const include = parameter('`reasoning.encrypted_content` includes it.')
const tag = 'Chat'

type ResponseRouteParts = {
  storedResponses: StoredResponses
  background: Background
  settings: ServerSettings
  clock: Clock
}

export function responseRoutes({ storedResponses, background, settings, clock }: ResponseRouteParts): Route[] {
  const idOf = ({ params: given }: Context): string => given.response_id ?? ''
  const found = (context: Context) => storedResponses.find(idOf(context), context.caller.token_id)

  const retrieve: Route = {
    method: 'GET',
    path: PATH,
    operation: {
      summary: 'Retrieve a response',
      description: 'A stored response: of this token, until it is deleted or expires.',
      tag,
      params,
      query: {
        include,
        stream: parameter(
          'Its events, as a stream: for a response created with `background` and `stream`.',
          Type.Boolean(),
        ),
        starting_after: parameter(
          'The number of the event after which the stream starts.',
          Type.Integer({ minimum: 0 }),
        ),
      },
      response: ResponsesAnswer,
      stream: ResponsesEvent,
      links: LINKS_TO_RESPONSE,
      errors: ['response_not_found', 'invalid_value', 'unsupported_parameter'],
    },
    async handle(context) {
      const query = context.query()
      const start = startOf(query)
      if (streams(query)) {
        const events = await background.follow(idOf(context), start, context)
        return storedStream(events, context, { settings, clock })
      }
      const { response } = await found(context)
      return jsonResponse(visible(response, includesEncrypted(query)), { context, clock })
    },
  }

  const remove: Route = {
    method: 'DELETE',
    path: PATH,
    operation: {
      summary: 'Delete a response',
      description: 'Afterwards it cannot be read or continued.',
      tag,
      params,
      response: Deleted,
      errors: ['response_not_found'],
    },
    async handle(context) {
      const id = idOf(context)
      await storedResponses.remove(id, context.caller.token_id)
      background.drop(id)
      return Response.json({ id, object: 'response', deleted: true })
    },
  }

  const inputItems: Route = {
    method: 'GET',
    path: `${PATH}/input_items`,
    operation: {
      summary: 'List the input of a response',
      description: 'Includes the earlier turns if it continues another response.',
      tag,
      params,
      query: {
        ...PAGE_PARAMETERS,
        include,
      },
      response: ItemList,
      errors: ['response_not_found', 'invalid_value'],
    },
    async handle(context) {
      const query = context.query()
      const { limit, order = 'desc', after } = parsePage(query)
      const all = await storedResponses.inputOf(idOf(context), context.caller.token_id)
      const ordered = order === 'asc' ? all : all.toReversed()
      const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1
      if (after !== undefined && start === 0) throw invalid('after', 'must be the id of an item of this list')
      const data = ordered.slice(start, start + limit).map((item) => itemOf(item, includesEncrypted(query)))
      const list = idPage(data as { id: string }[], ordered.length > start + limit)
      return jsonResponse(list, { context, clock })
    },
  }

  const cancel: Route = {
    method: 'POST',
    path: `${PATH}/cancel`,
    operation: {
      summary: 'Cancel a response',
      description: 'Only for a response in the background. One that has ended is returned unchanged.',
      tag,
      params,
      response: ResponsesAnswer,
      links: LINKS_TO_RESPONSE,
      errors: ['response_not_found', 'invalid_value'],
    },
    async handle(context) {
      return Response.json(visible(await background.cancel(idOf(context), context.caller.token_id), false))
    },
  }

  return [retrieve, remove, inputItems, cancel]
}

export const invalid = (param: string, rule: string) => invalidValue(param, `"${param}" ${rule}.`)

/** Clients send lists as `include[]=a&include[]=b` or as `include=a`. */
export const includesEncrypted = (query: URLSearchParams): boolean =>
  [...query.getAll('include[]'), ...query.getAll('include')].includes('reasoning.encrypted_content')

/** The largest value of the column of event numbers. */
const MAX_EVENT_NUMBER = 2_147_483_647

function streams(query: URLSearchParams): boolean {
  const text = query.get('stream') ?? 'false'
  if (text === 'true' || text === 'false') return text === 'true'
  throw invalid('stream', 'must be "true" or "false"')
}

function startOf(query: URLSearchParams): number {
  const text = query.get('starting_after')
  if (text === null) return -1
  if (/^\d+$/.test(text)) return Math.min(Number(text), MAX_EVENT_NUMBER)
  throw invalid('starting_after', 'must be the number of an event, from 0')
}

/** The response as it was returned: content that its provider needs again is stored, and included on request. */
function visible(response: JsonObject, includes_encrypted: boolean): JsonObject {
  const output = Array.isArray(response.output) ? response.output : []
  // A provider's items were passed through unchecked, so an item may be anything.
  return { ...response, output: output.map((item) => (isRecord(item) ? itemOf(item, includes_encrypted) : item)) }
}

/** Items of the input in the form of items of the output: a text is a list of parts. */
export function itemOf(item: JsonObject, includes_encrypted: boolean): JsonObject {
  const plain = visibleItem(item as unknown as OutputItem, includes_encrypted) as JsonObject
  if (typeof plain.role !== 'string') return plain
  if (typeof plain.content !== 'string') return { type: 'message', ...plain }
  const type = plain.role === 'assistant' ? 'output_text' : 'input_text'
  const part = { type, text: plain.content, ...(type === 'output_text' ? { annotations: [] } : {}) }
  return { status: 'completed', ...plain, type: 'message', content: [part] }
}
