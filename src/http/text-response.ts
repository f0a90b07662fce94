/** A whole response. A large one is sent as its client reads it, and its bytes count as held until then. */
import type { Clock } from '../kit/clock.ts'
import type { Context, Outcome } from './context.ts'

/** Smaller ones fit into the buffers of a connection. */
const LARGE_CHARACTERS = 256 * 1024
const SLICE_CHARACTERS = 64 * 1024
/** A client that reads nothing for this long is disconnected. */
const STALLED_MILLISECONDS = 120_000

type ResponseParts = { context: Context; clock: Clock; headers?: Record<string, string> | undefined }

export function jsonResponse(value: unknown, parts: ResponseParts): Response {
  const { headers, ...rest } = parts
  return textResponse(JSON.stringify(value), { ...rest, headers: { 'content-type': JSON_TYPE, ...headers } })
}

const JSON_TYPE = 'application/json;charset=utf-8'

/** The runtime would copy a large text into memory that nothing counts, and keep it until the client has read it. */
export function textResponse(text: string, { context, clock, headers = {} }: ResponseParts): Response {
  const body = text.length > LARGE_CHARACTERS ? pulled(text, context, clock) : text
  return new Response(body, { headers })
}

function pulled(text: string, context: Context, clock: Clock): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  context.sendLater(text.length)
  let at = 0
  let hasProgress = true
  let cancelTimer = () => {}

  function end(outcome: Outcome): void {
    cancelTimer()
    context.finish(outcome)
  }

  /** One timer for the whole response, set again when it fires. */
  function watch(controller: ReadableStreamDefaultController): void {
    cancelTimer = clock.after(STALLED_MILLISECONDS, () => {
      if (hasProgress) {
        hasProgress = false
        watch(controller)
        return
      }
      end('client_gone')
      controller.error(new Error('The client read nothing for too long.'))
    })
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        watch(controller)
        const stop = () => {
          end('cut')
          controller.error(new Error('The request was aborted.'))
        }
        context.signal.addEventListener('abort', stop, { once: true })
      },
      pull(controller) {
        hasProgress = true
        if (at >= text.length) {
          end('done')
          controller.close()
          return
        }
        const next = sliceEnd(text, at)
        controller.enqueue(encoder.encode(text.slice(at, next)))
        at = next
      },
      cancel() {
        end('client_gone')
      },
    },
    { highWaterMark: 0 },
  )
}

/** Never between the two halves of a character outside the basic plane. */
function sliceEnd(text: string, at: number): number {
  const end = Math.min(at + SLICE_CHARACTERS, text.length)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end + 1 : end
}
