/** Reads a streamed contentgen response, and detects whether it is complete. */

import { isRecord, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatChunk } from '../../canonical.ts'
import { payloadOf } from '../../event-payload.ts'
import { createEventSource } from '../../event-source.ts'
import { holdsError } from '../../provider-error.ts'
import type { ByteSource } from '../../upstream.ts'
import type { AnswerReader, ContentgenFaults } from './answer.ts'
import { ARGUMENTS } from './candidate.ts'

/** A limit for an error that arrives in a stream without the form of an event. Such an error is short. */
const MAX_TAIL_BYTES = 64 * 1024

/** The chunks, one batch for each read. Throws if the body ends before the provider sent a finish reason. */
export async function* readEvents(
  answer: ByteSource,
  reader: AnswerReader,
  faults: ContentgenFaults,
): AsyncGenerator<ChatChunk[]> {
  const next = createEventSource({ answer, faults, isFinished: reader.isFinished })
  /** The bytes since the last event, including it. */
  let tail: Uint8Array[] = []
  for (;;) {
    const { bytes, events } = await next()
    if (bytes) tail = events.length > 0 ? [bytes] : extendTail(tail, bytes)
    const chunks: ChatChunk[] = []
    let failure: unknown
    for (const event of events) {
      const payload = payloadOf(event, { faults, atEnd: !bytes, exact: ARGUMENTS })
      if (payload === undefined) continue
      if (payload instanceof GatewayError) {
        failure = payload
        break
      }
      try {
        chunks.push(...reader.take(payload))
      } catch (thrown) {
        failure = thrown
        break
      }
    }
    if (chunks.length > 0) yield chunks
    if (failure) throw failure
    if (!bytes) break
  }
  if (!reader.isFinished()) {
    const error = errorIn(Buffer.concat(tail).toString())
    if (error !== undefined) throw faults.inAnswer(error)
  }
  yield reader.end()
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
