/** Parses JSON without changing its numbers: one that a JavaScript number would change keeps its own digits. */
import { isRecord, type JsonRecord, parseJson } from './json.ts'
import { isTooDeep } from './json-bounds.ts'

/** A number as its JSON text has it, such as `9007199254740993` or `1.0`. `JSON.stringify` writes it unchanged. */
export type RawNumber = { readonly rawJSON: string }

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown
/** ECMAScript's access to the source text of JSON, which the type library does not have yet. */
const json = JSON as unknown as {
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
  parse(text: string, reviver: Reviver): unknown
}

export const isRawNumber = (value: unknown): value is RawNumber => typeof value === 'object' && json.isRawJSON(value)

/** A value without members, in which a raw number counts as a number. */
export const isScalar = (value: unknown): boolean => typeof value !== 'object' || isRawNumber(value)
export const scalarText = (value: unknown): string => (isRawNumber(value) ? value.rawJSON : String(value))

/**
 * Replaces an integer beyond 2^53 by the nearest number, so that a schema accepts it, and returns it to be put back;
 * undefined for any other member.
 */
export function takeRawInteger(holder: JsonRecord, name: string): RawNumber | undefined {
  const value = holder[name]
  if (!isRawNumber(value) || !INTEGER.test(value.rawJSON)) return undefined
  holder[name] = Number(value.rawJSON)
  return value
}

const INTEGER = /^-?\d+$/

/**
 * A number that may be an integer beyond 2^53 or larger than any of JavaScript: with 16 digits or a positive exponent.
 * It follows a colon, a comma or a bracket. Within strings it may be found too, which only costs time.
 */
const MAY_BE_LARGE = /[:,[]\s*-?\d(?:\d{15}|[\d.]*[eE]\+?\d)/
/** The same for any number that `JSON.stringify` would write in another way: also `1.0`, `1e-5`, `-0`, many digits. */
const MAY_CHANGE = /[:,[]\s*(?:-?\d(?:\d{15}|[\d.]{16}|\d*\.\d*0(?!\d)|[\d.]*[eE])|-?0\.0{6}|-0(?![.\d]))/

/** The parsed text of a tool's arguments or result, with the digits of its numbers; undefined where it is not JSON. */
export function parseExactJson(text: string): unknown {
  if (!MAY_CHANGE.test(text)) return parseJson(text)
  if (isTooDeep(text)) return undefined
  try {
    return withDigits(text)
  } catch (thrown) {
    return thrown instanceof TooManyRawNumbers ? parseJson(text) : undefined
  }
}

/**
 * The parsed text of a provider's response, in which numbers below members of these names keep their digits; undefined
 * where it is not JSON. A text without these members costs one search for each name.
 */
export function parseJsonKeeping(text: string, names: readonly string[]): unknown {
  if (!hasMember(text, names)) return parseJson(text)
  const exact = parseExactJson(text)
  return MAY_CHANGE.test(text) ? settled(exact, { names, isKept: () => false }) : exact
}

/**
 * The parsed text of a request. Numbers below members of these names keep their digits, and integers beyond 2^53 do so
 * everywhere: what is passed on passes unchanged, and a schema refuses them in a field of its own. `hasLarge`: false where
 * a scan of the text found no large number. Throws SyntaxError and TooManyRawNumbers.
 */
export function parseRequestJson(text: string, hasLarge = true, names: readonly string[] = NONE): unknown {
  const isPlain = !(hasLarge && MAY_BE_LARGE.test(text)) && !(hasMember(text, names) && MAY_CHANGE.test(text))
  return isPlain ? JSON.parse(text) : settled(withDigits(text), { names, isKept: isBeyondIntegers })
}

const NONE: readonly string[] = []

function hasMember(text: string, names: readonly string[]): boolean {
  for (const name of names) if (text.includes(`"${name}"`)) return true
  return false
}

/** Each costs a hundred times what a plain number does. */
const MAX_RAW_NUMBERS = 100_000

export class TooManyRawNumbers extends Error {
  constructor() {
    super(`may have at most ${MAX_RAW_NUMBERS} numbers that JavaScript would write in another way`)
  }
}

/** Throws SyntaxError and TooManyRawNumbers. */
function withDigits(text: string): unknown {
  let left = MAX_RAW_NUMBERS
  return json.parse(text, (_, value, { source }) => {
    if (typeof value !== 'number' || source === undefined || String(value) === source) return value
    if (left-- === 0) throw new TooManyRawNumbers()
    return json.rawJSON(source)
  })
}

const isBeyondIntegers = (value: number): boolean => !Number.isSafeInteger(value) && !(value % 1)

type Kept = { names: readonly string[]; isKept(value: number): boolean }

/** Makes raw numbers plain ones, in place, except below the members of these names and where the rule keeps them. */
function settled(value: unknown, kept: Kept): unknown {
  if (isRawNumber(value)) {
    const number = Number(value.rawJSON)
    return kept.isKept(number) ? value : number
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) if (typeof item === 'object') value[index] = settled(item, kept)
  } else if (isRecord(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (typeof member !== 'object' || member === null || kept.names.includes(name)) continue
      const plain = settled(member, kept)
      if (plain !== member) value[name] = plain
    }
  }
  return value
}
