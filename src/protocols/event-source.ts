/** Reads a response that arrives as events, and detects whether it is complete. */

import type { JsonRecord } from '../kit/json.ts'
import { createSseParser, type SseEvent, type SseParser, SseTooLong } from '../kit/sse.ts'
import { GatewayError } from '../spec/error.ts'
import type { ChatChunk } from './canonical.ts'
import { payloadOf } from './event-payload.ts'
import type { ByteSource, Faults } from './upstream.ts'

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

/** The chunks, one batch for each read. Throws if the body ends before the provider sent a finish reason. */
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
      const read = payloadOf(event, { faults, atEnd: !bytes, isFailure, exact: reader.exact })
      if (read instanceof GatewayError) failure = read
      const chunk =
        read === undefined || read instanceof GatewayError ? undefined : reader.take(typed(read, event.event))
      if (chunk) chunks.push(chunk)
      if (failure || reader.isDone()) break
    }
    if (reader.isEmpty?.()) throw faults.notUnderstood('answered with an empty response')
    if (chunks.length > 0) yield chunks
    if (failure && !reader.isFinished()) throw failure
    if (!bytes || failure || reader.isDone()) break
  }
  if (!reader.isFinished()) throw faults.cut()
}

/** Some imitations of an API name the type only in `event:`. */
const typed = (payload: JsonRecord, event: string): JsonRecord =>
  payload.type === undefined ? { ...payload, type: event } : payload

type SourceParts = {
  answer: ByteSource
  faults: Faults
  /** Whether the provider has sent a finish reason. If so, a broken or silent connection counts as the end. */
  isFinished?: () => boolean
  /** The longest event in characters, if not the default. */
  limit?: number
}

/** Returns the events of one read. Without bytes, they are the last events. */
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
