/** The routes of conversations and their items. */
import type { TSchema } from 'typebox'
import type { Call } from '../../../calls/call.ts'
import type { ServerSettings } from '../../../config/config.ts'
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import type { Clock } from '../../../kit/clock.ts'
import {
  asItemError,
  ConversationAnswer,
  ConversationCreate,
  ConversationDeleted,
  ConversationItemsCreate,
  ConversationUpdate,
  parseConversation,
} from '../../../protocols/responses/client/conversation.ts'
import { type ErrorCode, GatewayError } from '../../../spec/error.ts'
import { idPage } from '../../../spec/fields.ts'
import type { Operation } from '../../../spec/operation.ts'
import type { JsonObject } from '../../../spec/task.ts'
import type { StoredConversation } from '../../../store/responses/conversation-store.ts'
import { PAGE_PARAMETERS, parsePage } from '../../tasks/routes/request-parameters.ts'
import type { Conversations } from '../conversations.ts'
import type { StoredResponses } from '../stored-responses.ts'
import { ConversationItem, ItemList, include, includesEncrypted, invalid, itemOf } from './response-routes.ts'

type ConversationRouteParts = {
  conversations: Conversations
  storedResponses: StoredResponses
  settings: ServerSettings
  clock: Clock
}

const ROOT = '/v1/conversations'
const ONE = `${ROOT}/:conversation_id`
const ITEMS = `${ONE}/items`
const ITEM = `${ITEMS}/:item_id`
const params = { conversation_id: 'The id of a conversation.' }
const itemParams = { ...params, item_id: 'The id of an item of the conversation.' }
const BODY_ERRORS: ErrorCode[] = [
  'invalid_json',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'unsupported_parameter',
  'context_length_exceeded',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
]
const EXAMPLE_ITEM = { type: 'message', role: 'user', content: 'What is Gatehouse?' }

export function conversationRoutes(parts: ConversationRouteParts): Route[] {
  const { conversations, storedResponses, settings, clock } = parts

  /** The items of a body, with references resolved. */
  async function bodyOf(context: Context, body: unknown) {
    const { items, metadata } = parseConversation(body)
    try {
      return { items: await storedResponses.resolved(items, context.caller.token_id), metadata }
    } catch (thrown) {
      throw thrown instanceof GatewayError ? asItemError(thrown) : thrown
    }
  }
  const readBody = (context: Context): Promise<unknown> =>
    readJson(context.request, bodyLimits(context, 'media', { settings, clock }))

  return [
    route('POST', ROOT, {
      operation: {
        summary: 'Create a conversation',
        description: 'It is stored for this token until it is deleted, or expires some days after its last change.',
        request: ConversationCreate,
        body_optional: true,
        nested_nulls: true,
        response: ConversationAnswer,
        errors: ['storage_quota_exceeded', ...BODY_ERRORS],
        example: { items: [EXAMPLE_ITEM], metadata: { topic: 'demo' } },
      },
      async handle(context) {
        // Client libraries create a conversation without a body.
        const body = context.request.body === null ? {} : await readBody(context)
        const { items, metadata = {} } = await bodyOf(context, body)
        const place = { token_id: context.caller.token_id, end_user: endUserOf(context) }
        return answerOf(await conversations.create({ ...place, metadata, items }))
      },
    }),
    route('GET', ONE, {
      operation: {
        summary: 'Retrieve a conversation',
        description: 'Its metadata; the items have a list of their own.',
        params,
        response: ConversationAnswer,
        errors: ['conversation_not_found'],
      },
      handle: async (context) => answerOf(await conversations.find(placeOf(context))),
    }),
    route('POST', ONE, {
      operation: {
        summary: 'Update a conversation',
        description: 'Replaces its metadata.',
        params,
        request: ConversationUpdate,
        response: ConversationAnswer,
        errors: ['conversation_not_found', 'storage_quota_exceeded', ...BODY_ERRORS],
        example: { metadata: { topic: 'demo' } },
      },
      async handle(context) {
        const { metadata } = parseConversation(await readBody(context))
        if (!metadata) throw required('metadata')
        return answerOf(await conversations.update(placeOf(context), metadata))
      },
    }),
    route('DELETE', ONE, {
      operation: {
        summary: 'Delete a conversation',
        description: 'With its items. Responses that continued it stay stored.',
        params,
        response: ConversationDeleted,
        errors: ['conversation_not_found'],
      },
      async handle(context) {
        const place = placeOf(context)
        await conversations.remove(place)
        return Response.json({ id: place.conversation_id, object: 'conversation.deleted', deleted: true })
      },
    }),
    route('POST', ITEMS, {
      operation: {
        summary: 'Create items in a conversation',
        description: 'Appends them, in their order.',
        params,
        query: { include },
        request: ConversationItemsCreate,
        nested_nulls: true,
        response: ItemList,
        errors: ['conversation_not_found', 'conversation_locked', 'storage_quota_exceeded', ...BODY_ERRORS],
        example: { items: [EXAMPLE_ITEM] },
      },
      async handle(context) {
        const { items } = await bodyOf(context, await readBody(context))
        if (items.length === 0) throw required('items')
        return listOf(
          await conversations.addItems(placeOf(context), { items, end_user: endUserOf(context) }),
          false,
          context,
        )
      },
    }),
    route('GET', ITEMS, {
      operation: {
        summary: 'List the items of a conversation',
        description: 'The newest first, unless `order` says otherwise.',
        params,
        query: { ...PAGE_PARAMETERS, include },
        response: ItemList,
        errors: ['conversation_not_found', 'invalid_value'],
      },
      async handle(context) {
        const { limit, order = 'desc', after } = parsePage(context.query())
        // One more tells whether there are more.
        const page = { limit: limit + 1, order, after }
        const found = await conversations.page(placeOf(context), page)
        if (!found) throw invalid('after', 'must be the id of an item of this list')
        return listOf(found.slice(0, limit), found.length > limit, context)
      },
    }),
    route('GET', ITEM, {
      operation: {
        summary: 'Retrieve an item of a conversation',
        description: 'As it stands in the list.',
        params: itemParams,
        query: { include },
        response: ConversationItem,
        errors: ['conversation_not_found', 'conversation_item_not_found'],
      },
      async handle(context) {
        const item = await conversations.item(placeOf(context), itemIdOf(context))
        return Response.json(itemOf(item, includesEncrypted(context.query())))
      },
    }),
    route('DELETE', ITEM, {
      operation: {
        summary: 'Delete an item of a conversation',
        description: 'Later responses that continue the conversation no longer see it. Returns the conversation.',
        params: itemParams,
        response: ConversationAnswer,
        errors: ['conversation_not_found', 'conversation_item_not_found', 'conversation_locked'],
      },
      handle: async (context) => answerOf(await conversations.removeItem(placeOf(context), itemIdOf(context))),
    }),
  ]
}

type RouteRest = { operation: Omit<Operation, 'tag'> & { response: TSchema }; handle: Route['handle'] }

const route = (method: Route['method'], path: string, { operation, handle }: RouteRest): Route => ({
  method,
  path,
  operation: { ...operation, tag: 'Conversations' },
  handle,
})

const placeOf = ({ params: { conversation_id = '' }, caller: { token_id } }: Context) => ({ conversation_id, token_id })
/** The options of a call are read for every request. */
const endUserOf = (context: Context): string | undefined => (context as Partial<Call>).end_user
const itemIdOf = ({ params: { item_id = '' } }: Context): string => item_id

const answerOf = ({ conversation_id, created_at, metadata }: StoredConversation): Response =>
  Response.json({ id: conversation_id, object: 'conversation', created_at, metadata })

function listOf(items: JsonObject[], has_more: boolean, context: Context): Response {
  const data = items.map((item) => itemOf(item, includesEncrypted(context.query())))
  return Response.json(idPage(data as { id: string }[], has_more))
}

const required = (param: string) => new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
