/** An answer that comes as events, read to its true end. */

import { isRecord, type JsonRecord, parseJson } from '../kit/json.ts'
import { createSseParser, type SseEvent, type SseParser, SseTooLong } from '../kit/sse.ts'
import type { ChatChunk } from '../spec/chat-completion.ts'
import { GatewayError } from '../spec/error.ts'
import { holdsError } from './provider-error.ts'
import type { ByteSource, Faults } from './upstream.ts'

export type EventReader = {
  /** The chunk for one event; undefined for one that says nothing. */
  take(event: JsonRecord): ChatChunk | undefined
  /** Whether the vendor has said why it ended. */
  isFinished(): boolean
  /** Whether it has said that nothing more comes. */
  isDone(): boolean
  /** Whether an event is an error, beside those that look like one at any vendor. */
  isFailure?(event: JsonRecord): boolean
}

/** The chunks of one read at a time. An end before the vendor said why it ended is none. */
export async function* readEvents(
  answer: ByteSource,
  reader: EventReader,
  faults: Faults,
): AsyncGenerator<ChatChunk[]> {
  const next = createEventSource({ answer, faults, isFinished: reader.isFinished })
  for (;;) {
    const { bytes, events } = await next()
    const chunks: ChatChunk[] = []
    let failure: GatewayError | undefined
    for (const event of events) {
      let read = payloadOf(event, faults, !bytes)
      if (read && !(read instanceof GatewayError) && reader.isFailure?.(read)) read = faults.inAnswer(read)
      if (read instanceof GatewayError) failure = read
      const chunk = read === undefined || read instanceof GatewayError ? undefined : reader.take(read)
      if (chunk) chunks.push(chunk)
      if (failure || reader.isDone()) break
    }
    if (chunks.length > 0) yield chunks
    if (failure && !reader.isFinished()) throw failure
    if (!bytes || failure || reader.isDone()) break
  }
  if (!reader.isFinished()) throw faults.cut()
}

type SourceParts = {
  answer: ByteSource
  faults: Faults
  /** Whether the vendor has said why it ended: then a connection that breaks or goes silent is an end like another. */
  isFinished?: () => boolean
  /** How many characters an event may have, where not as many as usual. */
  limit?: number
}

/** The events of one read at a time; without bytes those are the last. */
export function createEventSource({ answer, faults, isFinished = () => false, limit }: SourceParts) {
  const parser = createSseParser(limit)
  return async (): Promise<{ bytes: Uint8Array | undefined; events: SseEvent[] }> => {
    const bytes = await readOn(answer, isFinished)
    return { bytes, events: bytes ? eventsIn(parser, bytes, faults) : parser.end() }
  }
}

async function readOn(answer: ByteSource, isFinished: () => boolean): Promise<Uint8Array | undefined> {
  try {
    return await answer.read()
  } catch (error) {
    const isLost = error instanceof GatewayError && (error.code === 'upstream_cut' || error.code === 'upstream_timeout')
    if (isLost && isFinished()) return undefined
    throw error
  }
}

/** What an event holds: an object, or the error that it is; nothing for what is passed over. */
export function payloadOf(
  { event, data }: SseEvent,
  faults: Faults,
  atEnd: boolean,
): JsonRecord | GatewayError | undefined {
  // Imitators end as other vendors do, and keep connections alive with nothing.
  if (data === '' || data.trim() === '[DONE]') return undefined
  const payload = parseJson(data)
  if (!isRecord(payload)) {
    // At the end an event may be half there.
    if (payload === undefined && atEnd) return undefined
    return event === 'error' ? faults.inAnswer(data) : faults.notUnderstood('sent an event that is not a JSON object')
  }
  if (event === 'error' || holdsError(payload)) return faults.inAnswer(payload)
  return payload.type === undefined ? { ...payload, type: event } : payload
}

export function eventsIn(parser: SseParser, bytes: Uint8Array, faults: Faults): SseEvent[] {
  try {
    return parser.push(bytes)
  } catch (thrown) {
    if (thrown instanceof SseTooLong) throw faults.notUnderstood(`sent ${thrown.message}`)
    throw thrown
  }
}
