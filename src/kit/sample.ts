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

/** Room for the first raw pieces. They are copied: each may be a small part of a large text, which would stay in memory. */
const RAW_BYTES = 256

export function createSample(): Sample {
  let pieces: string[] = []
  let raw: Buffer | undefined
  let rawLength = 0
  let kept = 0
  let length = 0

  const readRaw = () => {
    if (raw && rawLength > 0) pieces.push(unquoted(raw.toString('utf8', 0, rawLength)))
    rawLength = 0
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
      raw = withRoom(raw, { used: rawLength, more: text.length })
      rawLength += raw.write(text, rawLength, 'latin1')
      kept += text.length
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

/** The same bytes with room for some more; twice as much each time, so that few are copied twice. */
function withRoom(raw: Buffer | undefined, { used, more }: { used: number; more: number }): Buffer {
  if (raw && used + more <= raw.length) return raw
  const roomy = Buffer.allocUnsafeSlow(Math.max(RAW_BYTES, 2 * used, used + more))
  raw?.copy(roomy, 0, 0, used)
  return roomy
}

function unquoted(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`)
  } catch {
    return text
  }
}
