/** Stores the beginning and the length of a text, from which its tokens are estimated at a bounded cost. */
import type { Tokenizer } from './tokenizer.ts'

export type Sample = {
  add(text: string): void
  /** The same for the content of a JSON string in latin1, one character per byte; decoded when it is counted. */
  addRaw(text: string): void
  /** The token count of all added text; beyond the stored beginning it is extrapolated. */
  tokens(tokenizer: Tokenizer): Promise<number>
}

/** Far more than nearly all responses have; an endless stream must not fill memory. */
export const MAX_SAMPLE_CHARACTERS = 200_000

/** Initial capacity for raw pieces. They are copied, because a small slice would keep its large text in memory. */
const RAW_BYTES = 256

export function createSample(): Sample {
  let pieces: string[] = []
  let raw: Buffer | undefined
  let rawLength = 0
  let stored = 0
  let length = 0

  const readRaw = () => {
    if (raw && rawLength > 0) pieces.push(unquoted(raw.toString('utf8', 0, rawLength)))
    rawLength = 0
  }
  return {
    add(text) {
      length += text.length
      if (stored >= MAX_SAMPLE_CHARACTERS) return
      readRaw()
      pieces.push(text)
      stored += text.length
    },
    addRaw(text) {
      length += text.length
      if (stored >= MAX_SAMPLE_CHARACTERS) return
      raw = withCapacity(raw, { used: rawLength, more: text.length })
      rawLength += raw.write(text, rawLength, 'latin1')
      stored += text.length
    },
    async tokens(tokenizer) {
      readRaw()
      const text = pieces.join('').slice(0, MAX_SAMPLE_CHARACTERS)
      pieces = [text]
      const [counted = 0] = await tokenizer.count([text])
      return length <= MAX_SAMPLE_CHARACTERS ? counted : Math.round((counted * length) / MAX_SAMPLE_CHARACTERS)
    },
  }
}

/** The same bytes with capacity for more; it doubles, so that few bytes are copied twice. */
function withCapacity(raw: Buffer | undefined, { used, more }: { used: number; more: number }): Buffer {
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
