/** Reads the elements of one list of a JSON body while it arrives, so that the list is never in memory as a whole. */
import { isRecord, parseJson } from '../kit/json.ts'
import { GatewayError } from '../spec/error.ts'
import { bodyPieces, type StreamLimits } from './body-pieces.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const ZERO = 0x30
const BACKSLASH = 0x5c
const LIST = 0x5b
const LIST_END = 0x5d
const OBJECT = 0x7b
const OBJECT_END = 0x7d
const SPACE = 0x20
const LINE_FEED = 0x0a
const RETURN = 0x0d
const isSpace = (byte: number): boolean => byte === SPACE || byte === 0x09 || byte === LINE_FEED || byte === RETURN
/** Of all but the elements: a character and a comma for each, and other members. */
const MOST_REST_BYTES = 1024 * 1024

type Elements = { member: string; most_element_bytes: number }

/**
 * Those that end in each piece of the body, each on one line; then the body with a 0 in place of each. Throws GatewayError, also for a
 * body that is not JSON as a whole.
 */
export async function* streamElements(
  request: Request,
  limits: StreamLimits & Elements,
): AsyncGenerator<Buffer[], Record<string, unknown>> {
  const splitter = new ElementSplitter(limits)
  for await (const piece of bodyPieces(request, limits)) {
    const elements = splitter.push(piece)
    if (elements.length > 0) yield elements
  }
  return splitter.end()
}

class ElementSplitter {
  readonly #elements: Elements
  /** The member whose elements are split, right before its value. */
  readonly #begins: RegExp
  #rest: number[] = []
  #element: Uint8Array[] | undefined
  #bytes = 0
  #count = 0
  #depth = 0
  #isString = false
  #isEscaped = false
  #isList = false

  constructor(elements: Elements) {
    this.#elements = elements
    this.#begins = new RegExp(`(?:^\\s*\\{|,)\\s*"${elements.member}"\\s*:\\s*$`)
  }

  push(piece: Uint8Array): Buffer[] {
    const ended: Buffer[] = []
    let start = 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      if (this.#isString) this.#inString(byte)
      else {
        const isBetween = byte === COMMA || byte === LIST_END
        if (this.#isList && this.#depth === 2 && isBetween === (this.#element !== undefined) && !isSpace(byte)) {
          // A number or a word ends here too; it is refused later, with its number.
          if (isBetween) ended.push(this.#end(piece.subarray(start, at)))
          else start = this.#begin(at)
        }
        this.#between(byte)
      }
      if (!this.#element) this.#keep(byte)
    }
    if (this.#element) this.#hold(piece.subarray(start))
    return ended
  }

  end(): Record<string, unknown> {
    const value = parseJson(textOf(this.#rest))
    if (value === undefined) throw new GatewayError('invalid_json', 'The body is not valid JSON.')
    if (!isRecord(value)) throw new GatewayError('invalid_type', 'The body must be a JSON object.')
    return value
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) this.#isString = false
  }

  #between(byte: number): void {
    if (byte === QUOTE) this.#isString = true
    else if (byte === LIST || byte === OBJECT) {
      if (byte === LIST && this.#depth === 1 && this.#begins.test(textOf(this.#rest.slice(-64)))) {
        const { member } = this.#elements
        if (this.#isList || this.#count > 0)
          throw new GatewayError('invalid_value', `"${member}" stands twice in the body.`, { param: member })
        this.#isList = true
      }
      this.#depth++
    } else if (byte === LIST_END || byte === OBJECT_END) {
      this.#depth--
      if (this.#depth === 1) this.#isList = false
    }
  }

  #begin(at: number): number {
    this.#keep(ZERO)
    this.#element = []
    this.#bytes = 0
    return at
  }

  #hold(bytes: Uint8Array): void {
    const { member, most_element_bytes } = this.#elements
    this.#bytes += bytes.length
    const param = `${member}[${this.#count}]`
    if (this.#bytes > most_element_bytes)
      throw new GatewayError('request_too_large', `"${param}" has more than ${most_element_bytes} bytes.`, { param })
    this.#element?.push(bytes.slice())
  }

  #end(last: Uint8Array): Buffer {
    this.#hold(last)
    const whole = Buffer.concat(this.#element ?? [])
    // Between its values only: a string of JSON has no line break.
    for (let at = 0; at < whole.length; at++) if (whole[at] === LINE_FEED || whole[at] === RETURN) whole[at] = SPACE
    this.#element = undefined
    this.#count++
    return whole
  }

  #keep(byte: number): void {
    this.#rest.push(byte)
    if (this.#rest.length <= MOST_REST_BYTES) return
    const message = `The body may have at most ${MOST_REST_BYTES} bytes beside "${this.#elements.member}".`
    throw new GatewayError('request_too_large', message)
  }
}

const textOf = (bytes: number[]): string => Buffer.from(bytes).toString('utf8')
