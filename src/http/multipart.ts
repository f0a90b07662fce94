/** Reads a request body that may also be a form with files (RFC 7578), limited like any other body. */
import { memberOf } from '../kit/json.ts'
import { GatewayError } from '../spec/error.ts'
import { type BodyLimits, isJson, readBytes, readJson, wrongType } from './body.ts'

export type FormFile = { bytes: Uint8Array<ArrayBuffer>; content_type: string; filename: string }
/** In the order of the body; a name may occur more than once. */
export type FormPart = { name: string; value: string | FormFile }

export type Posted = { kind: 'json'; value: unknown } | { kind: 'form'; parts: FormPart[] }

/** A member of the JSON, or the last field of the form by that name; undefined where there is none. */
export const fieldOf = (posted: Posted, name: string): unknown =>
  posted.kind === 'json' ? memberOf(posted.value, name) : posted.parts.findLast((part) => part.name === name)?.value

/** More fields than any real form has; each costs many times its bytes. */
export const MOST_PARTS = 1_000
/** Of all fields together: what is large is sent as a file, which costs its bytes once. */
export const MOST_FIELD_BYTES = 32 * 1024 * 1024
/** Of the headers of one part; names of files are short. */
export const MOST_HEADER_BYTES = 8 * 1024

/** Throws unsupported_media_type, request_too_large, request_timeout, invalid_json, or invalid_value for a broken form. */
export async function readJsonOrForm(request: Request, limits: BodyLimits): Promise<Posted> {
  const type = request.headers.get('content-type') ?? ''
  if (isJson(type)) return { kind: 'json', value: await readJson(request, limits) }
  if (!isForm(type)) throw wrongType(type, 'application/json or multipart/form-data')
  return { kind: 'form', parts: partsOf(await readBytes(request, limits), type) }
}

/** The parts of a body that must be a form. Throws as `readJsonOrForm` does. */
export async function readForm(request: Request, limits: BodyLimits): Promise<FormPart[]> {
  const type = request.headers.get('content-type') ?? ''
  if (!isForm(type)) throw wrongType(type, 'multipart/form-data')
  return partsOf(await readBytes(request, limits), type)
}

/** The media type's name has any case, and may be followed by parameters, of which one is the boundary. */
export const isForm = (type: string): boolean => /^multipart\/form-data\s*(;|$)/i.test(type)

type Bytes = Uint8Array<ArrayBuffer>

/** Files are views of the bytes of the body. */
function partsOf(bytes: Bytes, type: string): FormPart[] {
  const boundary = boundaryOf(type)
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const delimiter = Buffer.from(`--${boundary}`)
  const between = Buffer.concat([CRLF, delimiter])
  let at = body.subarray(0, delimiter.length).equals(delimiter) ? delimiter.length : after(body, between, 0)
  const parts: FormPart[] = []
  const left = { field_bytes: MOST_FIELD_BYTES }
  for (;;) {
    if (at === -1) throw brokenForm(UNFINISHED)
    if (body.toString('latin1', at, at + 2) === '--') return parts
    const start = lineAfter(body, at)
    const end = start === -1 ? -1 : body.indexOf(between, start - CRLF.length)
    if (end === -1) throw brokenForm(UNFINISHED)
    if (parts.length === MOST_PARTS) {
      throw new GatewayError('invalid_value', `The form may have at most ${MOST_PARTS} parts.`)
    }
    parts.push(partIn(bytes, { start, end, left }))
    at = end + between.length
  }
}

export function boundaryOf(type: string): string {
  const [, quoted, plain = quoted] = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(type) ?? []
  if (plain === undefined) throw brokenForm('it names no boundary')
  return plain
}

const CRLF = Buffer.from('\r\n')
const UNFINISHED = 'it ends early, or its parts are not separated by its boundary'

function after(body: Buffer, found: Buffer, from: number): number {
  const at = body.indexOf(found, from)
  return at === -1 ? -1 : at + found.length
}

/** The start of the line after a delimiter, which only white space may follow; -1: there is none. */
function lineAfter(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 32 || body[at] === 9) at++
  return body[at] === 13 && body[at + 1] === 10 ? at + 2 : -1
}

/** `start`: of the headers. `end`: of the line break before the next delimiter. `left`: what the form may still have. */
type Place = { start: number; end: number; left: { field_bytes: number } }

function partIn(bytes: Bytes, { start, end, left }: Place): FormPart {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const hasHeaders = !body.subarray(start, start + 2).equals(CRLF)
  const headersEnd = hasHeaders ? body.indexOf('\r\n\r\n', start) : start - CRLF.length
  if (headersEnd === -1 || headersEnd > end || headersEnd - start > MOST_HEADER_BYTES) {
    throw brokenForm(`the headers of a part do not end, or have more than ${MOST_HEADER_BYTES} bytes`)
  }
  const { name, filename, content_type } = partHeaders(body.toString('utf8', start, Math.max(start, headersEnd)))
  const content = bytes.subarray(Math.min(headersEnd + 2 * CRLF.length, end), end)
  if (filename !== undefined) return { name, value: { bytes: content, content_type, filename } }
  left.field_bytes -= content.length
  if (left.field_bytes < 0) {
    const most = `The fields of a form may have at most ${MOST_FIELD_BYTES} bytes together, apart from its files.`
    throw new GatewayError('request_too_large', most)
  }
  return { name, value: new TextDecoder().decode(content) }
}

/** `filename` undefined: it is a field. */
export type PartHeaders = { name: string; filename: string | undefined; content_type: string }

export function partHeaders(lines: string): PartHeaders {
  const headers = lines.split('\r\n')
  const disposition = headerOf(headers, 'content-disposition')
  const parameters = parametersOf(disposition)
  const name = nameIn(parameters.get('name'))
  if (!/^form-data\s*(;|$)/i.test(disposition) || name === undefined) {
    throw brokenForm('a part has no header such as content-disposition: form-data; name="a"')
  }
  const filename = nameIn(parameters.get('filename')) ?? extendedName(parameters.get('filename*'))
  return { name, filename, content_type: headerOf(headers, 'content-type') }
}

function headerOf(headers: readonly string[], name: string): string {
  const line = headers.find((one) => one.slice(0, name.length + 1).toLowerCase() === `${name}:`)
  return line === undefined ? '' : line.slice(name.length + 1).trim()
}

/** In their order, so that what is in quotation marks is part of one parameter. */
const PARAMETER = /;\s*([\w*-]{1,40})=(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/g

/** As they are written, by their names in lower case. */
function parametersOf(header: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of header.matchAll(PARAMETER)) {
    const key = name.toLowerCase()
    if (!parameters.has(key)) parameters.set(key, quoted ?? plain)
  }
  return parameters
}

/** Quotation marks and line breaks in names are escaped with a percent sign by browsers, with a backslash by others. */
const nameIn = (written: string | undefined): string | undefined =>
  written?.replace(/\\(["\\])/g, '$1').replace(/%(22|0A|0D)/gi, (code) => decodeURIComponent(code))

/** A name beyond ASCII, as Python's `requests` writes it (RFC 5987): `filename*=utf-8''na%C3%AFve.mp3`. */
function extendedName(written = ''): string | undefined {
  const [, coded] = /^utf-8'[^']*'(.*)$/i.exec(written) ?? []
  if (coded === undefined) return undefined
  try {
    return decodeURIComponent(coded)
  } catch {
    return coded
  }
}

export const brokenForm = (why: string) =>
  new GatewayError('invalid_value', `The body is not a valid multipart form: ${why}.`)
