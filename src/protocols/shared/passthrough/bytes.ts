/** What passes unread is kept as text of one sign a byte (latin1): searched as text, and every byte comes out as it went in. */

import { type createSseBlocks, SseTooLong } from '../../../kit/sse.ts'
import type { PassthroughStep } from '../protocol.ts'
import type { Faults } from '../upstream.ts'

/** Such text as what it says. */
export const fromBytes = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()

/** The given text as latin1. */
export const toBytes = (text: string): string => Buffer.from(text).toString('latin1')

/** The whole events in some bytes. Throws where one is too long. */
export function pushed(blocks: ReturnType<typeof createSseBlocks>, bytes: Uint8Array, faults: Faults): string {
  try {
    return blocks.push(bytes)
  } catch (thrown) {
    if (thrown instanceof SseTooLong) throw faults.notUnderstood(`sent ${thrown.message}`)
    throw thrown
  }
}

export const nothingYet = (): PassthroughStep => ({ events: '', received: [], isDone: false })

/** Takes note of the texts of events that passed unread, and empties their list. */
export function receiveText(step: PassthroughStep, texts: string[]): void {
  if (texts.length === 0) return
  // Joined, they are a text of their own, and not a part of a larger one that stays in memory for it.
  step.received.push(texts.join(''))
  texts.length = 0
}
