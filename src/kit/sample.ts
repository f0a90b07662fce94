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

export const createSample = (): Sample => new StoredSample()

class StoredSample implements Sample {
  #pieces: string[] = []
  #raw: Buffer | undefined
  #rawLength = 0
  #stored = 0
  #length = 0

  add(text: string): void {
    this.#length += text.length
    if (this.#stored >= MAX_SAMPLE_CHARACTERS) return
    this.#readRaw()
    this.#pieces.push(text)
    this.#stored += text.length
  }

  addRaw(text: string): void {
    this.#length += text.length
    if (this.#stored >= MAX_SAMPLE_CHARACTERS) return
    this.#raw = withCapacity(this.#raw, { used: this.#rawLength, more: text.length })
    this.#rawLength += this.#raw.write(text, this.#rawLength, 'latin1')
    this.#stored += text.length
  }

  async tokens(tokenizer: Tokenizer): Promise<number> {
    this.#readRaw()
    const text = this.#pieces.join('').slice(0, MAX_SAMPLE_CHARACTERS)
    this.#pieces = [text]
    const [counted = 0] = await tokenizer.count([text])
    return this.#length <= MAX_SAMPLE_CHARACTERS
      ? counted
      : Math.round((counted * this.#length) / MAX_SAMPLE_CHARACTERS)
  }

  #readRaw(): void {
    if (this.#raw && this.#rawLength > 0) this.#pieces.push(unquoted(this.#raw.toString('utf8', 0, this.#rawLength)))
    this.#rawLength = 0
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
