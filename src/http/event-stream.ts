/** A stream of server-sent events to a client: back-pressure, keep-alive comments, and an end that is always reported. */
import type { Clock } from '../kit/clock.ts'
import type { Outcome } from './context.ts'

/** The form of a stream: its media type (default: server-sent events), and its keep-alive. */
export type Framing = { content_type?: string; keep_alive: string }

type EventStreamParts = {
  /** Whole events, as text or encoded. One item is written as one chunk. */
  batches: AsyncIterable<string | Uint8Array>
  keep_alive_ms: number
  clock: Clock
  /** Unix milliseconds of the request's arrival: silence before the head counts too. Default: now. */
  arrived?: number
  headers?: Record<string, string>
  /** Default: server-sent events. */
  framing?: Framing
  /** Called when the client has left: must end a wait of the source. */
  abort(): void
  /** Called once, however the stream ended. */
  onEnd(outcome: Outcome): void
  /** Called with the first bytes. */
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
  const { batches, keep_alive_ms, clock, headers, framing = COMMENTS, abort, onEnd, onFirstByte } = parts
  const encoder = new TextEncoder()
  const keepAlive = encoder.encode(framing.keep_alive)
  const source = batches[Symbol.asyncIterator]()
  let spoken = parts.arrived ?? clock.now()
  let cancelTimer = () => {}
  let ended = false
  let begun = false
  /** Whether the client is waiting for data. */
  let wanted = false

  const end = (outcome: Outcome) => {
    if (ended) return
    ended = true
    cancelTimer()
    onEnd(outcome)
  }

  const giveUp = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    end('client_gone')
    abort()
    controller.error(new Error('The client took nothing for too long.'))
    void source.return?.()
  }

  /** One timer for the whole stream, rescheduled when it fires: a timer per chunk would cost more than the chunk. */
  const watchSilence = (controller: ReadableStreamDefaultController<Uint8Array>, ms: number) => {
    cancelTimer = clock.after(ms, () => {
      if (ended) return
      const silence = clock.now() - spoken
      // What was said last is still not taken where something is left in the queue.
      const isReading = wanted && (controller.desiredSize ?? 0) >= 0
      if (!isReading && silence >= STALLED_MILLISECONDS) return giveUp(controller)
      const left = keep_alive_ms - silence
      if (left <= 0 && isReading) {
        spoken = clock.now()
        controller.enqueue(keepAlive)
      }
      watchSilence(controller, left > 0 ? left : keep_alive_ms)
    })
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Proxies may buffer a head without a body: the keep-alive is sent with it.
        if (clock.now() - spoken >= keep_alive_ms) {
          spoken = clock.now()
          controller.enqueue(keepAlive)
        }
        watchSilence(controller, keep_alive_ms - (clock.now() - spoken))
      },
      async pull(controller) {
        wanted = true
        try {
          const { done, value } = await source.next()
          if (ended) return
          if (done) {
            end('done')
            controller.close()
            return
          }
          spoken = clock.now()
          if (!begun) onFirstByte?.()
          begun = true
          controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
        } catch (error) {
          end('cut')
          controller.error(error)
        } finally {
          wanted = false
        }
      },
      async cancel() {
        end('client_gone')
        // `return` does not reach a generator that awaits a read; that read must end first.
        abort()
        await source.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  const { content_type = EVENT_STREAM } = framing
  return new Response(body, { headers: { ...headers, ...STREAM_HEADERS, 'content-type': content_type } })
}

/**
 * Waits for the start of a stream, so that a failure before it keeps its status: rejects as `starting` does. Gives up
 * waiting once the request has been silent for `keep_alive_ms` since its arrival; `starting` may then fail later, and
 * whoever reads the stream sees that.
 */
export async function awaitStart(
  starting: Promise<unknown>,
  { arrived, keep_alive_ms, clock }: { arrived: number; keep_alive_ms: number; clock: Clock },
): Promise<void> {
  let cancel = () => {}
  const silence = new Promise<void>((resolve) => {
    cancel = clock.after(Math.max(0, arrived + keep_alive_ms - clock.now()), resolve)
  })
  try {
    await Promise.race([starting, silence])
  } finally {
    cancel()
  }
}
