/** Reads the lines of a JSONL file as its bytes arrive, with the place of each. */

/** `line` counts from 1. `bytes` is empty where the line is longer than the limit; `length` is what it has. */
export type RawLine = { line: number; offset: number; length: number; bytes: Uint8Array }

const NEWLINE = 0x0a
const RETURN = 0x0d

/** The lines of each piece of the body together; blank lines are left out. */
export async function* linesOf(
  body: ReadableStream<Uint8Array>,
  { max_line_bytes }: { max_line_bytes: number },
): AsyncGenerator<RawLine[]> {
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

  for await (const piece of body) {
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
    else if (rest.length > 0) held.push(rest.slice())
    if (lines.length > 0) yield lines
  }
  if (held_bytes > 0) {
    const found = take(NOTHING)
    if (found) yield [found]
  }
}

const NOTHING = new Uint8Array(0)

const isBlank = (bytes: Uint8Array): boolean => {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== RETURN) return false
  return true
}

/** A text on one line: outside of its strings JSON may be broken over lines, and inside of them it cannot be. */
export const oneLine = (json: string): string => (/[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json)
