/** Removes personal data and secrets from text before it is stored. Every pattern takes linear time. */
import type { RedactionPattern } from '../../config/schema/request-log-schema.ts'
import { SECRET_TEXT } from '../../kit/secret-text.ts'

export type Redact = (text: string) => string

type BuiltIn = 'cards' | 'ibans' | 'email' | 'phones' | 'secrets'

/** With bounded repetitions, as RFC 5321 has them: 64 characters before the `@`, 253 of the domain. */
const EMAIL = /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}][\p{L}\p{N}.-]{0,250}\.\p{L}{2,24}/gu
const PHONES = [
  /(?<![\w+])(?:\+|00)[1-9]\d{0,2}(?:[ ()./-]{0,2}\d){6,13}(?!\d)/g, // international: E.164 has at most 15 digits
  /(?<![\w.])\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?!\w)/g, // North America
  /(?<![\w.,])\(?0\d{1,4}\)?[ /-]{1,2}\d{3,8}(?:[ -]\d{1,6})?(?!\w)/g, // national, with an area code
]
/** Digits with at most one space or hyphen between them. */
const DIGITS = /\d(?:[ \u00a0-]?\d){12,}/g
/** What may stand between the groups of a card: white space, also as JSON writes it, and up to three other signs. */
const GAP = '[\\s.\u00b7\\-\u2010-\u2015/_|,\ue001-\ue008]{1,3}'
/** Four groups as most cards have them, and the three of American Express, with any gaps. */
const GROUPED_CARD = new RegExp(
  `(?<![\\d.])(?:\\d{4}${GAP}\\d{4}${GAP}\\d{4}${GAP}\\d{1,4}(?:${GAP}\\d{3})?|\\d{4}${GAP}\\d{6}${GAP}\\d{5})(?!\\d)`,
  'g',
)
/** ISO 13616: country, check digits, and 11 to 30 letters and digits, in groups or not. */
const IBAN = /(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ \u00a0.-]?[A-Za-z0-9]){11,30}/g
/** ISO/IEC 7812. */
const [MIN_CARD, MAX_CARD] = [13, 19]

const BUILT_IN: Record<BuiltIn, Redact> = {
  secrets: (text) => SECRET_TEXT.reduce((clean, pattern) => clean.replace(pattern, '[redacted:secret]'), text),
  cards: (text) => text.replace(GROUPED_CARD, withoutGroupedCard).replace(DIGITS, withoutCards),
  ibans: (text) => text.replace(IBAN, withoutIban),
  email: (text) => (text.includes('@') ? text.replace(EMAIL, '[redacted:email]') : text),
  phones: (text) => PHONES.reduce((clean, pattern) => clean.replace(pattern, '[redacted:phone]'), text),
}

/** `patterns`: in the syntax of RE2. Throws where one is none; the configuration is checked before. */
export async function createRedaction(
  built_in: readonly BuiltIn[],
  patterns: readonly RedactionPattern[],
): Promise<Redact> {
  const own = patterns.length === 0 ? [] : await compiled(patterns)
  const order = (['secrets', 'ibans', 'cards', 'email', 'phones'] as const).filter((name) => built_in.includes(name))
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

function withoutGroupedCard(found: string): string {
  const digits = found.replace(/\D/g, '')
  const isCard = /^[2-6]/.test(digits) && digits.length <= MAX_CARD && isLuhn(digits, [...digits].keys().toArray())
  return isCard ? '[redacted:card]' : found
}

/** The longest beginning that ends with a word and whose check digits are right: upper case may follow an IBAN. */
function withoutIban(found: string, offset: number, text: string): string {
  for (let end = found.length; end >= MIN_IBAN; end--) {
    const next = end === found.length ? text[offset + end] : found[end]
    if (next !== undefined && /[A-Za-z0-9]/.test(next)) continue
    if (isIban(found.slice(0, end).replace(/[^A-Za-z0-9]/g, ''))) return `[redacted:iban]${found.slice(end)}`
  }
  return found
}

/** ISO 13616 has 15 characters at least (Norway). */
const MIN_IBAN = 15

/** The remainder of ISO 7064 (MOD 97-10): the first four characters go to the end, and letters count from 10. */
function isIban(text: string): boolean {
  if (text.length < MIN_IBAN) return false
  let remainder = 0
  for (const character of `${text.slice(4)}${text.slice(0, 4)}`) {
    const value = Number.parseInt(character, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder === 1
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
