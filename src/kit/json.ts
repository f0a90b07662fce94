/** Parses JSON of others within bounds and without changing its numbers, reads it without trusting its shape, and has its canonical form. */

/** Far above real requests; recursive code is safe up to some thousands. */
export const MAX_DEPTH = 256
/** Objects and arrays: walking each costs many times its two bytes. */
export const MAX_CONTAINERS = 100_000
/** Member names: parsing a new one costs about a microsecond. */
export const MAX_NAMES = 100_000
/** Values of all kinds: the largest embeddings request of OpenAI's has 300,000 tokens as numbers. */
export const MAX_VALUES = 1_000_000
/** Members of one object: copying thousands of different names costs more than parsing. No JSON Schema has as many. */
export const MAX_MEMBERS = 10_000

type Excess = 'depth' | 'containers' | 'names' | 'values' | 'members'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const EXPONENT = 0x65
/** The bit in which a letter in lower case differs from one in upper case. */
const LOWER_CASE = 0x20
/** An integer of fewer digits is below 2^53. */
const LARGE_CHARACTERS = 16
/** Strings up to this length are read byte by byte; the end of a longer one is searched, which is faster. */
const SHORT_STRING = 64

type Bounds = Record<Exclude<Excess, 'depth'>, number>

const BODY: Bounds = {
  containers: MAX_CONTAINERS,
  names: MAX_NAMES,
  values: MAX_VALUES,
  members: MAX_MEMBERS,
}
const DEPTH_ONLY: Bounds = {
  containers: Number.POSITIVE_INFINITY,
  names: Number.POSITIVE_INFINITY,
  values: Number.POSITIVE_INFINITY,
  members: Number.POSITIVE_INFINITY,
}
/** By depth, the number of members of the open object. Shared by all scans, which are synchronous. */
const membersAt = new Float64Array(MAX_DEPTH + 1)

/** The first limit that a text exceeds. */
export function excessOf(bytes: Uint8Array, most: Bounds = BODY): Excess | undefined {
  const finding = findingIn(bytes, most)
  return finding === 'large number' ? undefined : finding
}

/**
 * The first limit that a text exceeds, or else whether it may hold a number beyond 2^53: one of 16 characters or with an
 * exponent. The text is read once, up to the limit, and nothing is allocated. UTF-8 needs no decoding: all bytes of a
 * character beyond ASCII are above 0x7f. Whether the text is JSON is not checked.
 */
export function findingIn(bytes: Uint8Array, most: Bounds = BODY): Excess | 'large number' | undefined {
  let depth = 0
  membersAt[0] = 0
  let containers = 0
  let names = 0
  let values = 1
  let isLarge = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE) at = endOfString(bytes, at + 1)
    else if (byte === COMMA) {
      if (++values > most.values) return 'values'
    } else if (byte === COLON) {
      if (++names > most.names) return 'names'
      const members = (membersAt[depth] ?? 0) + 1
      if (members > most.members) return 'members'
      membersAt[depth] = members
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (++depth > MAX_DEPTH) return 'depth'
      if (++containers > most.containers) return 'containers'
      membersAt[depth] = 0
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--
    else if (byte >= ZERO && byte <= NINE && !isLarge) {
      const start = at
      let next = bytes[at + 1] ?? 0
      while ((next >= ZERO && next <= NINE) || next === POINT) next = bytes[++at + 1] ?? 0
      isLarge = at - start + 1 >= LARGE_CHARACTERS || (next | LOWER_CASE) === EXPONENT
    }
  }
  return isLarge ? 'large number' : undefined
}

/** The index of a string's closing quote, or the end of the text. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start
  for (;;) {
    const near = Math.min(at + SHORT_STRING, bytes.length)
    while (at < near) {
      const byte = bytes[at]
      if (byte === QUOTE) return at
      at += byte === BACKSLASH ? 2 : 1
    }
    if (at >= bytes.length) return bytes.length
    const quote = bytes.indexOf(QUOTE, at)
    if (quote === -1) return bytes.length
    // Everything before `at` has been read, so all backslashes before an escaped quote come after it.
    let slashes = 0
    while (quote - slashes > at && bytes[quote - slashes - 1] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote
    at = quote + 1
  }
}

/** Whether a text is nested deeper than `MAX_DEPTH`. Most texts have too few brackets, which is a fast check. */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * MAX_DEPTH || !hasMoreBrackets(text, MAX_DEPTH)) return false
  return excessOf(Buffer.from(text), DEPTH_ONLY) === 'depth'
}

const BRACKETS = ['[', '{']

function hasMoreBrackets(text: string, limit: number): boolean {
  let left = limit
  for (const bracket of BRACKETS) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (left-- === 0) return true
  }
  return false
}

export type JsonRecord = Record<string, unknown>

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An empty record for a value that is none: its members are then absent. */
export const asRecord = (value: unknown): JsonRecord => (isRecord(value) ? value : {})

/** The records of a list; none where the value is no list. */
export const recordsIn = (value: unknown): JsonRecord[] => (Array.isArray(value) ? value.filter(isRecord) : [])

/** A member of a value that may be anything. */
export const memberOf = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined)

/** The parsed text; undefined where it is not JSON, or nested deeper than any of use, which recursion could not walk. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The same text for equal values: members sorted by name, no spaces, undefined members left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(',')}}`
}

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
  if (names.length === 0) return false
  let quoted = quotedNames.get(names)
  if (!quoted) {
    quoted = names.map((name) => `"${name}"`)
    quotedNames.set(names, quoted)
  }
  for (let at = 0; at < quoted.length; at++) if (text.includes(quoted[at] as string)) return true
  return false
}

/** Lists of names are constants: their quotes are not made for each text. */
const quotedNames = new WeakMap<readonly string[], readonly string[]>()

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
