/** `POST /v1/responses`: the Responses protocol, with stored responses and background generation. */
import type { Clock } from '../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { Call } from '../../pipeline/call.ts'
import type { ChatRequest } from '../../protocols/canonical.ts'
import type { Places } from '../../protocols/request-error.ts'
import { errorForClient } from '../../protocols/responses/client/error.ts'
import type { Conversation } from '../../protocols/responses/client/items.ts'
import { responsesPassthrough } from '../../protocols/responses/client/passthrough.ts'
import { emptyPassthroughState } from '../../protocols/responses/client/passthrough-items.ts'
import {
  checkedRequest,
  itemsOf,
  mayPass,
  minimalClientRequest,
  minimalTranslation,
  translatedRequest,
} from '../../protocols/responses/client/request.ts'
import { createResponsesEncoder } from '../../protocols/responses/client/response.ts'
import {
  type InputItem,
  ResponsesAnswer,
  ResponsesEvent,
  ResponsesRequest,
} from '../../protocols/responses/client/schema.ts'
import type { ToolNames } from '../../protocols/responses/client/tool-names.ts'
import { clientTools } from '../../protocols/responses/client/tools.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { StoredResponses } from '../stored-responses.ts'
import type { Deferred, Dialect } from './dialect.ts'

/** A decoded request, with the conversation that it continues. */
export type ReadResponse = {
  clientRequest: ResponsesRequest
  before: Conversation
  input: InputItem[]
  request: ChatRequest
  /** The names of its tools at providers. */
  names: ToolNames
}

type DialectParts = {
  /** Absent: no response is stored, and no request continues another one. */
  storedResponses?: StoredResponses
  /** Accepts a request for a response in the background; absent: none is accepted. */
  queue?(read: ReadResponse, call: Call): Promise<Deferred>
  clock: Clock
}

export function responsesDialect({ storedResponses, queue, clock }: DialectParts): Dialect {
  const places: Places = new WeakMap()

  /** The conversation that a request continues, and its items with references resolved. */
  async function conversationOf({ previous_response_id: previous, input }: ResponsesRequest, { token_id }: Caller) {
    const before =
      storedResponses && previous !== undefined
        ? await storedResponses.conversation(previous, token_id)
        : { items: [], ids: [] }
    const own = itemsOf(input)
    return { before, input: storedResponses ? await storedResponses.resolved(own, token_id) : own }
  }

  async function decode(body: unknown, caller: Caller): Promise<ReadResponse> {
    const clientRequest = checkedRequest(body)
    const { before, input } = await conversationOf(clientRequest, caller)
    return { clientRequest, before, input, ...translatedRequest({ ...clientRequest, input }, before, places) }
  }

  /** The same, or a minimal request where only a provider of this protocol accepts it. */
  async function decodeOrMinimal(body: unknown, caller: Caller): Promise<ReadResponse & { refusal?: GatewayError }> {
    try {
      return await decode(body, caller)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !isRecord(body) || !mayPass(body)) throw thrown
      const clientRequest = minimalClientRequest(body)
      const { before, input } = await conversationOf(clientRequest, caller)
      return {
        clientRequest,
        before,
        input,
        ...minimalTranslation(clientRequest, { before, input, places }),
        refusal: thrown,
      }
    }
  }

  return {
    family: 'chatcompat-response',
    id_prefix: 'resp_',
    path: '/v1/responses',
    operation: {
      summary: 'Create a response',
      description:
        'With `stream: true` the answer is a stream of named, numbered server-sent events, ended by `response.completed`, ' +
        '`response.incomplete` or `response.failed`. It is kept for 30 days unless `store` is false.',
      tag: 'Chat',
      request: ResponsesRequest,
      nested_nulls: true,
      response: ResponsesAnswer,
      stream: ResponsesEvent,
      errors: ['previous_response_not_found', 'upgrade_required'],
      example: { model: 'sandbox/general', input: 'What is Gatehouse?' },
    },
    parse: (body) => translatedRequest(checkedRequest(body), { items: [], ids: [] }, places).request,
    async read(body, { caller }) {
      const { clientRequest, before, input, request, names, refusal } = await decodeOrMinimal(body, caller)
      const { previous_response_id } = clientRequest
      const store =
        storedResponses && clientRequest.store !== false
          ? storedResponses.storeFor({ caller, before, input, previous_response_id })
          : undefined
      const passthroughState = emptyPassthroughState()
      const includes_encrypted = clientRequest.include?.includes('reasoning.encrypted_content') ?? false
      const passthroughParts = {
        body: body as JsonRecord,
        before,
        input,
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
            store: store,
            clock,
            passthroughState: passthroughState,
          }),
        ...(mayPass(body) ? { passthrough: responsesPassthrough(passthroughParts) } : {}),
        ...(refusal ? { refusal } : {}),
      }
    },
    async defer(body, call) {
      if (!queue || !isRecord(body) || body.background !== true) return undefined
      const read = await decode(body, call.caller)
      try {
        return await queue(read, call)
      } catch (error) {
        throw error instanceof GatewayError ? errorForClient(error, read.request, places) : error
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
    errorForClient: (error, request) => errorForClient(error, request, places),
  }
}
