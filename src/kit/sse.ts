/** Server-sent events from bytes that may be cut anywhere (WHATWG HTML, section 9.2): read, or kept as they came. */

export type SseEvent = { event: string; data: string }

export type SseParser = {
  /** The events that these bytes complete. Throws `SseTooLong` when one event grows past the limit. */
  push(bytes: Uint8Array): SseEvent[]
  /** At the end of the body: the event that was not closed by an empty line, if it has data. */
  end(): SseEvent[]
}

export class SseTooLong extends Error {}

/** One event may hold a whole image in base64, but not all of memory. */
const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024

/** Accepts BOM, LF, CRLF and CR line ends, `data:` with and without a space, comments, and data over several lines. */
export function createSseParser(limit = MAX_EVENT_CHARACTERS): SseParser {
  const decoder = new TextDecoder() // drops a leading BOM by itself
  let rest = ''
  let data: string | undefined
  let event = ''
  let size = 0
  let afterCarriageReturn = false

  /** Takes the line between two places of the text; only its value is copied. */
  function line(text: string, from: number, to: number, out: SseEvent[]): void {
    if (from === to) {
      if (data !== undefined) out.push({ event, data })
      data = undefined
      event = ''
      size = 0
      return
    }
    size += to - from
    if (size > limit) throw new SseTooLong(`an event of more than ${limit} characters`)
    if (text.startsWith('data:', from)) {
      const value = text.slice(text.charCodeAt(from + 5) === 32 ? from + 6 : from + 5, to)
      data = data === undefined ? value : `${data}\n${value}`
    } else if (text.startsWith('event:', from)) {
      event = text.slice(text.charCodeAt(from + 6) === 32 ? from + 7 : from + 6, to)
    } else if (to - from === 4 && text.startsWith('data', from)) data = data === undefined ? '' : `${data}\n`
  }

  function read(text: string, out: SseEvent[]): void {
    if (afterCarriageReturn && text !== '') {
      if (text.charCodeAt(0) === 10) text = text.slice(1)
      afterCarriageReturn = false
    }
    // What was kept holds no line end, so only the new text is searched: no quadratic rescans of a long line.
    let searched = rest.length
    const buffer = rest + text
    let start = 0
    const hasCarriageReturn = text.includes('\r')
    for (;;) {
      let end = buffer.indexOf('\n', searched)
      let next = end + 1
      if (hasCarriageReturn) {
        const cr = buffer.indexOf('\r', searched)
        if (cr !== -1 && (end === -1 || cr < end)) {
          end = cr
          next = cr + 1
          if (next === buffer.length) afterCarriageReturn = true
          else if (buffer.charCodeAt(next) === 10) next++
        }
      }
      if (end === -1) break
      line(buffer, start, end, out)
      start = next
      searched = next
    }
    rest = start === 0 ? buffer : buffer.slice(start)
    if (rest.length + size > limit) throw new SseTooLong(`an event of more than ${limit} characters`)
  }

  return {
    push(bytes) {
      const out: SseEvent[] = []
      read(decoder.decode(bytes, { stream: true }), out)
      return out
    },
    end() {
      const out: SseEvent[] = []
      read(decoder.decode(), out)
      if (rest !== '') line(rest, 0, rest.length, out)
      rest = ''
      line('', 0, 0, out)
      return out
    },
  }
}

type SseBlocks = {
  /**
   * The whole events that these bytes complete, as text of one sign a byte (latin1): each with the empty line that ends
   * it, line ends as LF, otherwise as it came. Throws `SseTooLong`.
   */
  push(bytes: Uint8Array): string
  /** At the end of the body: the event that was not closed by an empty line; '' where there is none. */
  end(): string
}

/** A byte order mark, one sign a byte. */
const MARK = '\u00ef\u00bb\u00bf'

/** For events that pass as they are: nothing is decoded, so every byte comes out as it went in. */
export function createSseBlocks(limit = MAX_EVENT_CHARACTERS): SseBlocks {
  let rest = ''
  let begun = false
  let afterCarriageReturn = false

  function withLineFeeds(text: string): string {
    const read = afterCarriageReturn && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') afterCarriageReturn = false
    if (!read.includes('\r')) return read
    afterCarriageReturn = read.endsWith('\r')
    return read.replaceAll('\r\n', '\n').replaceAll('\r', '\n')
  }

  /** All but a mark at the very start, which may come in pieces. */
  function withoutMark(text: string): string {
    const start = rest + text
    rest = ''
    if (start.length < MARK.length && MARK.startsWith(start)) {
      rest = start
      return ''
    }
    begun = true
    return start.startsWith(MARK) ? start.slice(MARK.length) : start
  }

  return {
    push(bytes) {
      const came = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
      const text = withLineFeeds(begun ? came : withoutMark(came))
      // What was kept holds no end of an event, so only the new text is searched: no quadratic rescans of a long one.
      const isClosing = rest.endsWith('\n') && text.startsWith('\n')
      const last = text.endsWith('\n\n') ? text.length - 2 : text.lastIndexOf('\n\n')
      if (last === -1 && !isClosing) {
        rest += text
        if (rest.length > limit) throw new SseTooLong(`an event of more than ${limit} characters`)
        return ''
      }
      const end = last === -1 ? 1 : last + 2
      const whole = rest + text.slice(0, end)
      rest = text.slice(end)
      if (rest.length > limit) throw new SseTooLong(`an event of more than ${limit} characters`)
      return whole
    },
    end() {
      const left = rest.replace(/\n+$/, '') // the line ends that came without the empty line after them
      rest = ''
      return left === '' ? '' : `${left}\n\n`
    },
  }
}

/** One event's block, its lines joined again to what they say. Undefined where it says nothing: comments, blank lines. */
export function readSseBlock(block: string): { event: string; data: string; isPlain: boolean } | undefined {
  let event = ''
  let data: string | undefined
  let isPlain = true
  for (const line of block.split('\n')) {
    if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === 32 ? 6 : 5)
      isPlain &&= data === undefined
      data = data === undefined ? value : `${data}\n${value}`
    } else if (line.startsWith('event:')) event = line.slice(line.charCodeAt(6) === 32 ? 7 : 6)
    else if (line !== '') {
      isPlain = false
      if (line === 'data') data = data === undefined ? '' : `${data}\n`
    }
  }
  return data === undefined ? undefined : { event, data, isPlain }
}
