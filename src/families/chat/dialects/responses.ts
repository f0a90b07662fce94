/** `POST /v1/responses`: the Responses protocol, with stored responses and background generation. */
import type { Call } from '../../../calls/call.ts'
import type { ClientRequest } from '../../../calls/endpoint.ts'
import { type Clock, unixSeconds } from '../../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { jsonSize } from '../../../kit/json-size.ts'
import { randomAlphanumerics } from '../../../kit/secret.ts'
import { isCompaction, remainingItems } from '../../../protocols/responses/client/compaction.ts'
import { errorForClient } from '../../../protocols/responses/client/error.ts'
import type { Conversation, ConversationCache, StoreResponse } from '../../../protocols/responses/client/items.ts'
import { responsesPassthrough } from '../../../protocols/responses/client/passthrough.ts'
import { emptyPassthroughState } from '../../../protocols/responses/client/passthrough-items.ts'
import {
  assertConversationAllowed,
  checkedRequest,
  conversationId,
  itemsOf,
  mayPass,
  minimalClientRequest,
  minimalTranslation,
  translatedRequest,
} from '../../../protocols/responses/client/request.ts'
import { createResponsesEncoder } from '../../../protocols/responses/client/response.ts'
import {
  type InputItem,
  ResponsesAnswer,
  ResponsesEvent,
  ResponsesRequest,
} from '../../../protocols/responses/client/schema.ts'
import type { ToolNames } from '../../../protocols/responses/client/tool-names.ts'
import { clientTools } from '../../../protocols/responses/client/tools.ts'
import type { ChatRequest } from '../../../protocols/shared/canonical.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Link } from '../../../spec/operation.ts'
import { withRoutingFields } from '../../../spec/routing-fields.ts'
import { usageFrom } from '../../../spec/usage.ts'
import type { FileInputs } from '../../files/file-inputs.ts'
import type { Continued, Conversations } from '../conversations.ts'
import { type Items, sentItems } from '../sent-items.ts'
import type { StoredResponses } from '../stored-responses.ts'
import type { ToolRounds } from '../tool-rounds.ts'
import { addTo, cachedStore } from './conversation-cache.ts'
import type { Deferred, Dialect, Exchange } from './dialect.ts'

/** A decoded request, with the conversation that it continues. */
export type ReadResponse = {
  clientRequest: ResponsesRequest
  /** Of a request with `conversation`. */
  continued: Continued | undefined
  before: Conversation
  input: InputItem[]
  request: ChatRequest
  /** The names of its tools at providers. */
  names: ToolNames
}

/** `sent`: what providers get, with the data of the files that `before` and `input` name. */
type Decoded = ReadResponse & { sent: Items; refusal?: GatewayError }

type DialectParts = {
  /** Absent: no response is stored, and no request continues another one. */
  storedResponses?: StoredResponses
  conversations?: Conversations
  fileInputs: FileInputs
  /** Accepts a request for a response in the background; absent: none is accepted. */
  queue?(read: ReadResponse, call: Call): Promise<Deferred>
  /** Calls the tools of MCP servers of the gateway. Absent: no tool is called. */
  toolRounds?: ToolRounds
  clock: Clock
}

/** From a response of the API to the requests about it. */
export const LINKS_TO_RESPONSE: Link[] = [
  {
    at: '/id',
    to: [
      'GET /v1/responses/{response_id}',
      'GET /v1/responses/{response_id}/input_items',
      'POST /v1/responses/{response_id}/cancel',
      'DELETE /v1/responses/{response_id}',
    ],
  },
]

/** Who sent a request, and over which connection. */
type Origin = Pick<ClientRequest, 'caller' | 'message'>

export function responsesDialect(parts: DialectParts): Dialect {
  const { storedResponses, conversations, fileInputs, queue, toolRounds, clock } = parts

  /** The conversation that a request continues, and its items with references resolved. */
  async function conversationOf(clientRequest: ResponsesRequest, { message, caller: { token_id } }: Origin) {
    const { previous_response_id: previous, input } = clientRequest
    const conversation_id = conversationId(clientRequest)
    if (conversation_id !== undefined) assertConversationAllowed(clientRequest)
    const continued =
      conversation_id === undefined ? undefined : await conversations?.read({ conversation_id, token_id })
    const cached = previous === undefined ? undefined : message?.conversations.find(previous)
    const earlier =
      cached ??
      (storedResponses && previous !== undefined
        ? await storedResponses.conversation(previous, token_id)
        : (continued?.before ?? NO_CONVERSATION))
    const own = itemsOf(input)
    const items = remainingItems(earlier.items)
    const before = items.length === earlier.items.length ? earlier : { ...earlier, items }
    return { continued, before, input: storedResponses ? await storedResponses.resolved(own, token_id) : own }
  }

  async function decode(body: unknown, origin: Origin): Promise<Decoded> {
    const clientRequest = checkedRequest(body)
    const conversation = await conversationOf(clientRequest, origin)
    const sent = await sentItems(conversation, fileInputs, origin)
    // A text has no items that errors could name.
    const resolved = typeof clientRequest.input === 'string' ? clientRequest : { ...clientRequest, input: sent.input }
    return { clientRequest, ...conversation, sent, ...translatedRequest(resolved, sent.before) }
  }

  /** The same, or a minimal request where only a provider of this protocol accepts it. */
  async function decodeOrMinimal(body: unknown, origin: Origin): Promise<Decoded> {
    try {
      return await decode(body, origin)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !isRecord(body) || !mayPass(body)) throw thrown
      const clientRequest = minimalClientRequest(body)
      const conversation = await conversationOf(clientRequest, origin)
      const sent = await sentItems(conversation, fileInputs, origin)
      return {
        clientRequest,
        ...conversation,
        sent,
        ...minimalTranslation(clientRequest, sent),
        refusal: thrown,
      }
    }
  }

  /** How the response is stored; undefined if it is not. */
  async function storingFor(read: Going, call: Call): Promise<Storing | undefined> {
    const { clientRequest, continued, before } = read
    // A request that continues what is stored relies on storage.
    const isContinuing = continued !== undefined || before.ids.length > 0
    const isRequired = clientRequest.store ?? isContinuing
    if (!storedResponses || clientRequest.store === false || !(isRequired || storedResponses.storesByDefault()))
      return undefined
    const { amount, store } = storeFor(read, call, storedResponses)
    if (!store) return undefined
    // A full quota must not stop requests that may not need storage: the response says that it is not stored.
    if (!isRequired && !(await storedResponses.hasSpace(amount, call.caller.token_id))) return undefined
    return { store, reserve: (started) => storedResponses.reserve(amount, started, { isChecked: !isRequired }) }
  }

  function storeFor({ clientRequest, continued, before, input }: Going, call: Call, stored: StoredResponses) {
    const { previous_response_id } = clientRequest
    const { caller, end_user } = call
    if (continued && conversations) {
      const previous = { caller, end_user, before, input, previous_response_id }
      const store = conversations.storeFor(call, continued, (response) => stored.rowOf(previous, response))
      return { store, amount: { rows: 1 + input.length, bytes: 2 * jsonSize(input) } }
    }
    if (!('isStored' in before) || before.isStored) {
      const store = stored.storeFor({ caller, end_user, before, input, previous_response_id })
      return { store, amount: { rows: 1, bytes: jsonSize(input) } }
    }
    // The responses before are in no store, so this one is stored with the whole conversation.
    const whole = { before: NO_CONVERSATION, input: [...before.items, ...input], previous_response_id: undefined }
    const store = stored.storeFor({ caller, end_user, ...whole })
    return { store, amount: { rows: 1, bytes: jsonSize(whole.input) } }
  }

  /** Undefined where no tool of the request is of an MCP server of the gateway. */
  async function callTools(body: unknown, call: ClientRequest): Promise<Deferred | undefined> {
    if (!toolRounds?.serves(body, call)) return undefined
    const clientRequest = checkedRequest(body)
    if (clientRequest.background) throw noBackground()
    const conversation = await conversationOf(clientRequest, call)
    const { before, input } = conversation
    if (isCompaction(input)) return undefined
    const sent = await sentItems(conversation, fileInputs, call)
    const { request_id, caller, signal, arrived } = call
    const whole: Call = { request_id, caller, signal, arrived, ...(call.end_user && { end_user: call.end_user }) }
    const read = { clientRequest, ...conversation }
    const storing = await storingFor(read, whole)
    const isStored = storing !== undefined
    const cache = call.message && addTo(call.message.conversations, { before, input, isStored })
    const passthroughState = emptyPassthroughState()
    const store = cache ? cachedStore({ cache, store: storing?.store, passthroughState }) : storing?.store
    const { admit } = admission(read, storing)
    return toolRounds.run({ clientRequest, sent, call, whole, admit, store, isStored })
  }

  /** What a call needs before its first target is called. */
  function admission({ continued }: Going, storing: Storing | undefined): Pick<Exchange, 'admit'> {
    if (!storing) return {}
    return {
      async admit(started: Call) {
        await storing.reserve(started)
        if (continued && conversations) await conversations.lockFor(started, continued)
      },
    }
  }

  /** The response to a request that calls no model: later requests continue from its input. */
  async function warmUp(body: unknown, call: ClientRequest, conversations: ConversationCache): Promise<Deferred> {
    const { clientRequest, before, input, request, names } = await decodeOrMinimal(body, call)
    const { plan } = call
    if (!plan) throw new Error('A request was decoded before its model was authorized.')
    const head = { id: `resp_${randomAlphanumerics(24)}`, created: unixSeconds(clock), model: plan.model.id }
    const encoder = createResponsesEncoder({ head, clientRequest, request, names, store: undefined, clock })
    const events = encoder.end(usageFrom({ input: 0, output: 0 }))
    addTo(conversations, { before, input, isStored: false })({ id: head.id, output: [] })
    return { model: plan.model, requested: plan.requested, events: once(events) }
  }

  return {
    family: 'chatcompat-response',
    id_prefix: 'resp_',
    path: '/v1/responses',
    exact: ['arguments'],
    has_routing_fields: true,
    operation: {
      summary: 'Create a response',
      description:
        'With `stream: true` the answer is a stream of named, numbered server-sent events, ended by `response.completed`, ' +
        '`response.incomplete` or `response.failed`. It is kept for 30 days unless `store` is false. The same path is a ' +
        'WebSocket (`GET` with `Upgrade: websocket`): each message `{"type": "response.create", ...}` has the members of ' +
        'this body, and each event of the stream is one message.',
      tag: 'Chat',
      request: withRoutingFields(ResponsesRequest),
      nested_nulls: true,
      response: ResponsesAnswer,
      stream: ResponsesEvent,
      links: LINKS_TO_RESPONSE,
      errors: [
        'previous_response_not_found',
        'conversation_not_found',
        'conversation_locked',
        'storage_quota_exceeded',
      ],
      example: { model: 'sandbox/general', input: 'What is Gatehouse?' },
    },
    parse: (body) => translatedRequest(checkedRequest(body), { items: [], ids: [] }).request,
    async read(body, call) {
      const { message } = call
      const read = await decodeOrMinimal(body, call)
      const { clientRequest, before, input, sent, request, names, refusal } = read
      const storing = await storingFor(read, call)
      const store = storing?.store
      const passthroughState = emptyPassthroughState()
      const cache = message && addTo(message.conversations, { before, input, isStored: store !== undefined })
      const includes_encrypted = clientRequest.include?.includes('reasoning.encrypted_content') ?? false
      const passthroughParts = {
        body: sent.input === input ? (body as JsonRecord) : { ...(body as JsonRecord), input: sent.input },
        ...sent,
        isStored: store !== undefined,
        includes_encrypted,
        state: passthroughState,
      }
      return {
        request,
        writer: (head, limited) =>
          createResponsesEncoder({
            head,
            clientRequest,
            request: limited,
            names,
            isCompaction: isCompaction(input),
            store: cache ? cachedStore({ cache, store, passthroughState }) : store,
            isStored: store !== undefined,
            clock,
            passthroughState,
          }),
        ...(mayPass(body) ? { passthrough: responsesPassthrough(passthroughParts) } : {}),
        ...(refusal ? { refusal } : {}),
        ...admission(read, storing),
      }
    },
    async defer(body, call) {
      if (call.message?.isWarmUp) return warmUp(body, call, call.message.conversations)
      const calling = toolRounds && isRecord(body) && body.tools ? await callTools(body, call) : undefined
      if (calling || !queue || !isRecord(body) || body.background !== true) return calling
      const read = await decode(body, call)
      try {
        return await queue(read, call)
      } catch (error) {
        throw error instanceof GatewayError ? errorForClient(error, read.request) : error
      }
    },
    writer(head, request) {
      const { names } = clientTools({})
      return createResponsesEncoder({
        head,
        clientRequest: { model: head.model },
        request,
        names,
        store: undefined,
        clock,
      })
    },
    errorForClient,
  }
}

const noBackground = () =>
  new GatewayError('unsupported_parameter', '"background" is not supported with tools of MCP servers.', {
    param: 'background',
  })

const NO_CONVERSATION: Conversation = { items: [], ids: [] }

type Going = Pick<ReadResponse, 'clientRequest' | 'continued' | 'before' | 'input'>
/** `reserve` reserves the space for a call that is started. */
type Storing = { store: StoreResponse; reserve(call: Call): Promise<void> }
async function* once(events: string): AsyncIterable<string> {
  yield events
}
