/** Reads a request body: of the right media type, within its limits, and well-formed; and warns of misspelt fields. */
import type { TSchema } from 'typebox'
import type { ServerSettings } from '../config/config.ts'
import { type Clock, TimeLimited } from '../kit/clock.ts'
import { freeBytes } from '../kit/free-bytes.ts'
import {
  findingIn,
  isRecord,
  MAX_CONTAINERS,
  MAX_DEPTH,
  MAX_MEMBERS,
  MAX_NAMES,
  MAX_VALUES,
  parseRequestJson,
  TooManyRawNumbers,
} from '../kit/json.ts'
import { nearest } from '../kit/nearest.ts'
import { GatewayError } from '../spec/error.ts'
import type { Context } from './context.ts'
import { findJsonFault } from './json-fault.ts'

export type BodyLimits = {
  max_bytes: number
  seconds: number
  clock: Clock
  /** Counts bytes before they are read; throws where the gateway holds too many. Absent: they are not counted. */
  holder?: Pick<Context, 'hold'>
  /** The members of a JSON body below which numbers keep their digits; absent: none. */
  exact?: readonly string[] | undefined
  /** How many unused bytes the memory of a body has before and after it. Absent: none. */
  margin?: number
  /** Looked for in the text of a JSON body; absent: nothing. `is_found` is set where it, or an escape, is there. */
  sought?: string | undefined
  is_found?: true
}

/** What the bodies of a family mostly contain: text, or images and other media. */
type BodyContents = 'text' | 'media'

/** The limits of a request body as configured; read at each request, since a reload changes them. */
export function bodyLimits(
  holder: Pick<Context, 'hold'>,
  contents: BodyContents,
  { settings, clock, exact, sought }: { settings: ServerSettings } & Pick<BodyLimits, 'clock' | 'exact' | 'sought'>,
): BodyLimits {
  const { max_body_bytes, max_text_body_bytes, body_seconds } = settings
  const max_bytes = contents === 'text' ? Math.min(max_text_body_bytes, max_body_bytes) : max_body_bytes
  return { max_bytes, seconds: body_seconds, clock, holder, exact, sought }
}

/**
 * The parsed JSON body. Numbers below the members `exact` keep their digits, and integers beyond 2^53 everywhere. Rejects
 * with unsupported_media_type, request_too_large, request_timeout or invalid_json.
 */
export function readJson(request: Request, limits: BodyLimits): Promise<unknown> {
  const type = request.headers.get('content-type') ?? ''
  return isJson(type) ? arriving(request, limits, parseBody) : Promise.reject(wrongType(type, 'application/json'))
}

function parseBody(bytes: Bytes, limits: BodyLimits): unknown {
  const hasLarge = assertBounded(bytes)
  const text = decode(bytes)
  if (limits.sought !== undefined && (text.includes(limits.sought) || text.includes('\\u00'))) limits.is_found = true
  // At once: the collector would keep the bytes for as long as it likes, beside the text and its values.
  if (bytes.length > LARGE_BYTES) bytes.buffer.transfer(0)
  return parseText(text, hasLarge, limits.exact)
}

const LARGE_BYTES = 256 * 1024

export const isJson = (type: string): boolean =>
  type === 'application/json' || /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)

export function wrongType(type: string, right: string): GatewayError {
  const found = type === '' ? 'no content-type' : `"${type.slice(0, 100)}"`
  return new GatewayError('unsupported_media_type', `The body must be sent as ${right}, not ${found}.`)
}

/** The whole body, within its limits. Rejects with unsupported_media_type for a compressed body. */
export const readBytes = (request: Request, limits: BodyLimits): Promise<Bytes> =>
  arriving(request, limits, (bytes) => bytes)

type Bytes = Uint8Array<ArrayBuffer>
type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>
type Read<Value> = (bytes: Bytes, limits: BodyLimits) => Value

/** What `read` makes of the bytes once all have arrived. Rejects where they take too long or exceed a limit. */
function arriving<Value>(request: Request, limits: BodyLimits, read: Read<Value>): Promise<Value> {
  const arrival = new Arrival(request, limits, read)
  void arrival.follow()
  return arrival.result.promise
}

/** A body that arrives, in the time that it may take: one object for each. */
class Arrival<Value> extends TimeLimited {
  readonly #request: Request
  readonly #limits: BodyLimits
  readonly #read: Read<Value>
  readonly result = Promise.withResolvers<Value>()

  constructor(request: Request, limits: BodyLimits, read: Read<Value>) {
    super()
    this.#request = request
    this.#limits = limits
    this.#read = read
  }

  async follow(): Promise<void> {
    try {
      this.#arrived(await this.#reading())
    } catch (thrown) {
      this.stopTimer()
      this.result.reject(thrown)
    }
  }

  #reading(): Promise<Bytes> {
    const reading = readingOf(this.#request, this.#limits)
    this.startTimer(this.#limits.clock, this.#limits.seconds * 1000)
    return reading
  }

  #arrived(bytes: Bytes): void {
    this.stopTimer()
    if (bytes.length > this.#limits.max_bytes) throw tooLarge(this.#limits.max_bytes)
    this.result.resolve(this.#read(bytes, this.#limits))
  }

  protected timeIsUp(): void {
    this.result.reject(tooSlow(this.#limits))
  }
}

const tooSlow = ({ seconds }: BodyLimits): GatewayError =>
  new GatewayError('request_timeout', `The body did not arrive within ${seconds} s.`)

/** The bytes while they arrive. Throws for what the headers say of them. */
function readingOf(request: Request, { max_bytes, holder, margin = 0 }: BodyLimits): Promise<Bytes> {
  const { headers } = request
  const coding = headers.get('content-encoding')
  if (coding && coding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      `The body must not be compressed, but is "${coding.slice(0, 40)}".`,
    )
  }
  const length = Number(headers.get('content-length') ?? Number.NaN)
  if (length > max_bytes) throw tooLarge(max_bytes)
  // The server enforces an announced length; only a chunked body must be counted while it arrives.
  if (!Number.isFinite(length)) return countedBytes(request, { max_bytes, holder, margin })
  // Before any of it is read: a client that announces much and sends little holds its own token's share only.
  holder?.hold(length)
  return margin === 0 ? request.bytes() : bytesWithin(request.body ?? [], length, margin)
}

/** The bytes in memory of their own with a margin around them. Each piece is freed once it is copied. */
async function bytesWithin(pieces: Pieces, length: number, margin: number): Promise<Bytes> {
  const memory = new Uint8Array(length + 2 * margin)
  let at = margin
  for await (const piece of pieces) {
    memory.set(piece, at)
    at += piece.length
    freeBytes(piece)
  }
  return memory.subarray(margin, at)
}

const tooLarge = (max_bytes: number): GatewayError =>
  new GatewayError('request_too_large', `The body may have at most ${max_bytes} bytes.`)

type Counted = { max_bytes: number; holder: BodyLimits['holder']; margin: number }

async function countedBytes(request: Request, { max_bytes, holder, margin }: Counted): Promise<Bytes> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of request.body ?? []) {
    size += piece.length
    if (size > max_bytes) throw tooLarge(max_bytes)
    holder?.hold(piece.length)
    pieces.push(piece)
  }
  return bytesWithin(pieces, size, margin)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Without a byte order mark. A body that is not UTF-8 is refused: replacement characters would change its meaning. */
function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new GatewayError('invalid_json', 'The body is not valid JSON: it is not encoded in UTF-8.')
  }
}

/** The syntax error of a longer text is not located: the search would block other requests. */
const SEARCHED_CHARACTERS = 256 * 1024

/** The JSON of a message that is handled like a request. Throws as `readJson` does. */
export function parseMessage(data: string | Uint8Array, max_bytes: number): unknown {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  if (bytes.length > max_bytes)
    throw new GatewayError('request_too_large', `A message may have at most ${max_bytes} bytes.`)
  return parseJson(bytes)
}

/** Parses a body or a part of one, once it is known to be of bounded depth and of a bounded number of values. */
function parseJson(bytes: Uint8Array): unknown {
  const hasLarge = assertBounded(bytes)
  return parseText(decode(bytes), hasLarge)
}

function parseText(text: string, hasLarge: boolean, exact?: readonly string[]): unknown {
  try {
    return parseRequestJson(text, hasLarge, exact)
  } catch (thrown) {
    if (thrown instanceof TooManyRawNumbers)
      throw new GatewayError('request_too_large', `The body's JSON ${thrown.message}.`)
    throw new GatewayError('invalid_json', `The body is not valid JSON: ${faultOf(text)}.`)
  }
}

const MOST = {
  containers: `${MAX_CONTAINERS} objects and arrays`,
  names: `${MAX_NAMES} member names`,
  values: `${MAX_VALUES} values`,
  members: `${MAX_MEMBERS} members in one object`,
}

/**
 * Throws invalid_json for what is nested too deep, request_too_large for too many values; before it is parsed. Whether it
 * may hold a number beyond 2^53.
 */
export function assertBounded(bytes: Uint8Array): boolean {
  // Each level and each value takes two bytes, so a short text has too few of either.
  if (bytes.length <= 2 * MAX_DEPTH) return true
  const finding = findingIn(bytes)
  if (finding === undefined || finding === 'large number') return finding !== undefined
  if (finding === 'depth') {
    throw new GatewayError('invalid_json', `The body's JSON is nested deeper than ${MAX_DEPTH} levels.`)
  }
  throw new GatewayError('request_too_large', `The body's JSON may have at most ${MOST[finding]}.`)
}

function faultOf(text: string): string {
  if (text.trim() === '') return 'it is empty'
  if (text.length > SEARCHED_CHARACTERS) return 'it ends early, or has an unexpected character'
  const { line, column, expected, found } = findJsonFault(text)
  return `line ${line}, column ${column}: expected ${expected}, found ${found}`
}

/** Names the fields that are probably misspelt, and those that were probably meant. */
export const WARNING_HEADER = 'x-gatehouse-warning'

/** How many unknown fields of one body are compared; a body may have any number of them. */
const MAX_UNKNOWN = 8
/** Names that are worth comparing, and safe in a header. In a shorter name, one wrong letter makes another name. */
const COMPARABLE = /^[A-Za-z][A-Za-z0-9_]{2,39}$/
/** Fields of vendors that resemble a field of the gateway and mean something else. */
const OTHER_MEANING: Readonly<Record<string, string>> = {
  min_tokens: 'max_tokens',
  mode: 'model',
  models: 'model',
  speed: 'seed',
  task: 'mask',
  top_a: 'top_p',
  top_k: 'top_p',
}
/** How many unknown names of one API are remembered: clients send the same ones with each request. */
const MAX_REMEMBERED = 200

/** The top-level fields of one API. */
export type KnownFields = { names: ReadonlySet<string>; list: readonly string[]; meant: Map<string, string | null> }

/** The fields that a schema of requests names, in every spelling that is accepted; undefined: any field is. */
export function fieldsOf(schema: TSchema | undefined): KnownFields | undefined {
  const names = new Set<string>()
  collect(schema, names)
  // APIs with names in camelCase accept snake_case as well.
  for (const name of [...names]) names.add(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  return names.size === 0 ? undefined : { names, list: [...names], meant: new Map() }
}

function collect(schema: unknown, names: Set<string>): void {
  if (!isRecord(schema)) return
  if (isRecord(schema.properties)) for (const name of Object.keys(schema.properties)) names.add(name)
  for (const members of [schema.anyOf, schema.allOf, schema.oneOf]) {
    if (Array.isArray(members)) for (const member of members) collect(member, names)
  }
}

/** `Unknown field "temprature"; did you mean "temperature"?`, for each such field; undefined for none. */
export function fieldWarning(body: unknown, known: KnownFields): string | undefined {
  if (!isRecord(body)) return undefined
  let warning: string | undefined
  let unknown = 0
  // Without a list of the names: parsed JSON inherits none.
  for (const name in body) {
    if (known.names.has(name)) continue
    if (++unknown > MAX_UNKNOWN) break
    const meant = COMPARABLE.test(name) ? meantBy(name, known) : null
    if (meant === null || meant in body) continue
    const sentence = `Unknown field "${name}"; did you mean "${meant}"?`
    warning = warning === undefined ? sentence : `${warning} ${sentence}`
  }
  return warning
}

function meantBy(name: string, { list, meant }: KnownFields): string | null {
  const remembered = meant.get(name)
  if (remembered !== undefined) return remembered
  const found = nearest(name, list, name.length < 8 ? 1 : 2) ?? null
  const suggestion = found !== null && OTHER_MEANING[name] !== found ? found : null
  if (meant.size < MAX_REMEMBERED) meant.set(name, suggestion)
  return suggestion
}
