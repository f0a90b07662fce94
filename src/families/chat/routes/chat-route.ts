/** The route of a chat API, whole and streamed (specification 2.2 to 2.4). */
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { JSON_TYPE, textResponse } from '../../../http/live.ts'
import { memberOf } from '../../../kit/json.ts'
import type { Catalogue } from '../../../models/catalogue.ts'
import { modelHeaders } from '../../../models/lifecycle.ts'
import type { ChatRequest } from '../../../protocols/shared/canonical.ts'
import type { ResponseHead } from '../../../protocols/shared/protocol.ts'
import { FieldNotAllowed } from '../../../providers/allowed/allowed.ts'
import { type ErrorCode, GatewayError } from '../../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../../spec/error-lists.ts'
import type { FileInputs } from '../../files/file-inputs.ts'
import { FILE_ID_PREFIX } from '../../files/files.ts'
import { readMetadata, readUserField, requestedModel, takeRoutingFields } from '../../shared/call-options.ts'
import { callStream, storedStream } from '../../shared/event-stream.ts'
import type { RouteParts } from '../../shared/json-route.ts'
import type { Chat, ChatInput } from '../chat.ts'
import type { Deferred, Dialect, Exchange } from '../dialects/dialect.ts'
import { passthroughRequestFor } from '../passthrough.ts'

type Exchanged = Omit<Exchange, 'request'>

export type ChatRouteParts = RouteParts & { chat: Chat; catalogue: Catalogue; fileInputs: FileInputs }

export function chatRoute(dialect: Dialect, parts: ChatRouteParts): Route {
  const { pipeline, chat, fileInputs, settings, clock } = parts
  const { family, has_routing_fields } = dialect
  const answer = { id_prefix: dialect.id_prefix }
  const plain: Exchanged = { writer: dialect.writer }
  const bodyParts = { settings, clock, exact: dialect.exact, sought: dialect.files && FILE_ID_PREFIX }

  /** Synchronous where nothing but the body is read, as almost always. */
  function read(body: unknown, context: Context): ChatInput | Promise<ChatInput> {
    try {
      if (!dialect.read) return inputOf(dialect.parse(body, context), plain, body, context)
      const read = dialect.read(body, context)
      return read instanceof Promise ? readLater(read, body, context) : inputOf(read.request, read, body, context)
    } catch (thrown) {
      return untranslated(thrown, body, context)
    }
  }

  async function readLater(reading: Promise<Exchange>, body: unknown, context: Context): Promise<ChatInput> {
    try {
      const read = await reading
      return inputOf(read.request, read, body, context)
    } catch (thrown) {
      return untranslated(thrown, body, context)
    }
  }

  function inputOf(request: ChatRequest, exchange: Exchanged, body: unknown, context: Context): ChatInput {
    const { writer, framing, refusal, admit, passthrough = dialect.passthrough } = exchange
    // The provider's bytes are server-sent events: they do not fit another framing.
    const passthroughRequest = framing ? undefined : passthroughRequestFor(passthrough, family, body, context, refusal)
    if (refusal && !passthroughRequest) throw refusal
    // A message of a WebSocket belongs to the conversation of its connection.
    const source = context.message ? undefined : body
    const body_bytes = lengthOf(context)
    return { family, answer, errorForClient, request, writer, passthroughRequest, framing, admit, source, body_bytes }
  }

  /** A request that cannot be translated may still pass, unchanged, to a provider of the same protocol. */
  function untranslated(thrown: unknown, body: unknown, context: Context): ChatInput {
    if (!(thrown instanceof GatewayError) || !dialect.passthrough?.minimalRequest) throw thrown
    const passthroughRequest = passthroughRequestFor(dialect.passthrough, family, body, context, thrown)
    if (!passthroughRequest) throw thrown
    const request = dialect.passthrough.minimalRequest(body)
    const body_bytes = lengthOf(context)
    return { family, answer, errorForClient, request, writer: dialect.writer, passthroughRequest, body_bytes }
  }

  /** The length of the body. Undefined where it is chunked, and where the request is more than its body. */
  function lengthOf(context: Context): number | undefined {
    if (context.message || dialect.read) return undefined
    const length = context.header('content-length')
    return length === null ? undefined : Number(length)
  }

  /** The same error with the field names of the client's protocol. */
  const errorForClient = (thrown: unknown, request: ChatRequest): unknown =>
    thrown instanceof GatewayError && !(thrown instanceof FieldNotAllowed) && dialect.errorForClient
      ? dialect.errorForClient(thrown, request)
      : thrown

  /** The caller may use the model of the body. The result is the body without its routing fields. */
  function authorized(given: unknown, context: Context): unknown {
    context.noteFields(given)
    const model = has_routing_fields ? requestedModel(given) : memberOf(given, 'model')
    pipeline.authorize(context, { family, model: context.params.model ?? model })
    readUserField(context, given, family)
    readMetadata(context, given, family)
    return has_routing_fields ? takeRoutingFields(given, context, parts) : given
  }

  /** The response to an error that this protocol does not report as one; undefined for any other error. */
  function blocked(thrown: unknown, head: ResponseHead, context: Context): Response | undefined {
    if (!(thrown instanceof GatewayError)) return undefined
    const answer = dialect.blocked?.(thrown, head, context)
    if (!answer) return undefined
    const { note } = context
    note.error = thrown.code
    if (thrown.detail.upstream_status !== undefined) note.upstream_status = thrown.detail.upstream_status
    return new Response(answer.text, { headers: { 'content-type': answer.content_type } })
  }

  function accepted(deferred: Deferred, context: Context): Response | Promise<Response> {
    const headers = modelHeaders(deferred, clock)
    if ('body' in deferred) return Response.json(deferred.body, { headers })
    if ('stream' in deferred) return callStream(deferred.stream, context, { headers, settings, clock })
    return storedStream(deferred.events, context, { headers, settings, clock })
  }

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
      const limits = bodyLimits(context, 'media', bodyParts)
      const given = message ? message.body : await readJson(request, limits)
      const checked = authorized(given, context)
      const { files } = dialect
      const body = files && (message ?? limits.is_found) ? await fileInputs.resolved(checked, files, context) : checked
      const mayDefer = !dialect.deferred_by || Array.isArray(memberOf(body, dialect.deferred_by))
      const deferring = mayDefer ? dialect.defer?.(body, context) : undefined
      const deferred = deferring && (await deferring)
      if (deferred) return await accepted(deferred, context)
      const reading = read(body, context)
      const input = reading instanceof Promise ? await reading : reading
      let head: ResponseHead | undefined
      try {
        if (input.request.stream) {
          const { framing = dialect.framing } = input
          const prepared = pipeline.prepareStream(chat.stream, context, input)
          head = prepared.work.head
          const { headers } = prepared
          return await callStream(prepared.send(), context, { headers, framing, settings, clock })
        }
        const prepared = pipeline.prepare(chat.whole, context, input)
        head = prepared.work.head
        const { headers } = prepared
        headers['content-type'] = JSON_TYPE
        const { answer, usage, work } = await prepared.send()
        const body = answer.encode(usage)
        const storing = work.writer.store?.()
        if (storing) await storing
        return textResponse(typeof body === 'string' ? body : JSON.stringify(body), context, clock, headers)
      } catch (thrown) {
        const response = head && blocked(thrown, head, context)
        if (response) return response
        // The decoder's own error already has the client's field names.
        throw thrown === input.passthroughRequest?.refusal ? thrown : errorForClient(thrown, input.request)
      }
    },
  }
}

export const CHAT_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'unsupported_value',
  'file_not_found',
  'context_length_exceeded',
  'content_policy_violation',
  ...UPSTREAM_ERRORS,
]
