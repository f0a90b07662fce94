/** Decodes the events of a protocol whose stream ends with a finish reason, and perhaps with an event of its own. */

import type { JsonRecord } from '../kit/json.ts'
import { GatewayError } from '../spec/error.ts'
import type { ChatChunk } from './canonical.ts'
import type { ChunkDecoder } from './chunk-stream.ts'
import { payloadOf } from './event-payload.ts'
import type { Faults } from './upstream.ts'

export type EventReader = {
  /** The chunk for one event; undefined if the event has no content. */
  take(event: JsonRecord): ChatChunk | undefined
  /** Whether the provider has sent a finish reason. */
  isFinished(): boolean
  /** Whether the provider has sent its last event. */
  isDone(): boolean
  /** Whether the response has ended without any output. */
  isEmpty?(): boolean
  /** Whether an event is an error in a form that is specific to this protocol. */
  isFailure?(event: JsonRecord): boolean
  /** The members with arguments of tools, whose numbers keep their digits. */
  exact?: readonly string[]
}

export function createEventDecoder(reader: EventReader, faults: Faults): ChunkDecoder {
  const isFailure =
    reader.isFailure && ((read: JsonRecord, event: string) => reader.isFailure?.(typed(read, event)) === true)
  return {
    isFinished: reader.isFinished,
    take(events, bytes) {
      const chunks: ChatChunk[] = []
      const parts = { faults, atEnd: !bytes, isFailure, exact: reader.exact }
      let failure: GatewayError | undefined
      for (const event of events) {
        const read = payloadOf(event, parts)
        if (read instanceof GatewayError) failure = read
        else {
          const chunk = read && reader.take(typed(read, event.event))
          if (chunk) chunks.push(chunk)
        }
        if (failure || reader.isDone()) break
      }
      if (reader.isEmpty?.()) throw faults.notUnderstood('answered with an empty response')
      const isDone = failure !== undefined || reader.isDone()
      return { chunks, failure: reader.isFinished() ? undefined : failure, isDone }
    },
    end() {
      if (!reader.isFinished()) throw faults.cut()
      return []
    },
  }
}

/** Some imitations of an API name the type only in `event:`. */
const typed = (payload: JsonRecord, event: string): JsonRecord =>
  payload.type === undefined ? { ...payload, type: event } : payload
