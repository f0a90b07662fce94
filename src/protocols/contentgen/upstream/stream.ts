/** Decodes a streamed contentgen response, and detects whether it is complete. */
import { isRecord, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatChunk } from '../../shared/canonical.ts'
import { type ChunkDecoder, payloadOf } from '../../shared/chunk-stream.ts'
import { holdsError } from '../../shared/upstream.ts'
import type { AnswerReader, ContentgenFaults } from './answer.ts'
import { ARGUMENTS } from './candidate.ts'

/** A limit for an error that arrives in a stream without the form of an event. Such an error is short. */
const MAX_TAIL_BYTES = 64 * 1024

export function createChunkDecoder(reader: AnswerReader, faults: ContentgenFaults): ChunkDecoder {
  /** The bytes since the last event, including it. */
  let tail: Uint8Array[] = []
  return {
    isFinished: reader.isFinished,
    take(events, bytes) {
      if (bytes) tail = events.length > 0 ? [bytes] : extendTail(tail, bytes)
      const chunks: ChatChunk[] = []
      const parts = { faults, atEnd: !bytes, exact: ARGUMENTS }
      try {
        for (const event of events) {
          const payload = payloadOf(event, parts)
          if (payload instanceof GatewayError) throw payload
          if (payload) chunks.push(...reader.take(payload))
        }
      } catch (failure) {
        return { chunks, failure, isDone: true }
      }
      return { chunks, isDone: false }
    },
    end() {
      if (!reader.isFinished()) {
        const error = errorIn(Buffer.concat(tail).toString())
        if (error !== undefined) throw faults.inAnswer(error)
      }
      return reader.end()
    },
  }
}

function extendTail(tail: Uint8Array[], bytes: Uint8Array): Uint8Array[] {
  const size = tail.reduce((sum, piece) => sum + piece.length, bytes.length)
  if (size > MAX_TAIL_BYTES) return [bytes]
  tail.push(bytes)
  return tail
}

/** The provider may end a stream with an error as bare JSON, possibly in a list, instead of an event. */
export function errorIn(text: string): unknown {
  const start = text.search(/^[[{]/m) // a line that starts with JSON; events start with "data:"
  const payload = start === -1 ? undefined : parseJson(text.slice(start))
  const body: unknown = Array.isArray(payload) ? payload[0] : payload
  return isRecord(body) && holdsError(body) ? body : undefined
}
