/** Generates numbers and strings that fit a flat JSON Schema. */
import { characterCount, patternOf, type Schema, type SchemaWork } from './json-schema-check.ts'
import type { Random } from './random.ts'

/** What a prompt mentions, best first; values use these where they fit. `used` counts how many are used already. */
export type Hints = { terms: string[]; numbers: number[]; used: { terms: number; numbers: number } }

const DEFAULT_TERMS = ['sample', 'simulated', 'example', 'sandbox', 'gateway']
/** Longer strings are not generated, whatever a schema demands. */
const MAX_LENGTH = 10_000

export function nextTerm({ hints, random }: { hints: Hints; random: Random }): string {
  const hint = hints.terms[hints.used.terms++]
  return hint ?? random.pick(hints.terms.length ? hints.terms : DEFAULT_TERMS)
}

/** Undefined when no number fits. */
export function sampleNumber(
  schema: Schema,
  whole: boolean,
  { random, hints }: { random: Random; hints: Hints },
): number | undefined {
  const { low, high, openLow, openHigh } = boundsOf(schema)
  const inside = (value: number) =>
    (openLow ? value > low : value >= low) && (openHigh ? value < high : value <= high) && Number.isFinite(value)
  const multiple = typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : undefined
  const fits = (value: number) =>
    inside(value) && (!whole || Number.isInteger(value)) && (!multiple || Number.isInteger(value / multiple))

  const hint = hints.numbers[hints.used.numbers]
  if (hint !== undefined && fits(hint)) {
    hints.used.numbers++
    return hint
  }
  // Without a bound, the range ends after a hundred steps, which keeps numbers readable.
  const span = 100 * (multiple ?? 1)
  const from = Number.isFinite(low) ? low : Number.isFinite(high) ? Math.min(0, high - span) : 0
  const to = Number.isFinite(high) ? high : Math.max(from + span, from)
  const step = multiple ?? (whole ? 1 : undefined)
  const tries = step === undefined ? decimals(from, to, random) : multiples(from, to, { step, random })
  for (const value of tries) if (fits(value)) return value === 0 ? 0 : value
  return undefined
}

function boundsOf(schema: Schema) {
  const number = (value: unknown, otherwise: number) => (typeof value === 'number' ? value : otherwise)
  const low = Math.max(number(schema.minimum, -Infinity), number(schema.exclusiveMinimum, -Infinity))
  const high = Math.min(number(schema.maximum, Infinity), number(schema.exclusiveMaximum, Infinity))
  return {
    low,
    high,
    openLow: schema.exclusiveMinimum === true || schema.exclusiveMinimum === low,
    openHigh: schema.exclusiveMaximum === true || schema.exclusiveMaximum === high,
  }
}

function* multiples(from: number, to: number, { step, random }: { step: number; random: Random }): Generator<number> {
  const first = Math.ceil(from / step)
  const count = Math.max(0, Math.floor(to / step) - first + 1)
  // With binary fractions, a step times an integer is not always a multiple: hence several tries and both ends.
  for (let tries = 0; tries < 8; tries++) yield (first + random.below(count)) * step
  for (const count of [0, 1, 2, 3, -1]) yield (first + count) * step
  yield 0
  yield Math.floor(to / step) * step
}

function* decimals(from: number, to: number, random: Random): Generator<number> {
  for (const places of [1, 2, 4]) {
    for (let tries = 0; tries < 4; tries++) yield Number((from + random.next() * (to - from)).toFixed(places))
  }
  yield from / 2 + to / 2
  yield from
  yield to
}

type TextParts = { random: Random; hints: Hints; work: SchemaWork }

/** Undefined when no string fits. */
export function sampleString(schema: Schema, { random, hints, work }: TextParts): string | undefined {
  const minimum = typeof schema.minLength === 'number' ? Math.max(0, Math.ceil(schema.minLength)) : 0
  const maximum = typeof schema.maxLength === 'number' ? Math.floor(schema.maxLength) : MAX_LENGTH
  if (minimum > maximum || minimum > MAX_LENGTH) return undefined
  const fits = (text: string) => characterCount(text) >= minimum && characterCount(text) <= maximum
  work.steps -= minimum / 10
  if (typeof schema.pattern === 'string') {
    const pattern = patternOf(schema.pattern, work)
    const formatted = pattern && formatOf(schema)?.(random)
    if (formatted && pattern.matches(formatted) && fits(formatted)) return formatted
    return pattern?.sample(random, minimum, Math.min(maximum, MAX_LENGTH))
  }
  const format = formatOf(schema)
  if (format) {
    for (let tries = 0; tries < 4; tries++) {
      const text = format(random)
      if (fits(text)) return text
    }
    return undefined
  }
  let text = nextTerm({ hints, random })
  // Each term is counted once: counting the whole text again and again would take seconds for a long one.
  for (let length = characterCount(text); length < minimum; ) {
    const more = ` ${nextTerm({ hints, random })}`
    text += more
    length += characterCount(more)
  }
  return [...text].slice(0, maximum).join('')
}

function formatOf({ format }: Schema): ((random: Random) => string) | undefined {
  return typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined
}

const digits = (random: Random, length: number) => Array.from({ length }, () => random.below(10)).join('')
const hex = (random: Random, length: number) => Array.from({ length }, () => random.below(16).toString(16)).join('')
const two = (value: number) => String(value).padStart(2, '0')
const day = (random: Random) => `2026-${two(1 + random.below(12))}-${two(1 + random.below(28))}`
const time = (random: Random) => `${two(random.below(24))}:${two(random.below(60))}:${two(random.below(60))}Z`
const label = (random: Random) => random.pick(['north', 'south', 'east', 'west', 'river', 'harbour', 'garden'])
const host = (random: Random) => `${label(random)}.example`
const path = (random: Random) => `/${label(random)}/${digits(random, 3)}`
const address = (random: Random) => `${label(random)}.${digits(random, 2)}@${host(random)}`
/** The range that is reserved for documentation (RFC 5737). */
const ipv4 = (random: Random) => `192.0.2.${random.below(256)}`
const uri = (random: Random) => `https://${host(random)}${path(random)}`

/** The formats of the JSON Schema vocabulary; an unknown format is only an annotation. */
const FORMATS: Record<string, (random: Random) => string> = {
  'date-time': (random) => `${day(random)}T${time(random)}`,
  date: day,
  time,
  duration: (random) => `PT${1 + random.below(59)}M`,
  email: address,
  'idn-email': address,
  hostname: host,
  'idn-hostname': host,
  ipv4,
  ipv6: (random) => `2001:db8::${(1 + random.below(65_535)).toString(16)}`,
  uri,
  url: uri,
  iri: uri,
  'uri-reference': path,
  'iri-reference': path,
  'uri-template': (random) => `${path(random)}/{id}`,
  // Version 4, variant 8.
  uuid: (random) => `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-8${hex(random, 3)}-${hex(random, 12)}`,
  'json-pointer': path,
  'relative-json-pointer': (random) => `1${path(random)}`,
  regex: (random) => `^${label(random)}$`,
  byte: (random) => btoa(label(random)),
}
