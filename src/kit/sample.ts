/** What is kept of a text to estimate its tokens: its beginning and its length, so that no text costs much to count. */
import type { Tokenizer } from './tokenizer.ts'

export type Sample = {
  add(text: string): void
  /** The same of text that stands within the quotes of JSON, one sign a byte (latin1); it is read when it is counted. */
  addRaw(text: string): void
  /** How many tokens all that was added has; beyond what is kept, as many as the beginning lets one expect. */
  tokens(tokenizer: Tokenizer): Promise<number>
}

/** Far more than nearly all answers have; a stream without end must not stay in memory. */
export const KEPT_CHARACTERS = 200_000

/** So many raw pieces become one: each may be a small part of a large text, which would stay in memory for it. */
const GATHERED = 8

export function createSample(): Sample {
  let pieces: string[] = []
  let raw: string[] = []
  let kept = 0
  let length = 0

  const readRaw = () => {
    if (raw.length > 0) pieces.push(unquoted(raw.join('')))
    raw = []
  }
  return {
    add(text) {
      length += text.length
      if (kept >= KEPT_CHARACTERS) return
      readRaw()
      pieces.push(text)
      kept += text.length
    },
    addRaw(text) {
      length += text.length
      if (kept >= KEPT_CHARACTERS) return
      raw.push(text)
      kept += text.length
      if (raw.length >= GATHERED) readRaw()
    },
    async tokens(tokenizer) {
      readRaw()
      const text = pieces.join('').slice(0, KEPT_CHARACTERS)
      pieces = [text]
      const [counted = 0] = await tokenizer.count([text])
      return length <= KEPT_CHARACTERS ? counted : Math.round((counted * length) / KEPT_CHARACTERS)
    },
  }
}

function unquoted(raw: string): string {
  const text = Buffer.from(raw, 'latin1').toString()
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`)
  } catch {
    return text
  }
}
