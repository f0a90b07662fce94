/** Locates the first syntax error of a text that should be JSON (RFC 8259). */

type JsonFault = { line: number; column: number; expected: string; found: string }

// Each is matched at one position of the text. None repeats a group, which could exhaust the stack on a long text.
const SPACE = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: a string may not hold them unescaped
const PLAIN = /[^"\\\u0000-\u001f]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y

/** The first syntax error of a text that `JSON.parse` rejected. It keeps its own stack, so that depth does not matter. */
export function findJsonFault(text: string): JsonFault {
  const open: ('{' | '[')[] = []
  let at = 0

  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const take = (sign: string): boolean => {
    if (text[at] !== sign) return false
    at++
    return true
  }
  /** What is wrong with the string that starts here, if anything. */
  const string = (): string | undefined => {
    at++
    do skip(PLAIN)
    while (skip(ESCAPE))
    if (take('"')) return undefined
    return text[at] === '\\' ? 'an escape such as `\\n` or `\\u0041`' : 'the closing double quote of a string'
  }
  /** What is wrong with the name of a member and its colon, if anything. */
  const name = (): string | undefined => {
    skip(SPACE)
    if (text[at] !== '"') return 'a member name in double quotes'
    const trouble = string()
    skip(SPACE)
    return trouble ?? (take(':') ? undefined : '`:`')
  }
  /** What is wrong with a value, if anything; of an object or array that is not empty it reads the beginning. */
  const value = (): string | undefined => {
    skip(SPACE)
    const sign = text[at]
    if (sign === '"') return string()
    if (sign !== '{' && sign !== '[') return skip(NUMBER) || skip(WORD) ? undefined : 'a value'
    at++
    skip(SPACE)
    if (take(closing(sign))) return undefined
    open.push(sign)
    return sign === '{' ? (name() ?? VALUE_OPENED) : VALUE_OPENED
  }
  /** What is wrong between a value and the next, if anything. */
  const next = (): string | undefined => {
    skip(SPACE)
    const inside = open.at(-1)
    if (inside === undefined) return 'nothing more'
    if (take(closing(inside))) {
      open.pop()
      return undefined
    }
    if (!take(',')) return `\`,\` or \`${closing(inside)}\``
    return inside === '{' ? (name() ?? VALUE_OPENED) : VALUE_OPENED
  }

  let step = value
  for (;;) {
    const expected = step()
    if (expected !== undefined && expected !== VALUE_OPENED)
      return { ...placeOf(text, at), expected, found: signAt(text, at) }
    step = expected === VALUE_OPENED ? value : next
  }
}

/** Not a fault: a value must come now. */
const VALUE_OPENED = ''

const closing = (sign: '{' | '['): string => (sign === '{' ? '}' : ']')

function placeOf(text: string, at: number): { line: number; column: number } {
  const start = text.lastIndexOf('\n', at - 1)
  let line = 1
  for (let end = text.indexOf('\n'); end !== -1 && end < at; end = text.indexOf('\n', end + 1)) line++
  return { line, column: at === 0 ? 1 : at - start }
}

/** One character is enough to find the position, and reveals nothing. */
function signAt(text: string, at: number): string {
  const point = text.codePointAt(at)
  if (point === undefined) return 'the end'
  if (point < 32) return `the control character U+${point.toString(16).padStart(4, '0').toUpperCase()}`
  return `\`${String.fromCodePoint(point)}\``
}
