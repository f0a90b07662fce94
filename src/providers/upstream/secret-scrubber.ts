/** Replaces the secrets of one provider in its responses: in text, in bytes that arrive in pieces, in deltas. */
import { formsOf } from './secret-forms.ts'

export type SecretScrubber = {
  /** All that `text` replaces, so that most texts are only searched. */
  readonly forms: readonly string[]
  text(text: string): string
  /** For one body. A secret is found however its bytes are split over reads. */
  body(): BodyScrubber
  /** For one stream of deltas. */
  deltas(): DeltaWatch
}

export type BodyScrubber = {
  /**
   * How many of these bytes to push next; undefined: all. After bytes that are held back only the rest of their line, so
   * that no more is copied to join them.
   */
  takes(bytes: Uint8Array): number | undefined
  /** Returns the bytes that may pass now; empty while they could be the beginning of a secret. */
  push(bytes: Uint8Array): Uint8Array
  /** Returns the bytes that were held back. */
  end(): Uint8Array
}

export type DeltaWatch = {
  /** Whether this text, appended to the earlier ones, completes half of a secret. */
  completes(text: string): boolean
}

const REDACTED = '[redacted]'
const REDACTED_BYTES = Buffer.from(REDACTED)
const LINE_FEED = 10
const NOTHING = new Uint8Array(0)
/** Deltas are watched for the first half of a secret, but never for so few characters that it could be a common prefix. */
const MIN_WATCHED = 8

/** Returns undefined when there is no secret. */
export function createSecretScrubber(secrets: string[]): SecretScrubber | undefined {
  // The longest first: a form may be the beginning of another.
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((a, b) => b.length - a.length)
  if (forms.length === 0) return undefined
  const search = createSearch(forms.map((form) => Buffer.from(form)))
  const halves = forms.map((form) => form.slice(0, Math.max(MIN_WATCHED, Math.ceil(form.length / 2))))
  return {
    forms,
    text(text) {
      let clean = text
      for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, REDACTED)
      return clean
    },
    body: () => new SearchedBody(search),
    deltas: createDeltaSearch([...new Set(halves)]),
  }
}

/** Returns the same object when nothing has to be replaced. */
export function scrubHeaders(headers: Headers, scrubber: SecretScrubber | undefined): Headers {
  if (!scrubber) return headers
  let all = ''
  for (const [, value] of headers) all += `${value}\n`
  if (scrubber.text(all) === all) return headers
  const clean = new Headers()
  for (const [name, value] of headers) clean.append(name, scrubber.text(value))
  return clean
}

type Search = {
  /** Finds the first secret at or after `from`, the longest of those that begin there. */
  find(data: Uint8Array, from: number): { at: number; length: number } | undefined
  /** Returns where a secret may begin that continues beyond the end; the length of the data when none does. */
  openAt(data: Uint8Array): number
}

/**
 * Wu and Manber's search for several needles: two bytes give the distance to the next position worth checking, so most bytes
 * of a response are skipped. One search per needle took 60 to 260 ns per stream event, this one takes 15 ns for all.
 */
function createSearch(needles: Buffer[]): Search {
  const shortest = Math.min(...needles.map(({ length }) => length))
  const longest = Math.max(...needles.map(({ length }) => length))
  const shifts = new Uint8Array(65_536).fill(Math.min(255, shortest - 1))
  const isFirst = new Uint8Array(256)
  const isIn = new Uint8Array(256)
  for (const needle of needles) {
    isFirst[needle[0] ?? 0] = 1
    for (const byte of needle) isIn[byte] = 1
    for (let at = 1; at < shortest; at++) {
      const pair = ((needle[at - 1] ?? 0) << 8) | (needle[at] ?? 0)
      shifts[pair] = Math.min(shifts[pair] ?? 0, shortest - 1 - at)
    }
  }

  function needleAt(data: Uint8Array, at: number): number {
    if (isFirst[data[at] ?? 0] === 0) return 0
    for (const needle of needles) if (startsWith(data, at, needle) === needle.length) return needle.length
    return 0
  }

  return {
    find(data, from) {
      let last = from + shortest - 1
      while (last < data.length) {
        const shift = shifts[((data[last - 1] ?? 0) << 8) | (data[last] ?? 0)] ?? 0
        if (shift > 0) {
          last += shift
          continue
        }
        const at = last - shortest + 1
        const length = needleAt(data, at)
        if (length > 0) return { at, length }
        last++
      }
      return undefined
    },
    openAt(data) {
      const { length } = data
      // Events end with a line break, which no secret that can be sent in a header contains.
      if (length === 0 || isIn[data[length - 1] ?? 0] === 0) return length
      for (let at = Math.max(0, length - longest + 1); at < length; at++) {
        if (isFirst[data[at] ?? 0] === 0) continue
        for (const needle of needles) if (startsWith(data, at, needle) === length - at) return at
      }
      return length
    },
  }
}

/** How many bytes of the needle match there: all of them, all up to the end of the data, or -1. */
function startsWith(data: Uint8Array, at: number, needle: Buffer): number {
  const length = Math.min(needle.length, data.length - at)
  for (let index = 0; index < length; index++) if (data[at + index] !== needle[index]) return -1
  return length
}

class SearchedBody implements BodyScrubber {
  readonly #search: Search
  #held: Uint8Array = NOTHING

  constructor(search: Search) {
    this.#search = search
  }

  takes(bytes: Uint8Array): number | undefined {
    const end = this.#held.length === 0 ? 0 : bytes.indexOf(LINE_FEED) + 1
    return end === 0 || end === bytes.length ? undefined : end
  }

  push(bytes: Uint8Array): Uint8Array {
    const data = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    this.#held = NOTHING
    let secret = this.#search.find(data, 0)
    if (!secret) return this.#withoutOpen(data)
    let from = 0
    const pieces: Uint8Array[] = []
    for (; secret; secret = this.#search.find(data, from)) {
      pieces.push(data.subarray(from, secret.at), REDACTED_BYTES)
      from = secret.at + secret.length
    }
    return Buffer.concat([...pieces, this.#withoutOpen(data.subarray(from))])
  }

  /** Holds back what may be the beginning of a secret. */
  #withoutOpen(rest: Uint8Array): Uint8Array {
    const open = this.#search.openAt(rest)
    if (open === rest.length) return rest
    // A copy: the caller may reuse the memory of these bytes.
    this.#held = rest.slice(open)
    return rest.subarray(0, open)
  }

  end(): Uint8Array {
    const rest = this.#held
    this.#held = NOTHING
    return rest
  }
}

/** What all searches for the same texts share. */
type DeltaNeedles = {
  texts: string[]
  borders: Uint16Array[]
  /** Indexed by the low byte: another character with the same low byte only costs one more check. */
  isFirst: Uint8Array
}

function createDeltaSearch(texts: string[]): () => DeltaWatch {
  const isFirst = new Uint8Array(256)
  for (const text of texts) isFirst[text.charCodeAt(0) & 255] = 1
  const needles: DeltaNeedles = { texts, borders: texts.map(bordersOf), isFirst }
  return () => new SearchedDeltas(needles)
}

/** Knuth, Morris and Pratt's search for each of the texts, one character at a time. */
class SearchedDeltas implements DeltaWatch {
  readonly #needles: DeltaNeedles
  /** How much of each text has come; made with the first character that begins one. */
  #matched: Uint16Array | undefined
  #isOpen = false

  constructor(needles: DeltaNeedles) {
    this.#needles = needles
  }

  completes(delta: string): boolean {
    const { isFirst } = this.#needles
    for (let at = 0; at < delta.length; at++) {
      const code = delta.charCodeAt(at)
      if ((this.#isOpen || isFirst[code & 255] === 1) && this.#isHalf(code)) return true
    }
    return false
  }

  #isHalf(code: number): boolean {
    const { texts, borders } = this.#needles
    this.#matched ??= new Uint16Array(texts.length)
    const matched = this.#matched
    this.#isOpen = false
    for (let index = 0; index < texts.length; index++) {
      const text = texts[index] ?? ''
      let length = matched[index] ?? 0
      while (length > 0 && text.charCodeAt(length) !== code) length = borders[index]?.[length - 1] ?? 0
      if (text.charCodeAt(length) === code) length++
      matched[index] = length
      if (length === text.length) return true
      if (length > 0) this.#isOpen = true
    }
    return false
  }
}

/** For each prefix of the text: the length of its longest proper suffix that is also a prefix. */
function bordersOf(text: string): Uint16Array {
  const borders = new Uint16Array(text.length)
  for (let at = 1, length = 0; at < text.length; at++) {
    while (length > 0 && text.charCodeAt(at) !== text.charCodeAt(length)) length = borders[length - 1] ?? 0
    if (text.charCodeAt(at) === text.charCodeAt(length)) length++
    borders[at] = length
  }
  return borders
}
