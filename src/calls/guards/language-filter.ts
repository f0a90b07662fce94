/** A text of a stream that passes a guard of languages: by its last 1,000 characters, part by part. */
import type { TextFilter } from './text-filter.ts'

const WINDOW_CHARACTERS = 1_000
/** Held back until it is judged. */
const PART_CHARACTERS = 200
const FENCES = /```|~~~/g

export class LanguageFilter implements TextFilter {
  readonly #check: (window: string, isCode: boolean) => void
  readonly #holds: boolean
  #window = ''
  #part = ''
  /** Whether the window begins within a block of code. */
  #isCode = false

  /** `check` throws Blocked. `holds`: what was sent must have passed. */
  constructor(check: (window: string, isCode: boolean) => void, holds: boolean) {
    this.#check = check
    this.#holds = holds
  }

  push(piece: string): string {
    this.#part += piece
    if (this.#part.length < PART_CHARACTERS) return this.#holds ? '' : piece
    const part = this.#passed()
    return this.#holds ? part : piece
  }

  end(): string {
    const part = this.#passed()
    return this.#holds ? part : ''
  }

  #passed(): string {
    const part = this.#part
    this.#part = ''
    const text = this.#window + part
    this.#check(text, this.#isCode)
    let cut = Math.max(0, text.length - WINDOW_CHARACTERS)
    // A fence is not cut.
    while (cut > 0 && text[cut - 1] === text[cut] && '`~'.includes(text[cut] ?? '')) cut--
    if ((text.slice(0, cut).match(FENCES)?.length ?? 0) % 2 === 1) this.#isCode = !this.#isCode
    this.#window = text.slice(cut)
    return part
  }
}
