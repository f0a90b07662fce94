/** A whole response. A large one is sent as its client reads it, and its bytes count as held until then. */
import type { Clock } from '../kit/clock.ts'
import type { Context, Outcome } from './context.ts'

/** Smaller ones fit into the buffers of a connection. */
const LARGE_CHARACTERS = 256 * 1024
const SLICE_CHARACTERS = 64 * 1024
/** A client that reads nothing for this long is disconnected. */
const STALLED_MILLISECONDS = 60_000

type ResponseParts = { context: Context; clock: Clock; headers?: Record<string, string> | undefined }

export function jsonResponse(value: unknown, parts: ResponseParts): Response {
  const { headers, ...rest } = parts
  return textResponse(JSON.stringify(value), { ...rest, headers: { 'content-type': JSON_TYPE, ...headers } })
}

export const JSON_TYPE = 'application/json;charset=utf-8'

/** The runtime would copy a large text into memory that nothing counts, and keep it until the client has read it. */
export function textResponse(text: string, { context, clock, headers = {} }: ResponseParts): Response {
  const body = text.length > LARGE_CHARACTERS ? pulled(text, context, clock) : text
  return new Response(body, { headers: context.withHeaders(headers) })
}

function pulled(whole: string, context: Context, clock: Clock): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let text = whole
  let at = 0
  let lastReadAt = clock.steady()
  let cancelTimer = () => {}
  context.sendLater(bytesInMemory(text))

  function end(outcome: Outcome): void {
    text = ''
    cancelTimer()
    context.finish(outcome)
  }

  /** One timer for the whole response, set again when it fires. */
  function watch(controller: ReadableStreamDefaultController, ms = STALLED_MILLISECONDS): void {
    cancelTimer = clock.after(ms, () => {
      const left = lastReadAt + STALLED_MILLISECONDS - clock.steady()
      if (left > 0) return watch(controller, left)
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
        lastReadAt = clock.steady()
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

/** The runtime holds a text with one byte a character, or with two if it has a character beyond Latin-1. */
const bytesInMemory = (text: string): number => (BEYOND_LATIN_1.test(text) ? 2 * text.length : text.length)

const BEYOND_LATIN_1 = /[^\0-\xff]/

/** Never between the two halves of a character outside the basic plane. */
function sliceEnd(text: string, at: number): number {
  const end = Math.min(at + SLICE_CHARACTERS, text.length)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end + 1 : end
}
