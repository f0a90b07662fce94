/** What passes unread is kept as text of one sign a byte (latin1): searched as text, and every byte comes out as it went in. */
import { type createSseBlocks, SseTooLong } from '../../kit/sse.ts'
import type { Faults } from '../../providers/provider.ts'
import type { PassthroughStep } from './dialect.ts'

/** Such text as what it says. */
export const fromBytes = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()

/** What is said as such text. */
export const toBytes = (text: string): string => Buffer.from(text).toString('latin1')

/** U+0085, U+2028 and U+2029 as they stand in UTF-8: JSON leaves them as they are, and some clients end a line there. */
const LINE_ENDS: Record<string, [bytes: string, escaped: string][]> = {
  '\u00c2': [['\u00c2\u0085', '\\u0085']],
  '\u00e2': [
    ['\u00e2\u0080\u00a8', '\\u2028'],
    ['\u00e2\u0080\u00a9', '\\u2029'],
  ],
}
const FIRST_BYTES = Object.entries(LINE_ENDS)

/** The same events with no line end in them that only some see. The first byte is looked for first: that is quick. */
export function escapeLineEnds(events: string): string {
  let text = events
  for (const [first, ends] of FIRST_BYTES) {
    if (!events.includes(first)) continue
    for (const [bytes, escaped] of ends) if (text.includes(bytes)) text = text.replaceAll(bytes, escaped)
  }
  return text
}

/** The whole events in some bytes. Throws where one is too long. */
export function pushed(blocks: ReturnType<typeof createSseBlocks>, bytes: Uint8Array, faults: Faults): string {
  try {
    return blocks.push(bytes)
  } catch (thrown) {
    if (thrown instanceof SseTooLong) throw faults.notUnderstood(`sent ${thrown.message}`)
    throw thrown
  }
}

export const nothingYet = (): PassthroughStep => ({ events: '', heard: [], isDone: false })

/** Takes note of the texts of events that passed unread, and empties their list. */
export function hear(step: PassthroughStep, said: string[]): void {
  if (said.length === 0) return
  // Joined, they are a text of their own, and not a part of a larger one that stays in memory for it.
  step.heard.push(said.join(''))
  said.length = 0
}
