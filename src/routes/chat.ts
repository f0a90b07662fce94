/** The route of a chat API, whole and streamed (specification 2.2 to 2.4). */
import type { Chat, ChatInput } from '../chat/chat.ts'
import type { Deferred, Dialect, Exchange } from '../chat/dialects/dialect.ts'
import { passthroughRequestFor } from '../chat/passthrough.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Route } from '../http/context.ts'
import { textResponse } from '../http/text-response.ts'
import { memberOf } from '../kit/json.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { ChatRequest } from '../protocols/canonical.ts'
import type { ResponseHead } from '../protocols/protocol.ts'
import { FieldNotAllowed } from '../providers/allowed/allowed.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../spec/error-lists.ts'
import { readMetadata, readUserField } from './end-user.ts'
import type { RouteParts } from './json-route.ts'
import { requestedModel, takeRoutingFields } from './routing-fields.ts'
import { callStream, storedStream } from './stream-response.ts'

export type ChatRouteParts = RouteParts & { chat: Chat; catalogue: Catalogue }

/** `framing`: of a stream; undefined: that of the dialect. */
type Received = ChatInput & { framing: Exchange['framing'] | undefined }

export function chatRoute(dialect: Dialect, parts: ChatRouteParts): Route {
  const { pipeline, chat, settings, clock } = parts
  const { family, has_routing_fields } = dialect
  const answer = { id_prefix: dialect.id_prefix }
  const passthroughOf = (exchange: Exchange) => exchange.passthrough ?? dialect.passthrough
  const parse = (body: unknown, context: Context): Exchange => ({
    request: dialect.parse(body, context),
    writer: dialect.writer,
  })
  const readExchange = dialect.read?.bind(dialect) ?? parse

  /** Synchronous where nothing but the body is read, as almost always. */
  function read(body: unknown, context: Context): Received | Promise<Received> {
    try {
      const exchange = readExchange(body, context)
      if (!(exchange instanceof Promise)) return received(exchange, body, context)
      return exchange
        .then((found) => received(found, body, context))
        .catch((thrown) => untranslated(thrown, body, context))
    } catch (thrown) {
      return untranslated(thrown, body, context)
    }
  }

  function received(exchange: Exchange, body: unknown, context: Context): Received {
    const { request, writer, framing, refusal, admit } = exchange
    // The provider's bytes are server-sent events: they do not fit another framing.
    const source = { family, body, request: context, refusal }
    const passthroughRequest = framing ? undefined : passthroughRequestFor(passthroughOf(exchange), source)
    if (refusal && !passthroughRequest) throw refusal
    // A message of a WebSocket belongs to the conversation of its connection.
    const cached = context.message ? undefined : { body, framing: framing?.content_type }
    return { family, answer, errorForClient, request, writer, passthroughRequest, framing, admit, source: cached }
  }

  /** A request that cannot be translated may still pass, unchanged, to a provider of the same protocol. */
  function untranslated(thrown: unknown, body: unknown, context: Context): Received {
    if (!(thrown instanceof GatewayError) || !dialect.passthrough?.minimalRequest) throw thrown
    const source = { family, body, request: context, refusal: thrown }
    const passthroughRequest = passthroughRequestFor(dialect.passthrough, source)
    if (!passthroughRequest) throw thrown
    const request = dialect.passthrough.minimalRequest(body)
    return { family, answer, errorForClient, request, writer: dialect.writer, passthroughRequest, framing: undefined }
  }

  /** The same error with the field names of the client's protocol. */
  const errorForClient = (thrown: unknown, request: ChatRequest): unknown =>
    thrown instanceof GatewayError && !(thrown instanceof FieldNotAllowed) && dialect.errorForClient
      ? dialect.errorForClient(thrown, request)
      : thrown

  async function whole(input: ChatInput, context: Context): Promise<Response> {
    const prepared = pipeline.prepare(chat.whole, context, input)
    const headers = modelHeaders(prepared, clock)
    headers['content-type'] = 'application/json;charset=utf-8'
    try {
      const { answer, usage, work } = await prepared.send()
      const body = answer.encode(usage)
      await work.responseContext.writer.store?.()
      return textResponse(typeof body === 'string' ? body : JSON.stringify(body), { context, clock, headers })
    } catch (thrown) {
      return answerOf(thrown, prepared.work.responseContext.head, context)
    }
  }

  /** The response to an error that this protocol does not report as one; throws any other error. */
  function answerOf(thrown: unknown, head: ResponseHead, context: Context): Response {
    const answer = thrown instanceof GatewayError ? dialect.blocked?.(thrown, head, context) : undefined
    if (!answer || !(thrown instanceof GatewayError)) throw thrown
    const { note } = context
    note.error = thrown.code
    if (thrown.detail.upstream_status !== undefined) note.upstream_status = thrown.detail.upstream_status
    return new Response(answer.text, { headers: { 'content-type': answer.content_type } })
  }

  async function streamed(input: Received, context: Context): Promise<Response> {
    const { framing = dialect.framing } = input
    const { work, send, ...chosen } = pipeline.prepareStream(chat.stream, context, input)
    const headers = modelHeaders(chosen, clock)
    try {
      return await callStream(send(), context, { headers, framing, settings, clock })
    } catch (thrown) {
      return answerOf(thrown, work.responseContext.head, context)
    }
  }

  /** The response to a request that is executed later. */
  function accepted(deferred: Deferred, context: Context): Response {
    const headers = modelHeaders(deferred, clock)
    if ('body' in deferred) return Response.json(deferred.body, { headers })
    return storedStream(deferred.events, context, { headers, settings, clock })
  }

  const bodyParts = { settings, clock, exact: dialect.exact }

  return {
    method: 'POST',
    path: dialect.path,
    operation: { ...dialect.operation, errors: [...CHAT_ERRORS, ...(dialect.operation.errors ?? [])] },
    ...(dialect.encodeError ? { encodeError: dialect.encodeError } : {}),
    ...(dialect.errorStatus ? { errorStatus: dialect.errorStatus } : {}),
    ...(dialect.errorSchema ? { errorSchema: dialect.errorSchema } : {}),
    async handle(context) {
      const { message, request } = context
      if (message) context.hold(message.bytes)
      const given = message ? message.body : await readJson(request, bodyLimits(context, 'media', bodyParts))
      context.noteFields(given)
      const model = has_routing_fields ? requestedModel(given) : memberOf(given, 'model')
      pipeline.authorize(context, { family, model: context.params.model ?? model })
      readUserField(context, given, family)
      readMetadata(context, given, family)
      const body = has_routing_fields ? takeRoutingFields(given, context, parts) : given
      const deferred = dialect.defer && (await dialect.defer(body, context))
      if (deferred) return accepted(deferred, context)
      const reading = read(body, context)
      const input = reading instanceof Promise ? await reading : reading
      // A dialect that reads more than the body, such as the conversation before it, needs more than its length.
      if (!message && !dialect.read) input.body_bytes = lengthOf(request)
      try {
        return await (input.request.stream ? streamed(input, context) : whole(input, context))
      } catch (error) {
        // The decoder's own error already has the client's field names.
        throw error === input.passthroughRequest?.refusal ? error : errorForClient(error, input.request)
      }
    },
  }
}

/** Undefined for a chunked body. */
function lengthOf({ headers }: Request): number | undefined {
  const length = headers.get('content-length')
  return length === null ? undefined : Number(length)
}

export const CHAT_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'unsupported_value',
  'context_length_exceeded',
  'content_policy_violation',
  ...UPSTREAM_ERRORS,
]
