/** Reads a request's body: of the right type, within its size and its time, and well-formed. */
import type { Clock } from '../kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import { findJsonFault } from './json-fault.ts'

export type BodyLimits = { max_bytes: number; seconds: number; clock: Clock }

/** The parsed JSON body. Throws unsupported_media_type, request_too_large, request_timeout or invalid_json. */
export async function readJson(request: Request, limits: BodyLimits): Promise<unknown> {
  const type = request.headers.get('content-type') ?? ''
  if (!isJson(type)) throw wrongType(type, 'application/json')
  return parseJson(decode(await readBytes(request, limits)))
}

export const isJson = (type: string): boolean =>
  type === 'application/json' || /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)

export function wrongType(type: string, right: string): GatewayError {
  const found = type === '' ? 'no content-type' : `"${type.slice(0, 100)}"`
  return new GatewayError('unsupported_media_type', `The body must be sent as ${right}, not ${found}.`)
}

/** The whole body, within its size and its time. Throws unsupported_media_type for one that is compressed. */
export async function readBytes(
  request: Request,
  { max_bytes, seconds, clock }: BodyLimits,
): Promise<Uint8Array<ArrayBuffer>> {
  const coding = request.headers.get('content-encoding')
  if (coding && coding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      `The body must not be compressed, but is "${coding.slice(0, 40)}".`,
    )
  }
  const tooLarge = () => new GatewayError('request_too_large', `The body may have at most ${max_bytes} bytes.`)
  const length = Number(request.headers.get('content-length') ?? Number.NaN)
  if (length > max_bytes) throw tooLarge()
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(seconds * 1000, () =>
      reject(new GatewayError('request_timeout', `The body did not arrive within ${seconds} s.`)),
    )
  })
  try {
    // What announces its length is held to it by the server; only a chunked body must be counted while it comes.
    const bytes = Number.isFinite(length) ? request.bytes() : countedBytes(request, max_bytes, tooLarge)
    const whole = await Promise.race([bytes, late])
    if (whole.length > max_bytes) throw tooLarge()
    return whole
  } finally {
    cancel()
  }
}

async function countedBytes(request: Request, max_bytes: number, tooLarge: () => GatewayError) {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of request.body ?? []) {
    size += piece.length
    if (size > max_bytes) throw tooLarge()
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

/** Without a byte order mark. What is not UTF-8 is refused: to replace it would change what was said. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new GatewayError('invalid_json', 'The body is not valid JSON: it is not encoded in UTF-8.')
  }
}

/** A longer text is not searched for its fault: no other request would move meanwhile. */
const SEARCHED_CHARACTERS = 256 * 1024

function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new GatewayError('invalid_json', `The body is not valid JSON: ${faultOf(text)}.`)
  }
  if (isTooDeep(text, value)) {
    throw new GatewayError('invalid_json', `The body's JSON is nested deeper than ${MAX_DEPTH} levels.`)
  }
  return value
}

function faultOf(text: string): string {
  if (text.trim() === '') return 'it is empty'
  if (text.length > SEARCHED_CHARACTERS) return 'it breaks off, or holds a sign that does not belong there'
  const { line, column, expected, found } = findJsonFault(text)
  return `line ${line}, column ${column}: expected ${expected}, found ${found}`
}

/** No real request comes near; code that walks a value by recursion is safe up to some thousands. */
const MAX_DEPTH = 256

/** Nearly all texts have too few brackets to be too deep, which is quick to see; else the value is walked by levels. */
function isTooDeep(text: string, value: unknown): boolean {
  if (text.length <= 2 * MAX_DEPTH || !hasMoreBrackets(text, MAX_DEPTH)) return false
  let level = [value].filter(isContainer)
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true
    level = level.flatMap((item) => Object.values(item).filter(isContainer))
  }
  return false
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null

function hasMoreBrackets(text: string, limit: number): boolean {
  let left = limit
  for (const sign of ['[', '{']) {
    for (let at = text.indexOf(sign); at !== -1; at = text.indexOf(sign, at + 1)) if (left-- === 0) return true
  }
  return false
}
