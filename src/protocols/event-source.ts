/** Reads a response that arrives as events. */

import { createSseParser, type SseEvent, type SseParser, SseTooLong } from '../kit/sse.ts'
import { GatewayError } from '../spec/error.ts'
import type { ByteSource, Faults } from './upstream.ts'

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

/** The next bytes; undefined at the end, which is also a connection that breaks once the response is finished. */
export async function readNext(answer: ByteSource, isFinished: () => boolean): Promise<Uint8Array | undefined> {
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
