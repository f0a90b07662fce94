/**
 * Responds with a stream of server-sent events (back-pressure, keep-alive comments, an end that is always reported), and ends
 * the request for the access log when the stream has ended.
 */
import type { Parts } from '../../calls/family.ts'
import type { SentStream } from '../../calls/pipeline.ts'
import type { ServerSettings } from '../../config/config.ts'
import type { Context, Outcome } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import { COMMENT_CHARACTERS, explanationText } from './explanation.ts'

type StreamOptions = {
  /** Default 200. */
  status?: number
  headers?: Record<string, string>
  /** Default: server-sent events. */
  framing?: Framing | undefined
  settings: Pick<ServerSettings, 'keep_alive_seconds'>
  clock: Clock
}

/** The response to a streamed call. Rejects with the provider's error while a status can still report it. */
export async function callStream(
  { started, parts, record, abandon }: SentStream,
  context: Context,
  options: StreamOptions,
): Promise<Response> {
  await awaitStart(started, silenceOf(context, options))
  // A comment is possible only among server-sent events, which have no media type of their own here.
  const isCommented = context.is_explained && options.framing?.content_type === undefined
  return respond(isCommented ? withExplanation(parts, record) : parts, context, {
    ...options,
    async onEnd(outcome) {
      await abandon() // where the client has left; otherwise the call is settled or about to be
      if (record.error) context.note.error = record.error
      context.finish(record.error ? 'cut' : outcome)
    },
  })
}

/** The response to a request for events that are stored. */
export const storedStream = (
  events: AsyncIterable<string | Uint8Array>,
  context: Context,
  options: StreamOptions,
): Response => respond(events, context, { ...options, onEnd: (outcome) => context.finish(outcome) })

/** The explanation of the whole call, failures within the stream included, follows its last event. */
async function* withExplanation(
  parts: SentStream['parts'],
  record: SentStream['record'],
): AsyncGenerator<string | Uint8Array> {
  yield* parts
  const text = explanationText(record, COMMENT_CHARACTERS)
  if (text !== undefined) yield `: x-gatehouse-explain ${text}\n\n`
}

const silenceOf = ({ arrived }: Context, { settings, clock }: StreamOptions) => ({
  arrived,
  keep_alive_ms: settings.keep_alive_seconds * 1000,
  clock,
})

type Ending = Pick<Parameters<typeof eventStream>[0], 'onEnd'>

function respond(batches: Parts, context: Context, options: StreamOptions & Ending): Response {
  const { status, headers, framing, clock, onEnd } = options
  context.note.stream = true
  return eventStream({
    ...silenceOf(context, options),
    batches,
    ...(status === undefined ? {} : { status }),
    ...(headers ? { headers } : {}),
    ...(framing ? { framing } : {}),
    abort: () => context.leave(),
    onFirstByte() {
      context.note.first_byte_ms = clock.steady() - context.arrived
    },
    onEnd,
  })
}

/** The form of a stream: its media type (default: server-sent events), and its keep-alive; empty: it has none. */
export type Framing = { content_type?: string; keep_alive: string }

type EventStreamParts = Omit<StreamOptions, 'settings'> & {
  /** Whole events, as text or encoded. One item is written as one chunk. */
  batches: Parts
  keep_alive_ms: number
  /** Unix milliseconds of the request's arrival: silence before the head counts too. Default: now. */
  arrived?: number
  /** Called when the client has left: must end a pending read of the source. */
  abort(): void
  /** Called once, however the stream ended. */
  onEnd(outcome: Outcome): void
  onFirstByte?(): void
}

/** A comment is a block of its own: some clients drop data that follows a comment in the same block. */
const COMMENTS: Framing = { keep_alive: ': keep-alive\n\n' }
const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** A client that reads nothing for this long counts as gone, even if its connection is open. */
const STALLED_MILLISECONDS = 120_000

const STREAM_HEADERS = {
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/**
 * The response. It is pulled: nothing is read from the source before the client has read what came before. A default
 * stream without a buffer does that; a `direct` one was measured not to apply back-pressure to its source.
 */
export function eventStream(parts: EventStreamParts): Response {
  const { status = 200, headers, framing: { content_type = EVENT_STREAM } = COMMENTS } = parts
  const body = new ReadableStream<Uint8Array>(new ClientStream(parts), PULLED)
  return new Response(body, { status, headers: { ...headers, ...STREAM_HEADERS, 'content-type': content_type } })
}

const PULLED = { highWaterMark: 0 }
const encoder = new TextEncoder()

/** The loop of one stream: each `pull` of the client reads one part of the source and writes it. */
class ClientStream implements UnderlyingDefaultSource<Uint8Array> {
  readonly #parts: EventStreamParts
  readonly #source: AsyncIterator<string | Uint8Array>
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #lastSentAt: number
  #cancelTimer: (() => void) | undefined
  #isEnded = false
  #hasStarted = false
  #isPulling = false

  constructor(parts: EventStreamParts) {
    this.#parts = parts
    this.#source = parts.batches[Symbol.asyncIterator]()
    this.#lastSentAt = parts.arrived ?? parts.clock.steady()
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller
    const { batches, clock, keep_alive_ms } = this.#parts
    // The runtime sends the head in ten pieces, each by a call of the system, if nothing is there to be sent with it.
    const first = batches.takeFirst?.()
    if (first !== undefined) this.#send(controller, first)
    // Proxies may buffer a head without a body: the keep-alive is sent with it.
    if (clock.steady() - this.#lastSentAt >= keep_alive_ms) this.#keepAlive()
    this.#watchSilence(keep_alive_ms - (clock.steady() - this.#lastSentAt))
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#isPulling = true
    try {
      const { done, value } = await this.#source.next()
      if (this.#isEnded) return
      if (done) {
        this.#end('done')
        controller.close()
        return
      }
      this.#send(controller, value)
    } catch (error) {
      this.#end('cut')
      controller.error(error)
    } finally {
      this.#isPulling = false
    }
  }

  #send(controller: ReadableStreamDefaultController<Uint8Array>, part: string | Uint8Array): void {
    this.#lastSentAt = this.#parts.clock.steady()
    if (!this.#hasStarted) this.#parts.onFirstByte?.()
    this.#hasStarted = true
    controller.enqueue(typeof part === 'string' ? encoder.encode(part) : part)
  }

  async cancel(): Promise<void> {
    this.#end('client_gone')
    // The source ends only after the read for which it waits.
    this.#parts.abort()
    await this.#source.return?.()
  }

  #end(outcome: Outcome): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#cancelTimer?.()
    this.#parts.onEnd(outcome)
  }

  #keepAlive(): void {
    this.#lastSentAt = this.#parts.clock.steady()
    const { keep_alive } = this.#parts.framing ?? COMMENTS
    if (keep_alive !== '') this.#controller?.enqueue(encoder.encode(keep_alive))
  }

  /** One timer for the whole stream, rescheduled when it fires: a timer per chunk would cost more than the chunk. */
  #watchSilence(ms: number): void {
    this.#cancelTimer = this.#parts.clock.after(ms, this.#checkSilence)
  }

  readonly #checkSilence = (): void => {
    if (this.#isEnded) return
    const { clock, keep_alive_ms } = this.#parts
    const silence = clock.steady() - this.#lastSentAt
    // If the queue is not empty, the client has not read the last chunk.
    const isReading = this.#isPulling && (this.#controller?.desiredSize ?? 0) >= 0
    if (!isReading && silence >= STALLED_MILLISECONDS) {
      this.#abandon()
      return
    }
    const left = keep_alive_ms - silence
    if (left <= 0 && isReading) this.#keepAlive()
    this.#watchSilence(left > 0 ? left : keep_alive_ms)
  }

  #abandon(): void {
    this.#end('client_gone')
    this.#parts.abort()
    this.#controller?.error(new Error('The client read nothing for too long.'))
    void this.#source.return?.()
  }
}

/**
 * Waits for the start of a stream, so that a failure before it keeps its status: rejects as `starting` does. Gives up
 * waiting once the request has been silent for `keep_alive_ms` since its arrival; `starting` may then fail later, and
 * the reader of the stream sees that.
 */
export async function awaitStart(
  starting: Promise<unknown>,
  { arrived, keep_alive_ms, clock }: { arrived: number; keep_alive_ms: number; clock: Clock },
): Promise<void> {
  let cancel = () => {}
  const silence = new Promise<void>((resolve) => {
    cancel = clock.after(Math.max(0, arrived + keep_alive_ms - clock.steady()), resolve)
  })
  try {
    await Promise.race([starting, silence])
  } finally {
    cancel()
  }
}
