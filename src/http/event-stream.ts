/** A stream of server-sent events to a client: back-pressure, keep-alive comments, and an end that is always told. */
import type { Clock } from '../kit/clock.ts'
import type { Outcome } from './context.ts'

/** The form of a stream: its media type (default: server-sent events), and what is sent in silence. */
export type Framing = { content_type?: string; keep_alive: string }

type EventStreamParts = {
  /** Whole events, as text or encoded. One item is written as one piece. */
  batches: AsyncIterable<string | Uint8Array>
  keep_alive_ms: number
  clock: Clock
  /** Unix milliseconds of the request's arrival: silence before the head counts too. Default: now. */
  arrived?: number
  headers?: Record<string, string>
  /** Default: server-sent events. */
  framing?: Framing
  /** Called when the client has left: must end the wait that the source may be in. */
  abort(): void
  /** Called once, however the stream ended. */
  onEnd(outcome: Outcome): void
  /** Called with the first bytes. */
  onFirstByte?(): void
}

/** A comment is a block of its own: one that is glued to data makes some clients drop the data. */
const COMMENTS: Framing = { keep_alive: ': keep-alive\n\n' }
const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** A client that takes nothing for this long is gone, whatever its connection says. */
const STALLED_MILLISECONDS = 120_000

const STREAM_HEADERS = {
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/**
 * The response. It is pulled: nothing is read from the source before the client took what came before. A default
 * stream with no buffer of its own does that; a `direct` one was measured not to hold its source back.
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
  /** Whether the client waits for more. */
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

  /** One timer for the whole stream, moved on when it fires: a timer a chunk would cost more than the chunk. */
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
        // A head without a body may stay in a buffer on its way: the keep-alive goes with it.
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
        // `return` does not reach a generator that waits for a read; what it waits for must end first.
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
