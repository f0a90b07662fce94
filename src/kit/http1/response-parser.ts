/** Parses HTTP/1.1 responses (RFC 9112) strictly: what could be read in two ways is an error. */

/** `bytes` of the body follow through `body`; `is_reusable`: whether the connection may carry another request after it. */
export type ResponseHead = { status: number; headers: (readonly [name: string, value: string])[]; is_reusable: boolean }

type ParserEvents = {
  head(head: ResponseHead): void
  body(bytes: Uint8Array): void
  /** The response is complete. */
  end(): void
}

export type ResponseParser = {
  /** Parses what follows. Throws Http1Error; after that, and after `end`, it must not be called. */
  push(bytes: Buffer): void
  /** The connection was closed by the server. Throws Http1Error where the response is not complete. */
  close(): void
  /** Whether a byte of the response has arrived. */
  readonly has_started: boolean
}

export class Http1Error extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.name = 'Http1Error'
    this.code = code
  }
}

/** Bytes of a status line with its headers: four times what Node allows, since some vendors send long policies. */
export const MAX_HEAD_BYTES = 64 * 1024
export const MAX_HEADERS = 256
/** Interim responses before the final one. */
export const MAX_INTERIM = 16
/** A line with the size of a chunk, and its extensions, which are ignored. */
export const MAX_CHUNK_LINE_BYTES = 1024

const CR = 13
const LF = 10
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Control characters other than a tab. Bytes above 127 are latin1, as fetch reads them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused.
const BAD_VALUE = /[\0-\x08\x0a-\x1f\x7f]/
const CHUNK_SIZE = /^[0-9A-Fa-f]{1,13}$/

type State = 'head' | 'sized' | 'until_close' | 'chunk_line' | 'chunk' | 'chunk_end' | 'trailer' | 'ended'

export function createResponseParser({ method }: { method: string }, events: ParserEvents): ResponseParser {
  let state: State = 'head'
  /** Of an incomplete head or line: its first `held` bytes, which were searched for its end. It grows by doubling. */
  let pending: Buffer | undefined
  let held = 0
  let left = 0
  let interim = 0
  let trailer_bytes = 0
  let has_started = false
  /** Of the body, in the bytes that are being read: a read may bring many chunks, which are passed on together. */
  let parts: Buffer[] = []

  function passOn(): void {
    const [first] = parts
    if (!first) return
    const whole = parts.length === 1 ? first : Buffer.concat(parts)
    parts = []
    events.body(whole)
  }

  /** The bytes up to `end`, where the whole has arrived; the rest is in `rest`. Undefined: not yet. */
  function take(bytes: Buffer, terminator: string, limit: number): { taken: Buffer; rest: Buffer } | undefined {
    const before = held
    const all = before === 0 ? bytes : joined(bytes)
    const at = all.indexOf(terminator, Math.max(0, before - terminator.length + 1), 'latin1')
    if (at === -1 ? all.length >= limit + terminator.length : at > limit) {
      throw fault('HPE_HEADER_OVERFLOW', `sent a head or line of more than ${limit} bytes`)
    }
    if (at === -1) {
      if (before === 0) joined(bytes)
      return undefined
    }
    forget()
    return { taken: all.subarray(0, at), rest: all.subarray(at + terminator.length) }
  }

  /** What is held, with these bytes after it. */
  function joined(bytes: Buffer): Buffer {
    const length = held + bytes.length
    if (!pending || pending.length < length) {
      const larger = Buffer.allocUnsafe(Math.max(256, 2 * length))
      pending?.copy(larger, 0, 0, held)
      pending = larger
    }
    bytes.copy(pending, held)
    held = length
    return pending.subarray(0, held)
  }

  function forget(): void {
    pending = undefined
    held = 0
  }

  function head(bytes: Buffer): Buffer | undefined {
    const found = take(bytes, '\r\n\r\n', MAX_HEAD_BYTES)
    if (!found) return undefined
    const parsed = parseHead(found.taken.toString('latin1'))
    const { status } = parsed
    if (status < 200) {
      if (status === 101) throw fault('HPE_INVALID_UPGRADE', 'switched protocols unasked')
      if (++interim > MAX_INTERIM) throw fault('HPE_TOO_MANY_INTERIM', 'sent too many interim responses')
      return found.rest
    }
    const length = framingOf(parsed, method)
    const hasEnd = length !== 'until_close'
    events.head({ status, headers: parsed.headers, is_reusable: hasEnd && parsed.keepsAlive })
    if (length === 0) finish()
    else if (length === 'chunked') state = 'chunk_line'
    else if (length === 'until_close') state = 'until_close'
    else {
      left = length
      state = 'sized'
    }
    return found.rest
  }

  /** Passes at most `left` bytes on; the next state once none is left. */
  function sized(bytes: Buffer, next: State): Buffer {
    const part = bytes.length <= left ? bytes : bytes.subarray(0, left)
    left -= part.length
    if (left === 0) state = next
    parts.push(part)
    return bytes.subarray(part.length)
  }

  function chunkLine(bytes: Buffer): Buffer | undefined {
    const found = take(bytes, '\r\n', MAX_CHUNK_LINE_BYTES)
    if (!found) return undefined
    const line = found.taken.toString('latin1')
    const semicolon = line.indexOf(';')
    const size = (semicolon === -1 ? line : line.slice(0, semicolon)).replace(/[\t ]+$/, '')
    if (!CHUNK_SIZE.test(size) || BAD_VALUE.test(line)) throw fault('HPE_INVALID_CHUNK_SIZE', 'sent an invalid chunk')
    left = Number.parseInt(size, 16)
    state = left === 0 ? 'trailer' : 'chunk'
    return found.rest
  }

  /** The CRLF after a chunk. */
  function chunkEnd(bytes: Buffer): Buffer | undefined {
    const all = held === 0 ? bytes : joined(bytes)
    if (all[0] !== CR || (all.length > 1 && all[1] !== LF)) {
      throw fault('HPE_STRICT', 'sent a chunk that is longer than its size')
    }
    if (all.length === 1) {
      joined(all)
      return undefined
    }
    forget()
    state = 'chunk_line'
    return all.subarray(2)
  }

  /** Lines up to an empty one; trailers are checked and dropped. */
  function trailer(bytes: Buffer): Buffer | undefined {
    const found = take(bytes, '\r\n', MAX_HEAD_BYTES)
    if (!found) return undefined
    const { length } = found.taken
    if (length === 0) finish()
    else {
      trailer_bytes += length
      if (trailer_bytes > MAX_HEAD_BYTES) throw fault('HPE_HEADER_OVERFLOW', 'sent too many trailers')
      parseField(found.taken.toString('latin1'))
    }
    return found.rest
  }

  function finish(): void {
    state = 'ended'
    passOn()
    events.end()
  }

  function step(bytes: Buffer): Buffer | undefined {
    switch (state) {
      case 'head':
        return head(bytes)
      case 'sized': {
        const rest = sized(bytes, 'ended')
        if (left === 0) finish()
        return rest
      }
      case 'until_close':
        events.body(bytes)
        return undefined
      case 'chunk_line':
        return chunkLine(bytes)
      case 'chunk':
        return sized(bytes, 'chunk_end')
      case 'chunk_end':
        return chunkEnd(bytes)
      case 'trailer':
        return trailer(bytes)
      case 'ended':
        throw fault('HPE_CLOSED_CONNECTION', 'sent bytes after its response')
    }
  }

  return {
    push(bytes) {
      has_started ||= bytes.length > 0
      let rest: Buffer | undefined = bytes
      try {
        while (rest && rest.length > 0) rest = step(rest)
      } finally {
        passOn()
      }
    },
    close() {
      if (state === 'until_close') finish()
      else if (state !== 'ended') {
        throw fault(
          has_started ? 'HPE_INVALID_EOF_STATE' : 'ECONNRESET',
          'closed the connection before its response was complete',
        )
      }
    },
    get has_started() {
      return has_started
    },
  }
}

type Field = readonly [name: string, value: string]
type ParsedHead = { status: number; headers: Field[]; isOld: boolean; keepsAlive: boolean }

function parseHead(text: string): ParsedHead {
  const lines = text.split('\r\n')
  const [, minor, status] = STATUS_LINE.exec(lines[0] ?? '') ?? []
  if (status === undefined) throw fault('HPE_INVALID_STATUS', 'sent an invalid status line')
  if (lines.length - 1 > MAX_HEADERS) throw fault('HPE_HEADER_OVERFLOW', `sent more than ${MAX_HEADERS} headers`)
  const headers: Field[] = []
  let connection = ''
  for (let at = 1; at < lines.length; at++) {
    const field = parseField(lines[at] ?? '')
    if (field[0] === 'connection') connection += `,${field[1].toLowerCase()}`
    headers.push(field)
  }
  const isOld = minor === '0'
  const options = connection.split(',').map((option) => option.trim())
  const keepsAlive = isOld ? options.includes('keep-alive') : !options.includes('close')
  return { status: Number(status), headers, isOld, keepsAlive: keepsAlive && !options.includes('close') }
}

/** Short lines that were parsed before: most responses of a server have the same ones. */
const known = new Map<string, Field>()
const MAX_KNOWN = 512
const MAX_KNOWN_CHARACTERS = 100

/** The name in lower case, and the value without white space around it. */
function parseField(line: string): Field {
  const before = known.get(line)
  if (before) return before
  const field = parseNewField(line)
  if (line.length > MAX_KNOWN_CHARACTERS) return field
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(line, field)
  return field
}

function parseNewField(line: string): Field {
  const colon = line.indexOf(':')
  // A line that begins with white space continues the one before it (obs-fold): its name does not match.
  const name = line.slice(0, Math.max(0, colon))
  if (!NAME.test(name)) throw fault('HPE_INVALID_HEADER_TOKEN', 'sent an invalid header name')
  const value = line.slice(colon + 1)
  if (BAD_VALUE.test(value)) throw fault('HPE_INVALID_HEADER_TOKEN', 'sent an invalid header value')
  return [name.toLowerCase(), trimmed(value)]
}

/** Without spaces and tabs around it: `trim` would remove other characters too. */
function trimmed(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isSpace(value.charCodeAt(start))) start++
  while (end > start && isSpace(value.charCodeAt(end - 1))) end--
  return value.slice(start, end)
}

const isSpace = (code: number): boolean => code === 32 || code === 9

/** How the body ends (RFC 9112, section 6.3). Two statements that could disagree are an error. */
function framingOf({ status, headers, isOld }: ParsedHead, method: string): number | 'chunked' | 'until_close' {
  let length: number | undefined
  let coding: string | undefined
  for (const [name, value] of headers) {
    if (name === 'content-length') {
      const found = /^[0-9]{1,15}$/.test(value) ? Number(value) : undefined
      if (found === undefined || (length !== undefined && length !== found)) {
        throw fault('HPE_INVALID_CONTENT_LENGTH', 'sent an invalid or a second content-length')
      }
      length = found
    } else if (name === 'transfer-encoding') coding = coding === undefined ? value.toLowerCase() : `${coding},${value}`
  }
  if (coding !== undefined && (coding !== 'chunked' || length !== undefined || isOld)) {
    throw fault('HPE_INVALID_TRANSFER_ENCODING', 'sent a transfer-encoding that is unknown or beside a content-length')
  }
  if (method === 'HEAD' || status === 204 || status === 304) return 0
  if (coding !== undefined) return 'chunked'
  return length ?? 'until_close'
}

const fault = (code: string, message: string): Http1Error => new Http1Error(code, `The server ${message}.`)
