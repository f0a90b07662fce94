/**
 * Splits the body of `POST /v1/messages/batches` into its requests while it arrives, so that it is never in memory as a
 * whole: each element of `requests` becomes a line of JSONL.
 */
import { GatewayError } from '../../spec/error.ts'

/** `rest` is the body with a 0 in place of each request. */
type Splitter = {
  /** The requests that end in this piece. Throws GatewayError. */
  push(piece: Uint8Array): Uint8Array[]
  /** Throws GatewayError for a body that is not JSON as a whole. */
  end(): { rest: Record<string, unknown>; requests: number }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const ZERO = 0x30
const SPACE = 0x20
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d
/** The member whose elements are split, right before its value. */
const REQUESTS = /(?:^\s*\{|,)\s*"requests"\s*:\s*$/
/** Of everything but the requests themselves: a character and a comma for each, and other members. */
const MAX_REST = 1024 * 1024

export function createSplitter({ max_request_bytes }: { max_request_bytes: number }): Splitter {
  let rest: number[] = []
  let depth = 0
  let isString = false
  let isEscaped = false
  let isRequests = false
  let requests = 0
  let element: Uint8Array[] = []
  let element_bytes = 0
  let isElement = false

  const elementDone = (): Uint8Array => {
    const whole = Buffer.concat(element)
    // Between its values only: a string of JSON has no line break.
    for (let at = 0; at < whole.length; at++) if (whole[at] === 0x0a || whole[at] === 0x0d) whole[at] = SPACE
    element = []
    element_bytes = 0
    isElement = false
    requests++
    return whole
  }

  function hold(bytes: Uint8Array): void {
    element_bytes += bytes.length
    if (element_bytes > max_request_bytes)
      throw new GatewayError('request_too_large', `"requests[${requests}]" has more than ${max_request_bytes} bytes.`, {
        param: `requests[${requests}]`,
      })
    element.push(bytes.slice())
  }

  function keep(byte: number): void {
    rest.push(byte)
    if (rest.length > MAX_REST)
      throw new GatewayError('request_too_large', `The body may have at most ${MAX_REST} bytes beside its requests.`)
  }

  function push(piece: Uint8Array): Uint8Array[] {
    const found: Uint8Array[] = []
    let start = 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      if (isString) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isString = false
        if (!isElement) keep(byte)
        continue
      }
      const isAtElements = isRequests && depth === 2
      if (isAtElements && !isElement && !isSpace(byte) && byte !== COMMA && byte !== CLOSE_ARRAY) {
        isElement = true
        start = at
        keep(ZERO)
      }
      // A number or a word as element ends here; it is refused later, with its number.
      if (isAtElements && isElement && (byte === COMMA || byte === CLOSE_ARRAY)) {
        hold(piece.subarray(start, at))
        found.push(elementDone())
      }
      if (byte === QUOTE) isString = true
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (byte === OPEN_ARRAY && depth === 1 && REQUESTS.test(textOf(rest.slice(-64)))) {
          if (isRequests || requests > 0) throw twice()
          isRequests = true
        }
        depth++
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        depth--
        if (isRequests && depth === 1) isRequests = false
      }
      if (!isElement) keep(byte)
    }
    if (isElement) hold(piece.subarray(start))
    return found
  }

  return {
    push,
    end() {
      const text = textOf(rest)
      rest = []
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch {
        throw new GatewayError('invalid_json', 'The body is not valid JSON.')
      }
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw new GatewayError('invalid_type', 'The body must be a JSON object.')
      return { rest: value as Record<string, unknown>, requests }
    },
  }
}

const textOf = (bytes: number[]): string => Buffer.from(bytes).toString('utf8')

const twice = () => new GatewayError('invalid_value', '"requests" stands twice in the body.', { param: 'requests' })
