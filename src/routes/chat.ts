/** Chat over HTTP, whole and streamed, in any dialect (specification 2.2 to 2.4). */

import type { Chat, ChatInput } from '../chat/chat.ts'
import type { Dialect, Exchange } from '../chat/dialects/dialect.ts'
import { type PassthroughRequest, passthroughRequestFor } from '../chat/passthrough.ts'
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Route } from '../http/context.ts'
import { awaitStart, eventStream } from '../http/event-stream.ts'
import type { Clock } from '../kit/clock.ts'
import { memberOf } from '../kit/json.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { ChatRequest } from '../protocols/canonical.ts'
import type { ResponseHead } from '../protocols/protocol.ts'
import { FieldNotAllowed } from '../providers/allowed/allowed.ts'
import { type ErrorCode, GatewayError, MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../spec/error.ts'

type ChatRouteParts = { pipeline: Pipeline; chat: Chat; dialect: Dialect; settings: ServerSettings; clock: Clock }

export function chatRoute({ pipeline, chat, dialect, settings, clock }: ChatRouteParts): Route {
  const { family } = dialect
  const parse = (body: unknown, context: Context): Exchange | Promise<Exchange> =>
    dialect.read ? dialect.read(body, context) : { request: dialect.parse(body), writer: dialect.writer }

  /** What cannot be translated may still pass, as it is, to a provider of the same protocol. */
  async function read(
    body: unknown,
    context: Context,
  ): Promise<Exchange & { passthroughRequest: PassthroughRequest | undefined }> {
    const passthroughRequest = (refusal: GatewayError | undefined, passthrough = dialect.passthrough) =>
      passthroughRequestFor(passthrough, { family, body, request: context.request, refusal })
    try {
      const exchange = await parse(body, context)
      // The provider's bytes are server-sent events.
      const passing = exchange.framing ? undefined : passthroughRequest(exchange.refusal, exchange.passthrough)
      if (exchange.refusal && !passing) throw exchange.refusal
      return { ...exchange, passthroughRequest: passing }
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !dialect.passthrough?.minimalRequest) throw thrown
      const untranslated = passthroughRequest(thrown)
      if (!untranslated) throw thrown
      return {
        request: dialect.passthrough.minimalRequest(body),
        writer: dialect.writer,
        passthroughRequest: untranslated,
      }
    }
  }

  /** An error about a field names the client's field. */
  const errorForClient = (thrown: unknown, request: ChatRequest): unknown =>
    thrown instanceof GatewayError && !(thrown instanceof FieldNotAllowed) && dialect.errorForClient
      ? dialect.errorForClient(thrown, request)
      : thrown

  async function whole(input: ChatInput, context: Context): Promise<Response> {
    const { work, send, ...chosen } = pipeline.prepare(chat.whole, context, input)
    const { head, writer } = work.responseContext
    const headers = { ...modelHeaders(chosen, clock), 'content-type': 'application/json;charset=utf-8' }
    try {
      const { answer, usage } = await send()
      const body = answer.encode(usage)
      await writer.store?.()
      return new Response(typeof body === 'string' ? body : JSON.stringify(body), { headers })
    } catch (thrown) {
      return answerOf(thrown, head, context)
    }
  }

  /** An error that is an answer in this protocol; throws any other. */
  function answerOf(thrown: unknown, head: ResponseHead, { note, request }: Context): Response {
    const answer = thrown instanceof GatewayError ? dialect.blocked?.(thrown, head, request) : undefined
    if (!answer || !(thrown instanceof GatewayError)) throw thrown
    note.error = thrown.code
    if (thrown.detail.upstream_status !== undefined) note.upstream_status = thrown.detail.upstream_status
    return answer
  }

  async function streamed(input: ChatInput, framing: Exchange['framing'], context: Context): Promise<Response> {
    const { work, send, ...chosen } = pipeline.prepareStream(chat.stream, context, input)
    const headers = modelHeaders(chosen, clock)
    const { started, parts, record, abandon } = send()
    const silence = { arrived: context.arrived, keep_alive_ms: settings.keep_alive_seconds * 1000, clock }
    try {
      await awaitStart(started, silence)
    } catch (thrown) {
      return answerOf(thrown, work.responseContext.head, context)
    }
    context.note.stream = true
    return eventStream({
      ...silence,
      batches: parts,
      headers,
      ...(framing ? { framing } : {}),
      abort: context.leave,
      onFirstByte() {
        context.note.first_byte_ms = clock.now() - context.arrived
      },
      async onEnd(outcome) {
        await abandon() // where the client left; in all other cases it is settled or about to be
        if (record.error) context.note.error = record.error
        context.finish(record.error ? 'cut' : outcome)
      },
    })
  }

  return {
    method: 'POST',
    path: dialect.path,
    operation: { ...dialect.operation, errors: [...CHAT_ERRORS, ...(dialect.operation.errors ?? [])] },
    ...(dialect.writeError ? { writeError: dialect.writeError } : {}),
    ...(dialect.errorSchema ? { errorSchema: dialect.errorSchema } : {}),
    async handle(context) {
      const limits = bodyLimits(settings, clock, 'media')
      const body = await readJson(context.request, limits)
      pipeline.authorize(context, { family, model: context.params.model ?? memberOf(body, 'model') })
      const other = await dialect.instead?.(body, context)
      if (other) return other
      const { request, passthroughRequest, writer, framing = dialect.framing } = await read(body, context)
      const { id_prefix } = dialect
      const input = { family, request, passthroughRequest, writer, answer: { id_prefix }, errorForClient }
      try {
        return await (request.stream ? streamed(input, framing, context) : whole(input, context))
      } catch (error) {
        // A refusal of what was read names the client's fields already.
        throw error === passthroughRequest?.refusal ? error : errorForClient(error, request)
      }
    },
  }
}

const CHAT_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'unsupported_value',
  'context_length_exceeded',
  'content_policy_violation',
  ...UPSTREAM_ERRORS,
]
