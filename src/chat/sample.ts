/** What is kept of a text to estimate its tokens: its beginning and its length, so that no text costs much to count. */
import type { Tokenizer } from '../kit/tokenizer.ts'

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
      const counts = await tokenizer.count(text === '' ? [] : inShortRuns(text))
      const counted = counts.reduce((sum, count) => sum + count, 0)
      return length <= KEPT_CHARACTERS ? counted : Math.round((counted * length) / KEPT_CHARACTERS)
    },
  }
}

/**
 * A run of this many characters without a space (Chinese, base64), or of nothing but spaces. What a run costs grows
 * with its length squared: one of 200,000 characters takes minutes, four hundred of 500 a few milliseconds.
 */
const LONG_RUN = /\S{500}|\s{500}/g

/** The text cut after every long run, which adds a token at most. */
function inShortRuns(text: string): string[] {
  const parts: string[] = []
  let start = 0
  for (const { 0: run, index } of text.matchAll(LONG_RUN)) {
    const end = index + run.length
    parts.push(text.slice(start, end))
    start = end
  }
  if (start < text.length) parts.push(text.slice(start))
  return parts
}
