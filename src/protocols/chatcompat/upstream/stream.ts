/**
 * Decodes responses of OpenAI-shaped providers: a body to a whole response, or events to chunks, and detects a cut
 * stream.
 */

import { parseJsonKeeping } from '../../../kit/exact-json.ts'
import { isRecord } from '../../../kit/json.ts'
import { createSseParser, type SseEvent } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatChunk, ChatCompletion } from '../../canonical.ts'
import { isDoneMark, payloadOf } from '../../event-payload.ts'
import { createEventSource, eventsIn } from '../../event-source.ts'
import { holdsError } from '../../provider-error.ts'
import type { ByteSource, Fallback, Faults } from '../../upstream.ts'
import { createFold, normaliseWhole } from './answer.ts'
import { createChunkNormaliser } from './chunk.ts'
import { ARGUMENTS } from './tool-call.ts'

/** Decodes a whole response from a body. Some providers stream it although no stream was requested. */
export function readWhole(text: string, fallback: Fallback, faults: Faults): ChatCompletion {
  return wholeIn(parseJsonKeeping(text, ARGUMENTS), fallback, faults) ?? foldedFrom(text, fallback, faults)
}

/** The completion in parsed JSON; undefined if the payload is not JSON. */
export function wholeIn(payload: unknown, fallback: Fallback, faults: Faults): ChatCompletion | undefined {
  if (!isRecord(payload) && !Array.isArray(payload)) return undefined
  const body = Array.isArray(payload) ? payload[0] : payload
  if (!isRecord(body) || holdsError(body)) throw faults.inAnswer(body)
  const answer = normaliseWhole(body, fallback)
  if (answer) return answer
  throw faults.notUnderstood('answered with JSON that is not a chat completion')
}

function foldedFrom(text: string, fallback: Fallback, faults: Faults): ChatCompletion {
  // A stream starts with a field or a comment, possibly after a BOM.
  if (!/^\uFEFF?\s*(data:|event:|:)/.test(text)) throw faults.notUnderstood('answered with something that is not JSON')
  const parser = createSseParser()
  const reading = createReading(fallback, faults)
  const step = reading.take([...eventsIn(parser, new TextEncoder().encode(text), faults), ...parser.end()])
  if (step.failure) throw step.failure
  const fold = createFold()
  for (const chunk of [...step.chunks, ...reading.end()]) fold.add(chunk)
  const answer = fold.whole()
  if (answer) return answer
  throw faults.notUnderstood('answered with an empty stream')
}

/** The state of one stream: it turns events into chunks and checks the end. */
function createReading(fallback: Fallback, faults: Faults) {
  const normaliser = createChunkNormaliser(fallback)
  let isDone = false
  return {
    /**
     * Decodes events. A failure applies after the returned chunks. At the end of the body the last event may be
     * incomplete.
     */
    take(events: SseEvent[], atEnd = false): { chunks: ChatChunk[]; done: boolean; failure: GatewayError | undefined } {
      const chunks: ChatChunk[] = []
      const parts = { faults, atEnd, isFailure: hasHiddenError }
      for (const event of events) {
        if (isDoneMark(event.data)) {
          isDone = true
          break
        }
        const payload = payloadOf(event, parts)
        if (payload === undefined) continue
        if (payload instanceof GatewayError) return { chunks, done: true, failure: payload }
        const chunk = normaliser.take(payload)
        if (chunk) chunks.push(chunk)
      }
      return { chunks, done: isDone, failure: undefined }
    },
    isFinished: normaliser.isFinished,
    /**
     * Called at the end of the body. Returns the finish chunk that the provider left out, if any. Throws if the
     * stream was cut.
     */
    end(): ChatChunk[] {
      if (normaliser.isFinished()) return []
      if (!isDone) throw faults.cut()
      if (!normaliser.hasStarted()) throw faults.notUnderstood('answered with an empty stream')
      const missing = normaliser.missingFinish()
      return missing ? [missing] : []
    },
  }
}

/** The chunks of a streamed response, one batch for each read. */
export async function* readStream(answer: ByteSource, fallback: Fallback, faults: Faults): AsyncGenerator<ChatChunk[]> {
  const reading = createReading(fallback, faults)
  const next = createEventSource({ answer, faults, isFinished: reading.isFinished })
  for (;;) {
    const { bytes, events } = await next()
    const { chunks, done, failure } = reading.take(events, !bytes)
    if (chunks.length > 0) yield chunks
    if (failure) throw failure
    if (done || !bytes) break
  }
  const rest = reading.end()
  if (rest.length > 0) yield rest
}

/** Groq reports an error during a stream beside the choices. */
export const hasHiddenError = (payload: Record<string, unknown>): boolean =>
  payload.x_groq !== undefined && isRecord(payload.x_groq) && holdsError(payload.x_groq)
