/** Chat over HTTP, whole and streamed, in any dialect (specification 2.2 to 2.4). */
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Route } from '../http/context.ts'
import { asGatewayError } from '../http/errors.ts'
import { awaitStart, eventStream } from '../http/event-stream.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import { FieldNotAllowed } from '../providers/allowed/allowed.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import { type ErrorCode, GatewayError, MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../spec/error.ts'
import type { Asked, Chat } from './chat.ts'
import type { AnswerWriter, Dialect, Exchange } from './dialects/dialect.ts'
import { type Sent, sentBy } from './relay.ts'
import type { Speech, Teller } from './speech.ts'

type ChatRouteParts = { chat: Chat; dialect: Dialect; settings: ServerSettings; clock: Clock; log: Log }

export function chatRoute({ chat, dialect, settings, clock, log }: ChatRouteParts): Route {
  /** A request under way, with who writes its answer. */
  type Asking = Omit<Exchange, 'request'> & { asked: Asked }
  const tellerFor = ({ asked: { model, request }, writer }: Asking, { request_id }: Context): Teller => {
    const id = `${dialect.id_prefix}${randomAlphanumerics(24)}`
    const head = { id, created: unixSeconds(clock), model: model.id }
    return { head, writer: writer(head, request, request_id) }
  }
  const readWords = (body: unknown, context: Context): Exchange | Promise<Exchange> =>
    dialect.read ? dialect.read(body, context) : { request: dialect.parse(body), writer: dialect.writer }
  /** What cannot be put into the house's words may still pass to a vendor of the same dialect, as it is. */
  async function read(body: unknown, context: Context): Promise<Exchange & { sent: Sent | undefined }> {
    const sent = (refusal: GatewayError | undefined, relay = dialect.relay) =>
      sentBy(relay, { family: dialect.family, body, request: context.request, refusal })
    try {
      const words = await readWords(body, context)
      // The vendor's bytes are server-sent events.
      const passing = words.framing ? undefined : sent(words.refusal, words.relay)
      if (words.refusal && !passing) throw words.refusal
      return { ...words, sent: passing }
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !dialect.relay?.outline) throw thrown
      const untranslated = sent(thrown)
      if (!untranslated) throw thrown
      return { request: dialect.relay.outline(body), writer: dialect.writer, sent: untranslated }
    }
  }
  /** What the house says of a field is said of the client's. */
  const told = (thrown: unknown, request: ChatRequest): unknown =>
    thrown instanceof GatewayError && !(thrown instanceof FieldNotAllowed) && dialect.inClientWords
      ? dialect.inClientWords(thrown, request)
      : thrown

  async function whole(asking: Asking, context: Context): Promise<Response> {
    const { asked } = asking
    try {
      const teller = tellerFor(asking, context)
      const headers = { ...modelHeaders(asked, clock), 'content-type': 'application/json;charset=utf-8' }
      const answer = await chat.whole(asked, teller, context)
      const usage = await asked.meter.usage()
      await asked.meter.settle({ error: false })
      const body = answer.write(usage)
      await teller.writer.keep?.()
      return new Response(typeof body === 'string' ? body : JSON.stringify(body), { headers })
    } catch (error) {
      await asked.meter.settle(outcomeOf(error, context))
      throw error
    }
  }

  /** The answer's events. An error after the first of them is the last one. */
  async function* events(
    starting: Promise<Speech>,
    { asked, writer, context }: { asked: Asked; writer: AnswerWriter; context: Context },
  ): AsyncIterable<string | Uint8Array> {
    try {
      const speech = await starting
      yield* speech.batches
      // Only a client that asked for the usage waits for it, which takes a while where it must be estimated.
      const usage = speech.tellsUsage ? await asked.meter.usage() : undefined
      const settled = asked.meter.settle({ error: false })
      const end = speech.end(usage)
      await writer.keep?.()
      if (end !== '') yield end
      await settled
    } catch (thrown) {
      const reason = context.signal.reason ?? told(thrown, asked.request)
      const error = asGatewayError(reason, { log, request_id: context.request_id })
      context.note.error = error.code
      const settled = asked.meter.settle(outcomeOf(error, context))
      // First of all the client is told: an estimate may take as long as a cut connection has to live.
      yield writer.fail(error)
      await settled
    }
  }

  async function streamed(asking: Asking, context: Context): Promise<Response> {
    context.note.stream = true
    const { asked } = asking
    const teller = tellerFor(asking, context)
    const headers = modelHeaders(asked, clock)
    const starting = chat.stream(asked, teller, context)
    const silence = { arrived: context.arrived, keep_alive_ms: settings.keep_alive_seconds * 1000, clock }
    try {
      await awaitStart(starting, silence)
    } catch (error) {
      await asked.meter.settle(outcomeOf(error, context))
      throw error
    }
    const framing = asking.framing ?? dialect.framing
    return eventStream({
      ...silence,
      batches: events(starting, { asked, writer: teller.writer, context }),
      headers,
      ...(framing ? { framing } : {}),
      abort: context.leave,
      onFirstByte() {
        context.note.first_byte_ms = clock.now() - context.arrived
      },
      async onEnd(outcome) {
        await asked.meter.settle({ error: false }) // where the client left; in all other cases it is under way or done
        context.finish(context.note.error ? 'cut' : outcome)
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
      const other = await dialect.instead?.(body, context)
      if (other) return other
      const { request, sent, ...exchange } = await read(body, context)
      try {
        const asking = { ...exchange, asked: chat.ask({ request, family: dialect.family, sent }, context) }
        return await (request.stream ? streamed(asking, context) : whole(asking, context))
      } catch (error) {
        // A refusal of what was read is in the client's words already.
        throw error === sent?.refusal ? error : told(error, request)
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

/** Codes after which the upstream may have worked, and charged, although its answer never arrived in full. */
const HALF_DONE = new Set(['upstream_cut', 'upstream_timeout', 'shutting_down', 'client_closed_request'])

/** What a request that did not end well counts as. */
export function outcomeOf(error: unknown, { signal }: Context): { error: boolean; refused: boolean } {
  const code = (error as Partial<GatewayError>).code ?? ''
  return { error: !signal.aborted, refused: !signal.aborted && !HALF_DONE.has(code) }
}
