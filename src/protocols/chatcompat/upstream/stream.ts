/**
 * Decodes responses of OpenAI-shaped providers: a body to a whole response, or events to chunks, and detects a cut
 * stream.
 */

import { parseJsonKeeping } from '../../../kit/exact-json.ts'
import { isRecord } from '../../../kit/json.ts'
import { createSseParser } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatChunk, ChatCompletion } from '../../canonical.ts'
import type { ChunkDecoder } from '../../chunk-stream.ts'
import { isDoneMark, payloadOf } from '../../event-payload.ts'
import { eventsIn } from '../../event-source.ts'
import { type Fallback, type Faults, holdsError } from '../../upstream.ts'
import { createFold, wholeIn } from './answer.ts'
import { createChunkNormaliser } from './chunk.ts'
import { ARGUMENTS } from './tool-call.ts'

/** Decodes a whole response from a body. Some providers stream it although no stream was requested. */
export function readWhole(text: string, fallback: Fallback, faults: Faults): ChatCompletion {
  return wholeIn(parseJsonKeeping(text, ARGUMENTS), fallback, faults) ?? foldedFrom(text, fallback, faults)
}

function foldedFrom(text: string, fallback: Fallback, faults: Faults): ChatCompletion {
  // A stream starts with a field or a comment, possibly after a BOM.
  if (!/^\uFEFF?\s*(data:|event:|:)/.test(text)) throw faults.notUnderstood('answered with something that is not JSON')
  const parser = createSseParser()
  const reading = createChunkDecoder(fallback, faults)
  const bytes = new TextEncoder().encode(text)
  const step = reading.take([...eventsIn(parser, bytes, faults), ...parser.end()], bytes)
  if (step.failure) throw step.failure
  const fold = createFold()
  for (const chunk of [...step.chunks, ...reading.end()]) fold.add(chunk)
  const answer = fold.whole()
  if (answer) return answer
  throw faults.notUnderstood('answered with an empty stream')
}

/** The state of one stream: it turns events into chunks and checks the end. */
export function createChunkDecoder(fallback: Fallback, faults: Faults): ChunkDecoder {
  const normaliser = createChunkNormaliser(fallback)
  let isDone = false
  return {
    take(events, bytes) {
      const chunks: ChatChunk[] = []
      const parts = { faults, atEnd: !bytes, isFailure: hasHiddenError }
      for (const event of events) {
        if (isDoneMark(event.data)) {
          isDone = true
          break
        }
        const payload = payloadOf(event, parts)
        if (payload === undefined) continue
        if (payload instanceof GatewayError) return { chunks, failure: payload, isDone: true }
        const chunk = normaliser.take(payload)
        if (chunk) chunks.push(chunk)
      }
      return { chunks, failure: undefined, isDone }
    },
    isFinished: normaliser.isFinished,
    /** Also returns the finish chunk that the provider left out. */
    end() {
      if (normaliser.isFinished()) return []
      if (!isDone) throw faults.cut()
      if (!normaliser.hasStarted()) throw faults.notUnderstood('answered with an empty stream')
      const missing = normaliser.missingFinish()
      return missing ? [missing] : []
    },
  }
}

/** Groq reports an error during a stream beside the choices. */
export const hasHiddenError = (payload: Record<string, unknown>): boolean =>
  payload.x_groq !== undefined && isRecord(payload.x_groq) && holdsError(payload.x_groq)
