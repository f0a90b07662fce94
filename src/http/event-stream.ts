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
  /** Called when the client has left: must end a pending read of the source. */
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
  let lastSentAt = parts.arrived ?? clock.steady()
  let cancelTimer = () => {}
  let ended = false
  let hasStarted = false
  /** Whether the client is waiting for data. */
  let isPulling = false

  const end = (outcome: Outcome) => {
    if (ended) return
    ended = true
    cancelTimer()
    onEnd(outcome)
  }

  const abandon = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    end('client_gone')
    abort()
    controller.error(new Error('The client read nothing for too long.'))
    void source.return?.()
  }

  /** One timer for the whole stream, rescheduled when it fires: a timer per chunk would cost more than the chunk. */
  const watchSilence = (controller: ReadableStreamDefaultController<Uint8Array>, ms: number) => {
    cancelTimer = clock.after(ms, () => {
      if (ended) return
      const silence = clock.steady() - lastSentAt
      // If the queue is not empty, the client has not read the last chunk.
      const isReading = isPulling && (controller.desiredSize ?? 0) >= 0
      if (!isReading && silence >= STALLED_MILLISECONDS) return abandon(controller)
      const left = keep_alive_ms - silence
      if (left <= 0 && isReading) {
        lastSentAt = clock.steady()
        controller.enqueue(keepAlive)
      }
      watchSilence(controller, left > 0 ? left : keep_alive_ms)
    })
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Proxies may buffer a head without a body: the keep-alive is sent with it.
        if (clock.steady() - lastSentAt >= keep_alive_ms) {
          lastSentAt = clock.steady()
          controller.enqueue(keepAlive)
        }
        watchSilence(controller, keep_alive_ms - (clock.steady() - lastSentAt))
      },
      async pull(controller) {
        isPulling = true
        try {
          const { done, value } = await source.next()
          if (ended) return
          if (done) {
            end('done')
            controller.close()
            return
          }
          lastSentAt = clock.steady()
          if (!hasStarted) onFirstByte?.()
          hasStarted = true
          controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
        } catch (error) {
          end('cut')
          controller.error(error)
        } finally {
          isPulling = false
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
