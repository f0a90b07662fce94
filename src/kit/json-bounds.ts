/** Checks limits of a JSON text before it is parsed: its depth and its number of values. */

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

function hasMoreBrackets(text: string, limit: number): boolean {
  let left = limit
  for (const bracket of ['[', '{']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (left-- === 0) return true
  }
  return false
}
