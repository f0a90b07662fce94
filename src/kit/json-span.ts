/** Where a member's value stands in a JSON text, so that it can be replaced and all else stays as it was written. */

/** `key`: where the member's name begins. */
type Span = { key: number; start: number; end: number }

/** The value at a path of members; undefined where there is none. The text must be valid JSON. */
export function spanOf(text: string, path: string[]): Span | undefined {
  let at = skipSpace(text, 0)
  for (const [depth, name] of path.entries()) {
    const found = membersOf(text, at, [name]).get(name)
    if (!found) return undefined
    if (depth === path.length - 1) return found
    at = found.start
  }
  return undefined
}

/** The same text with another value at that path; the very same where there is no such member. */
export function withValueAt(text: string, path: string[], value: string): string {
  const span = spanOf(text, path)
  return span ? text.slice(0, span.start) + value + text.slice(span.end) : text
}

/** The same text with other values of members of the outermost object, where it has them. */
export function withValues(text: string, values: Readonly<Record<string, string>>): string {
  let changed = ''
  let from = 0
  for (const [name, { start, end }] of membersOf(text, skipSpace(text, 0), Object.keys(values))) {
    changed += text.slice(from, start) + values[name]
    from = end
  }
  return changed + text.slice(from)
}

/** The same text without that member of the outermost object. */
export function withoutMember(text: string, name: string): string {
  const span = spanOf(text, [name])
  if (!span) return text
  const next = skipSpace(text, span.end)
  if (text.charCodeAt(next) === COMMA) return text.slice(0, span.key) + text.slice(skipSpace(text, next + 1))
  const before = text.slice(0, span.key).trimEnd()
  return before.slice(0, before.endsWith(',') ? -1 : undefined) + text.slice(span.end)
}

/** The same text with one more member at the end of the outermost object, which has others. */
export function withMember(text: string, name: string, value: string): string {
  const close = text.lastIndexOf('}')
  return `${text.slice(0, close)},"${name}":${value}${text.slice(close)}`
}

/** The end of a string, from within it: where its closing quote stands; -1 where it is not closed. */
export function closingQuote(text: string, from: number): number {
  // Most are short and without escapes: a search takes longer than to look at their characters.
  for (let at = from; at < from + SHORT; at++) {
    const sign = text.charCodeAt(at)
    if (sign === QUOTE) return at
    if (sign === BACKSLASH) break
  }
  let quote = text.indexOf('"', from)
  while (quote !== -1 && isEscaped(text, quote, from)) quote = text.indexOf('"', quote + 1)
  return quote
}

function isEscaped(text: string, at: number, from: number): boolean {
  let slashes = 0
  while (at - slashes > from && text.charCodeAt(at - slashes - 1) === BACKSLASH) slashes++
  return slashes % 2 === 1
}

const SHORT = 32
const QUOTE = 34
const COMMA = 44
const BACKSLASH = 92
const isOpening = (sign: number): boolean => sign === 91 || sign === 123 // [ {
const isClosing = (sign: number): boolean => sign === 93 || sign === 125 // ] }

function skipSpace(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) <= 32) at++ // 9, 10, 13 and 32 are white space
  return at
}

/** Which of the names is between these quotes. */
function nameAt(text: string, open: number, close: number, names: readonly string[]): string | undefined {
  if (hasEscapes(text, open, close)) {
    const written = JSON.parse(text.slice(open, close + 1))
    return names.find((name) => name === written)
  }
  for (const name of names) if (close === open + 1 + name.length && text.startsWith(name, open + 1)) return name
  return undefined
}

function hasEscapes(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (text.charCodeAt(at) === BACKSLASH) return true
  return false
}

/**
 * The named members of the object that opens there, in the order of the text. The last of a name's members counts, as it
 * does when the text is parsed. The names have no sign that JSON escapes.
 */
function membersOf(text: string, open: number, names: readonly string[]): Map<string, Span> {
  const found = new Map<string, Span>()
  if (text[open] !== '{') return found
  let at = skipSpace(text, open + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const close = closingQuote(text, at + 1)
    if (close === -1) return found
    const name = nameAt(text, at, close, names)
    const start = skipSpace(text, skipSpace(text, close + 1) + 1) // after the colon
    const end = endOfValue(text, start)
    if (name !== undefined) {
      found.delete(name)
      found.set(name, { key: at, start, end })
    }
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return found
}

function endOfValue(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const sign = text.charCodeAt(at)
    if (sign === QUOTE) {
      at = closingQuote(text, at + 1)
      if (at === -1) return text.length
      if (depth === 0) return at + 1
    } else if (isOpening(sign)) depth++
    else if (isClosing(sign)) {
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (depth === 0 && (sign === COMMA || sign <= 32)) return at
  }
  return text.length
}
