/** Server-sent events, read from bytes that may be cut anywhere (WHATWG HTML, section 9.2). */

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

  function line(text: string, out: SseEvent[]): void {
    if (text === '') {
      if (data !== undefined) out.push({ event, data })
      data = undefined
      event = ''
      size = 0
      return
    }
    size += text.length
    if (size > limit) throw new SseTooLong(`an event of more than ${limit} characters`)
    if (text.startsWith('data:')) {
      const value = text.slice(text.charCodeAt(5) === 32 ? 6 : 5)
      data = data === undefined ? value : `${data}\n${value}`
    } else if (text.startsWith('event:')) {
      event = text.slice(text.charCodeAt(6) === 32 ? 7 : 6)
    } else if (text === 'data') data = data === undefined ? '' : `${data}\n`
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
      line(buffer.slice(start, end), out)
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
      if (rest !== '') line(rest, out)
      rest = ''
      line('', out)
      return out
    },
  }
}
