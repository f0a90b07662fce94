/** Reads lines of JSON (JSONL) while their bytes arrive. */
import { isUtf8 } from 'node:buffer'
import { collectAfter } from './collect-garbage.ts'
import { freeBytes } from './free-bytes.ts'

/** `line` counts from 1. `bytes` is empty where the line is longer than the limit; `length` is what it has. */
export type RawLine = { line: number; offset: number; length: number; bytes: Uint8Array }

type Splitter = {
  /** The lines that end in this piece, to be used before it is; blank lines are left out. */
  push(piece: Uint8Array): RawLine[]
  end(): RawLine[]
}

const NEWLINE = 0x0a
const RETURN = 0x0d
const NOTHING = new Uint8Array(0)

export function createLineSplitter({ max_line_bytes }: { max_line_bytes: number }): Splitter {
  let held: Uint8Array[] = []
  let held_bytes = 0
  let line = 1
  let offset = 0

  function take(end: Uint8Array): RawLine | undefined {
    const length = held_bytes + end.length
    const isTooLong = length > max_line_bytes
    const whole = isTooLong ? NOTHING : held.length === 0 ? end : Buffer.concat([...held, end])
    const bytes = whole.at(-1) === RETURN ? whole.subarray(0, -1) : whole
    const found = { line, offset, length: isTooLong ? length : bytes.length, bytes }
    held = []
    held_bytes = 0
    line++
    offset += length + 1
    return isTooLong || !isBlank(bytes) ? found : undefined
  }

  return {
    push(piece) {
      collectAfter(piece.length)
      const lines: RawLine[] = []
      let start = 0
      for (let at = piece.indexOf(NEWLINE); at !== -1; at = piece.indexOf(NEWLINE, start)) {
        const found = take(piece.subarray(start, at))
        if (found) lines.push(found)
        start = at + 1
      }
      const rest = piece.subarray(start)
      held_bytes += rest.length
      // The rest of a line that is too long is counted only.
      if (held_bytes > max_line_bytes) held = []
      else if (rest.length > 0) held.push(Uint8Array.from(rest))
      return lines
    },
    end() {
      const found = held_bytes > 0 ? take(NOTHING) : undefined
      return found ? [found] : []
    },
  }
}

/** The lines of each piece of the body together, to be used before the next ones. */
export async function* linesOf(
  body: ReadableStream<Uint8Array>,
  limits: { max_line_bytes: number },
): AsyncGenerator<RawLine[]> {
  const splitter = createLineSplitter(limits)
  for await (const piece of body) {
    const lines = splitter.push(piece)
    if (lines.length > 0) yield lines
    freeBytes(piece)
  }
  const last = splitter.end()
  if (last.length > 0) yield last
}

const isBlank = (bytes: Uint8Array): boolean => {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== RETURN) return false
  return true
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LEAST_LONG = 1_024
const ESCAPES = new Set(Buffer.from('"\\/bfnrtu'))

/**
 * A line with an empty string in place of each long one, whose value no check needs: two copies of each text of a large batch would
 * be collected late. Undefined: it is not JSON, by these strings.
 */
export function withoutLongStrings(bytes: Uint8Array): string | undefined {
  if (!isUtf8(bytes)) return undefined
  const pieces: Uint8Array[] = []
  let from = 0
  for (let start = bytes.indexOf(QUOTE); start !== -1; ) {
    const end = endOfString(bytes, start)
    if (end === -1) return undefined
    if (end - start > LEAST_LONG) {
      if (!isStringText(bytes, start + 1, end)) return undefined
      pieces.push(bytes.subarray(from, start + 1))
      from = end
    }
    start = bytes.indexOf(QUOTE, end + 1)
  }
  return utf8.decode(from === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(from)]))
}

/** The place of its closing quote; -1: there is none. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let first = end
    while (bytes[first - 1] === BACKSLASH) first--
    if ((end - first) % 2 === 0) return end
  }
  return -1
}

/** Whether all of it may stand in a string of JSON (RFC 8259, section 7). */
function isStringText(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte < 0x20) return false
    if (byte !== BACKSLASH) continue
    const escaped = bytes[++at] as number
    if (!ESCAPES.has(escaped)) return false
    if (escaped === LETTER_U && !HEX.test(latin1(bytes.subarray(at + 1, at + 5)))) return false
  }
  return true
}

const LETTER_U = 0x75
const HEX = /^[0-9a-fA-F]{4}$/
const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

const utf8 = new TextDecoder()
