/**
 * Server-sent events from bytes that may be cut anywhere (WHATWG HTML, section 9.2), decoded or as they came; and the
 * escapes of events for clients.
 */

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

/**
 * Accepts BOM, LF, CRLF and CR line ends, `data:` with and without a space, comments, and data over several lines. Finds
 * whole events in the decoded text as `createSseBlocks` does, and reads their lines.
 */
export function createSseParser(limit = MAX_EVENT_CHARACTERS): SseParser {
  const decoder = new TextDecoder() // drops a leading BOM by itself
  const blocks = new Blocks(limit)
  return {
    push: (bytes) => eventsIn(blocks.push(decoder.decode(bytes, { stream: true })), limit),
    end: () => eventsIn([...blocks.push(decoder.decode()), blocks.end()], limit),
  }
}

function eventsIn(texts: readonly string[], limit: number): SseEvent[] {
  const events: SseEvent[] = []
  for (const text of texts) readInto(events, text, limit)
  return events
}

function readInto(events: SseEvent[], text: string, limit: number): void {
  for (let at = 0, end = 0; at < text.length; at = end + 2) {
    end = text.indexOf('\n\n', at)
    if (end - at > limit) throw tooLong(limit)
    const block = readBlock(text, at, end)
    if (block) events.push({ event: block.event, data: block.data })
  }
}

const LINE_FEED = 10
const NOTHING: readonly string[] = []
/** A byte order mark, one character per byte. */
const MARK = '\u00ef\u00bb\u00bf'

/**
 * For events that pass as they are, as latin1 text: one character per byte. Nothing is decoded, so every byte comes out
 * as it went in.
 */
export const createSseBlocks = (limit = MAX_EVENT_CHARACTERS): SseBlocks => new SseBlocks(limit)

class SseBlocks {
  readonly #blocks: Blocks
  /** The first bytes, which may be a part of a mark. */
  #start: string | undefined = ''

  constructor(limit: number) {
    this.#blocks = new Blocks(limit)
  }

  /** The whole events that these bytes complete, in one text or two. */
  push(bytes: Uint8Array): readonly string[] {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    return this.#blocks.push(this.#start === undefined ? text : this.#withoutMark(text))
  }

  end(): string {
    return this.#blocks.push(this.#start ?? '').join('') + this.#blocks.end()
  }

  /** All but a mark at the very start, which may come in pieces. */
  #withoutMark(text: string): string {
    const first = this.#start ? this.#start + text : text
    this.#start = first.length < MARK.length && MARK.startsWith(first) ? first : undefined
    if (this.#start !== undefined) return ''
    return first.startsWith(MARK) ? first.slice(MARK.length) : first
  }
}

/** Finds whole events in text that may be cut anywhere. */
class Blocks {
  readonly #limit: number
  #rest = ''
  #afterCarriageReturn = false

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * The whole events that this text completes: each with the empty line that ends it, line ends as LF, otherwise as it
   * came. The first one, where its beginning was stored, is a text of its own, so that the others are not copied. Throws
   * `SseTooLong`.
   */
  push(came: string): readonly string[] {
    const text = this.#withLineFeeds(came)
    const rest = this.#rest
    // What was stored holds no end of an event, so only the new text is searched: no quadratic rescans of a long one.
    const isClosing = rest.endsWith('\n') && text.startsWith('\n')
    const last = text.endsWith('\n\n') ? text.length - 2 : text.lastIndexOf('\n\n')
    const isWhole = last !== -1 || isClosing
    const end = last === -1 ? 1 : last + 2
    this.#rest = isWhole ? text.slice(end) : rest + text
    if (this.#rest.length > this.#limit) throw tooLong(this.#limit)
    if (!isWhole) return NOTHING
    if (rest === '') return [withOneEmptyLine(text.slice(0, end))]
    let first = isClosing ? 1 : text.indexOf('\n\n') + 2
    while (first < end && text.charCodeAt(first) === LINE_FEED) first++
    const completed = withOneEmptyLine(rest + text.slice(0, first))
    return first === end ? [completed] : [completed, withOneEmptyLine(text.slice(first, end))]
  }

  /** At the end of the body: the event that was not closed by an empty line; '' where there is none. */
  end(): string {
    const left = this.#rest.replace(/\n+$/, '') // the line ends that came without the empty line after them
    this.#rest = ''
    return left === '' ? '' : `${left}\n\n`
  }

  #withLineFeeds(text: string): string {
    const read = this.#afterCarriageReturn && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') this.#afterCarriageReturn = false
    if (!read.includes('\r')) return read
    this.#afterCarriageReturn = read.endsWith('\r')
    return read.replaceAll('\r\n', '\n').replaceAll('\r', '\n')
  }
}

/** Empty lines after the last event are dropped: readers search for the pair of line ends that closes each block. */
function withOneEmptyLine(blocks: string): string {
  let end = blocks.length
  while (blocks.charCodeAt(end - 3) === LINE_FEED) end--
  return end === blocks.length ? blocks : blocks.slice(0, end)
}

const tooLong = (limit: number) => new SseTooLong(`an event of more than ${limit} characters`)

/** `isPlain`: it consists of one line of data, and perhaps of the name of the event. */
type SseBlock = SseEvent & { isPlain: boolean }

/** The lines of one event's block. Undefined for a block without data: comments, blank lines. */
export const readSseBlock = (block: string): SseBlock | undefined => readBlock(block, 0, block.length)

/** Only values are copied. */
function readBlock(text: string, from: number, to: number): SseBlock | undefined {
  let event = ''
  let data: string | undefined
  let isPlain = true
  for (let at = from, end = from; at < to; at = end + 1) {
    const found = text.indexOf('\n', at)
    end = found === -1 || found > to ? to : found
    if (text.startsWith('data:', at)) {
      const value = text.slice(text.charCodeAt(at + 5) === 32 ? at + 6 : at + 5, end)
      isPlain &&= data === undefined
      data = data === undefined ? value : `${data}\n${value}`
    } else if (text.startsWith('event:', at)) {
      event = text.slice(text.charCodeAt(at + 6) === 32 ? at + 7 : at + 6, end)
    } else if (at !== end) {
      isPlain = false
      if (end - at === 4 && text.startsWith('data', at)) data = data === undefined ? '' : `${data}\n`
    }
  }
  return data === undefined ? undefined : { event, data, isPlain }
}

/**
 * Characters that JSON and event streams allow, but at which Python's `splitlines` ends a line. Clients that read
 * streams with it (httpx's `iter_lines`) would see half an event. JSON escapes the others itself.
 */
const LINE_ENDS = ['\u0085', '\u2028', '\u2029']

/** Searches for each character: without a match this takes nanoseconds, which a regular expression does not reach. */
export function inOneLine(events: string): string {
  let text = events
  for (const sign of LINE_ENDS) {
    if (text.includes(sign)) text = text.replaceAll(sign, `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
  }
  return text
}

/** U+0085, U+2028 and U+2029 in UTF-8, as latin1 text. JSON does not escape them, and some clients end a line there. */
const LINE_END_BYTES: Record<string, [bytes: string, escaped: string][]> = {
  '\u00c2': [['\u00c2\u0085', '\\u0085']],
  '\u00e2': [
    ['\u00e2\u0080\u00a8', '\\u2028'],
    ['\u00e2\u0080\u00a9', '\\u2029'],
  ],
}
const FIRST_BYTES = Object.entries(LINE_END_BYTES)

/** Escapes these characters in latin1 text. Searching for the first byte is fast. */
export function escapeLineEnds(events: string): string {
  let text = events
  for (const [first, ends] of FIRST_BYTES) {
    if (!events.includes(first)) continue
    for (const [bytes, escaped] of ends) if (text.includes(bytes)) text = text.replaceAll(bytes, escaped)
  }
  return text
}
