/** Removes personal data and secrets from text before it is stored. Every pattern takes linear time. */
import type { RedactionPattern } from '../config/request-log-schema.ts'
import { SECRET_TEXT } from '../kit/secret-text.ts'

export type Redact = (text: string) => string

type BuiltIn = 'cards' | 'email' | 'phones' | 'secrets'

/** With bounded repetitions, as RFC 5321 has them: 64 characters before the `@`, 253 of the domain. */
const EMAIL = /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}][\p{L}\p{N}.-]{0,250}\.\p{L}{2,24}/gu
const PHONES = [
  /(?<![\w+])(?:\+|00)[1-9]\d{0,2}(?:[ ()./-]{0,2}\d){6,13}(?!\d)/g, // international: E.164 has at most 15 digits
  /(?<![\w.])\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?!\w)/g, // North America
  /(?<![\w.,])\(?0\d{1,4}\)?[ /-]{1,2}\d{3,8}(?:[ -]\d{1,6})?(?!\w)/g, // national, with an area code
]
/** Digits with at most one space or hyphen between them. */
const DIGITS = /\d(?:[ \u00a0-]?\d){12,}/g
/** ISO/IEC 7812. */
const [MIN_CARD, MAX_CARD] = [13, 19]

const BUILT_IN: Record<BuiltIn, Redact> = {
  secrets: (text) => SECRET_TEXT.reduce((clean, pattern) => clean.replace(pattern, '[redacted:secret]'), text),
  cards: (text) => text.replace(DIGITS, withoutCards),
  email: (text) => (text.includes('@') ? text.replace(EMAIL, '[redacted:email]') : text),
  phones: (text) => PHONES.reduce((clean, pattern) => clean.replace(pattern, '[redacted:phone]'), text),
}

/** `patterns`: in the syntax of RE2. Throws where one is none; the configuration is checked before. */
export async function createRedaction(
  built_in: readonly BuiltIn[],
  patterns: readonly RedactionPattern[],
): Promise<Redact> {
  const own = patterns.length === 0 ? [] : await compiled(patterns)
  const order = (['secrets', 'cards', 'email', 'phones'] as const).filter((name) => built_in.includes(name))
  const steps = [...own, ...order.map((name) => BUILT_IN[name])]
  const redact: Redact = (text) => steps.reduce((clean, step) => (clean === '' ? clean : step(clean)), text)
  return (text) => (text.includes('\\') ? fromMarks(redact(toMarks(text))) : redact(text))
}

/** What JSON writes after a backslash. In JSON text, such as arguments of a tool, `\n` before a secret would look like a letter. */
const ESCAPED = 'nrtbf"/\\'
/** Characters for private use, which no word has; one for each of these. */
const FIRST_MARK = 0xe001
const MARKS = /[\ue001-\ue008]/g

const toMarks = (text: string): string =>
  text.replace(/\\(?:u00([2-7][0-9a-fA-F])|([nrtbf"/\\]))/g, (whole, code?: string, escaped?: string) => {
    if (escaped !== undefined) return String.fromCharCode(FIRST_MARK + ESCAPED.indexOf(escaped))
    const character = String.fromCharCode(Number.parseInt(code ?? '', 16))
    return /["\\\x7f]/.test(character) ? whole : character
  })

const fromMarks = (text: string): string =>
  text.replace(MARKS, (mark) => `\\${ESCAPED[mark.charCodeAt(0) - FIRST_MARK]}`)

async function compiled(patterns: readonly RedactionPattern[]): Promise<Redact[]> {
  // Loaded only where it is needed.
  const { RE2JS } = await import('re2js')
  return patterns.map(({ name, pattern }) => {
    const regex = RE2JS.compile(pattern)
    return (text) => regex.matcher(text).replaceAll(`[redacted:${name}]`)
  })
}

/** `run`: digits in groups. A card begins and ends with a group, so that a number beside it does not hide it. */
function withoutCards(run: string): string {
  const places: number[] = []
  for (let at = 0; at < run.length; at++) if (isDigit(run, at)) places.push(at)
  let clean = ''
  let copied = 0
  for (let first = 0; first + MIN_CARD <= places.length; ) {
    const last = isDigit(run, (places[first] ?? 0) - 1) ? undefined : endOfCard(run, places, first)
    if (last === undefined) first++
    else {
      clean += `${run.slice(copied, places[first])}[redacted:card]`
      copied = (places[last] ?? 0) + 1
      first = last + 1
    }
  }
  return clean + run.slice(copied)
}

/** The index of its last digit; the longest one counts. */
function endOfCard(run: string, places: readonly number[], first: number): number | undefined {
  if (!/[2-6]/.test(run[places[first] ?? 0] ?? '')) return undefined
  for (let length = Math.min(MAX_CARD, places.length - first); length >= MIN_CARD; length--) {
    const last = first + length - 1
    if (isDigit(run, (places[last] ?? 0) + 1)) continue
    if (isLuhn(run, places.slice(first, last + 1))) return last
  }
  return undefined
}

/** The check digit of ISO/IEC 7812-1. */
function isLuhn(run: string, places: readonly number[]): boolean {
  let sum = 0
  for (const [index, at] of places.toReversed().entries()) {
    const digit = run.charCodeAt(at) - 48
    sum += index % 2 === 0 ? digit : digit > 4 ? 2 * digit - 9 : 2 * digit
  }
  return sum % 10 === 0
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 48 && code <= 57
}
