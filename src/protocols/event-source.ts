/** An answer that comes as events, read to its true end. */

import type { JsonRecord } from '../kit/json.ts'
import { createSseParser, type SseEvent, type SseParser, SseTooLong } from '../kit/sse.ts'
import { GatewayError } from '../spec/error.ts'
import type { ChatChunk } from './canonical.ts'
import { payloadOf } from './event-payload.ts'
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
  const isFailure =
    reader.isFailure && ((read: JsonRecord, event: string) => reader.isFailure?.(typed(read, event)) === true)
  for (;;) {
    const { bytes, events } = await next()
    const chunks: ChatChunk[] = []
    let failure: GatewayError | undefined
    for (const event of events) {
      const read = payloadOf(event, { faults, atEnd: !bytes, isFailure })
      if (read instanceof GatewayError) failure = read
      const chunk =
        read === undefined || read instanceof GatewayError ? undefined : reader.take(typed(read, event.event))
      if (chunk) chunks.push(chunk)
      if (failure || reader.isDone()) break
    }
    if (chunks.length > 0) yield chunks
    if (failure && !reader.isFinished()) throw failure
    if (!bytes || failure || reader.isDone()) break
  }
  if (!reader.isFinished()) throw faults.cut()
}

/** Some imitators name the type in `event:` only. */
const typed = (payload: JsonRecord, event: string): JsonRecord =>
  payload.type === undefined ? { ...payload, type: event } : payload

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
    const bytes = await readNext(answer, isFinished)
    return { bytes, events: bytes ? eventsIn(parser, bytes, faults) : parser.end() }
  }
}

async function readNext(answer: ByteSource, isFinished: () => boolean): Promise<Uint8Array | undefined> {
  try {
    return await answer.read()
  } catch (error) {
    const isLost = error instanceof GatewayError && (error.code === 'upstream_cut' || error.code === 'upstream_timeout')
    if (isLost && isFinished()) return undefined
    throw error
  }
}

export function eventsIn(parser: SseParser, bytes: Uint8Array, faults: Faults): SseEvent[] {
  try {
    return parser.push(bytes)
  } catch (thrown) {
    if (thrown instanceof SseTooLong) throw faults.notUnderstood(`sent ${thrown.message}`)
    throw thrown
  }
}
