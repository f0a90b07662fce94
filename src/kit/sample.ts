/** What is kept of a text to estimate its tokens: its beginning and its length, so that no text costs much to count. */
import type { Tokenizer } from './tokenizer.ts'

export type Sample = {
  add(text: string): void
  /** How many tokens all that was added has; beyond what is kept, as many as the beginning lets one expect. */
  tokens(tokenizer: Tokenizer): Promise<number>
}

/** Far more than nearly all answers have; a stream without end must not stay in memory. */
export const KEPT_CHARACTERS = 200_000

export function createSample(): Sample {
  let pieces: string[] = []
  let kept = 0
  let length = 0
  return {
    add(text) {
      length += text.length
      if (kept >= KEPT_CHARACTERS) return
      pieces.push(text)
      kept += text.length
    },
    async tokens(tokenizer) {
      const text = pieces.join('').slice(0, KEPT_CHARACTERS)
      pieces = [text]
      const [counted = 0] = await tokenizer.count([text])
      return length <= KEPT_CHARACTERS ? counted : Math.round((counted * length) / KEPT_CHARACTERS)
    },
  }
}
