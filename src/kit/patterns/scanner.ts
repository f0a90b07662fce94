/**
 * Finds matches in a text that arrives in pieces. A piece is passed on as soon as nothing in it can belong to a match any
 * more: only what may be the beginning of one is held back.
 */
import type { Automaton, State } from './automaton.ts'

/** In characters. A longer match is not found: the bound of what a stream holds back, and of the work for each character. */
const MAX_MATCH = 1024

/** A match: the pattern by its position, and the text. */
type Found = { pattern: number; text: string }
/** So many characters of the text, from where the last one ended. `found` absent: they belong to no match. */
export type Span = { length: number; found?: Found }

/** Where patterns match up to. */
type Ending = { at: number; patterns: readonly number[] }

/** Whether a text that a pattern matches counts, such as by its check digit. */
type Accepts = (pattern: number, text: string) => boolean

/** Leftmost matches; of those that begin at one place, the longest that counts. */
export class Scanner {
  readonly #automaton: Automaton
  readonly #accepts: Accepts
  /** What was not passed on yet. */
  #text = ''
  /** The code point before it. */
  #before: number | undefined
  /** Where the match may begin that is looked for, and how far that was read. */
  #from = 0
  #at = 0
  #state: State | undefined
  #ends: Ending[] = []

  constructor(automaton: Automaton, accepts: Accepts) {
    this.#automaton = automaton
    this.#accepts = accepts
  }

  /** How many characters are held back. */
  get held(): number {
    return this.#text.length
  }

  /** What is now known of the text so far. */
  push(piece: string): Span[] {
    this.#text += piece
    return this.#scan(false)
  }

  /** What is left, at the end of the text. */
  end(): Span[] {
    return this.#scan(true)
  }

  #scan(isEnd: boolean): Span[] {
    const text = this.#text
    // The second half of a character may follow.
    const length = !isEnd && isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length
    const spans: Span[] = []
    let clear = 0
    for (;;) {
      if (!this.#state && !this.#begin(text, length)) break
      if (!this.#follow(text, length)) {
        if (!isEnd) break
        this.#note(this.#at, (this.#state as State).end().accepts)
      }
      const found = this.#best(text)
      if (found) {
        if (this.#from > clear) spans.push({ length: this.#from - clear })
        spans.push({ length: found.text.length, found })
        clear = this.#from + found.text.length
        this.#from = clear
      } else this.#from += sizeAt(text, this.#from)
      this.#state = undefined
      this.#ends = []
    }
    if (this.#from > clear) spans.push({ length: this.#from - clear })
    this.#drop(this.#from)
    return spans
  }

  /** Whether a match may begin in the text, from where it is looked for. */
  #begin(text: string, length: number): boolean {
    let from = this.#from
    let before = from === 0 ? this.#before : codeBefore(text, from)
    while (from < length) {
      const code = text.codePointAt(from) as number
      const start = this.#automaton.start(before)
      if (start.edge(code).to) {
        this.#from = from
        this.#at = from
        this.#state = start
        return true
      }
      before = code
      from += code > 0xffff ? 2 : 1
    }
    this.#from = from
    return false
  }

  /** False: the text has ended before the match. */
  #follow(text: string, length: number): boolean {
    let state = this.#state as State
    let at = this.#at
    const last = this.#from + MAX_MATCH
    while (at < length) {
      const code = text.codePointAt(at) as number
      const { accepts, to } = state.edge(code)
      if (accepts.length > 0) this.#note(at, accepts)
      if (!to || at >= last) return true
      state = to
      at += code > 0xffff ? 2 : 1
    }
    this.#state = state
    this.#at = at
    return false
  }

  /** An empty match is none. */
  #note(at: number, patterns: readonly number[]): void {
    if (at > this.#from && patterns.length > 0) this.#ends.push({ at, patterns })
  }

  #best(text: string): Found | undefined {
    for (let index = this.#ends.length - 1; index >= 0; index--) {
      const { at, patterns } = this.#ends[index] as Ending
      const found = text.slice(this.#from, at)
      const pattern = patterns.find((one) => this.#accepts(one, found))
      if (pattern !== undefined) return { pattern, text: found }
    }
    return undefined
  }

  #drop(length: number): void {
    if (length === 0) return
    this.#before = codeBefore(this.#text, length)
    this.#text = this.#text.slice(length)
    this.#from = 0
    this.#at -= length
    if (this.#ends.length > 0) this.#ends = this.#ends.map(({ at, patterns }) => ({ at: at - length, patterns }))
  }
}

/** The matches of a whole text. */
export function findMatches(automaton: Automaton, text: string, accepts: Accepts): Span[] {
  const scanner = new Scanner(automaton, accepts)
  return [...scanner.push(text), ...scanner.end()]
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

const sizeAt = (text: string, at: number): number => ((text.codePointAt(at) as number) > 0xffff ? 2 : 1)

function codeBefore(text: string, at: number): number {
  const code = text.charCodeAt(at - 1)
  return isLowSurrogate(code) && at > 1 ? (text.codePointAt(at - 2) as number) : code
}
