/** Parses the lines of a prompt that tell the sandbox how to behave: `@sandbox key=value ...`. */
import { invalidRequest } from './invalid-request.ts'

export type Rule = { minimum: number; maximum: number } | { values: readonly string[] }

const MAX_TOKENS = 100_000
export const MAX_MILLISECONDS = 600_000
/** A day: nobody waits longer for a retry. */
const MAX_RETRY_SECONDS = 86_400

export const DIRECTIVES = {
  tokens: { minimum: 0, maximum: MAX_TOKENS },
  interval_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  first_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  status: { minimum: 400, maximum: 599 },
  retry_after: { minimum: 0, maximum: MAX_RETRY_SECONDS },
  cut_after: { minimum: 0, maximum: MAX_TOKENS },
  hang_after: { minimum: 0, maximum: MAX_TOKENS },
  error_after: { minimum: 0, maximum: MAX_TOKENS },
  usage: { values: ['none'] },
  finish: { values: ['content_filter', 'length', 'stop'] },
} as const satisfies Record<string, Rule>

/** What a request may set by these rules. */
type ValuesOf<Rules extends Record<string, Rule>> = {
  -readonly [key in keyof Rules]?: Rules[key] extends { values: readonly (infer Value)[] } ? Value : number
}
export type Directives = ValuesOf<typeof DIRECTIVES>

/** A line that starts with `@sandbox`, with or without blanks before it; `@sandboxes` is an ordinary word. */
const LINE = /^[ \t]*@sandbox(?=[ \t\r]|$)([\s\S]*)$/
const NUMBER = /^\d{1,9}$/
/** An error message repeats only what looks like a key: the rest of a line may be anything. */
const KEY = /^[a-z][a-z0-9_]{0,31}$/i

/** The text without its directive lines, and what follows `@sandbox` in each of them. */
export function extractDirectiveLines(text: string): { rest: string; lines: string[] } {
  if (!text.includes('@sandbox')) return { rest: text, lines: [] }
  const lines: string[] = []
  const rest: string[] = []
  for (const line of text.split('\n')) {
    const found = LINE.exec(line)
    if (found) lines.push((found[1] ?? '').trim())
    else rest.push(line)
  }
  return { rest: lines.length ? rest.join('\n').trim() : text, lines }
}

type DirectiveSource = {
  /** The path of the message that holds the lines. */
  param: string
  /** How many choices the request asks for; the limit of tokens applies to all of them together. */
  choices: number
}

/** The directives of the lines; a later value wins. Throws `upstream_invalid_request` with the known directives. */
export function parseDirectives(lines: string[], { param, choices }: DirectiveSource): Directives {
  const known = { rules: DIRECTIVES, param }
  const values = readDirectives(lines, known)
  if (Number(values.tokens) * choices > MAX_TOKENS) {
    rejectDirectives(`tokens times n must not be over ${MAX_TOKENS}.`, known)
  }
  return values
}

/** The known keys, and the parameter of the request that holds the lines. */
type DirectiveRules<Rules extends Record<string, Rule> = Record<string, Rule>> = { rules: Rules; param: string }

/** The last value of each key, checked by its rule. Throws `upstream_invalid_request`. */
export function readDirectives<Rules extends Record<string, Rule>>(
  lines: string[],
  given: DirectiveRules<Rules>,
): ValuesOf<Rules> {
  const values: Record<string, number | string> = {}
  for (const line of lines) {
    if (line === '') rejectDirectives('the line has no key=value.', given)
    for (const word of line.split(/\s+/).filter(Boolean)) {
      const equals = word.indexOf('=')
      if (equals === -1) rejectDirectives('a word is not of the form key=value.', given)
      const key = word.slice(0, equals)
      const rule = Object.hasOwn(given.rules, key) ? given.rules[key] : undefined
      if (!rule) rejectDirectives(KEY.test(key) ? `"${key}" is not a key.` : 'a key is not known.', given)
      values[key] = readValue(key, word.slice(equals + 1), { rule, given })
    }
  }
  const beside = ['status', 'limit'].filter((key) => Object.hasOwn(given.rules, key))
  if (values.retry_after !== undefined && beside.every((key) => values[key] === undefined)) {
    rejectDirectives(`retry_after needs a ${beside.join(' or a ')} beside it.`, given)
  }
  return values as ValuesOf<Rules>
}

function readValue(
  key: string,
  value: string,
  { rule, given }: { rule: Rule; given: DirectiveRules },
): number | string {
  if ('values' in rule) {
    if (!rule.values.includes(value)) rejectDirectives(`${key} must be ${rule.values.join(' or ')}.`, given)
    return value
  }
  const number = NUMBER.test(value) ? Number(value) : Number.NaN
  if (!(number >= rule.minimum && number <= rule.maximum)) {
    rejectDirectives(`${key} must be a whole number from ${rule.minimum} to ${rule.maximum}.`, given)
  }
  return number
}

function rejectDirectives(why: string, { rules, param }: DirectiveRules): never {
  const known = Object.entries(rules)
    .map(([key, rule]) => `${key}=${'values' in rule ? rule.values.join('|') : `${rule.minimum}..${rule.maximum}`}`)
    .join(', ')
  throw invalidRequest(`@sandbox: ${why} Known are: ${known}.`, param)
}
