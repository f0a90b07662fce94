/** The line by which a user tells the sandbox how to (mis)behave: `@sandbox key=value ...`. */
import type { FinishReason } from '../../../src/spec/chat-completion.ts'
import { GatewayError } from '../../../src/spec/error.ts'

export type Rule = { minimum: number; maximum: number } | { values: readonly string[] }

const MAX_TOKENS = 100_000
export const MAX_MILLISECONDS = 600_000
/** More than a day is not a hint to wait but a refusal. */
export const MAX_RETRY_SECONDS = 86_400

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

export type Directives = {
  tokens?: number
  interval_ms?: number
  first_ms?: number
  status?: number
  retry_after?: number
  cut_after?: number
  hang_after?: number
  error_after?: number
  usage?: 'none'
  finish?: FinishReason
}

/** A line that starts with the mark, blanks before it allowed; `@sandboxes` is an ordinary word. */
const LINE = /^[ \t]*@sandbox(?=[ \t\r]|$)([\s\S]*)$/
const NUMBER = /^\d{1,9}$/
/** Only what looks like a key is repeated in an error: the rest of a line may be anything. */
const KEY = /^[a-z][a-z0-9_]{0,31}$/i

/** The text without its directive lines, and what follows the mark in each of them. */
export function takeDirectiveLines(text: string): { rest: string; lines: string[] } {
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

type Place = {
  /** The message that holds the lines, as a path. */
  param: string
  /** How many answers the request asks for: together they may not be longer than one may. */
  choices: number
}

/** What the lines ask for; a later word wins. Throws `upstream_invalid_request`, naming what is known. */
export function parseDirectives(lines: string[], { param, choices }: Place): Directives {
  const given = readDirectives(lines, { rules: DIRECTIVES, param })
  const refuse = (why: string) => refuseDirectives(why, { rules: DIRECTIVES, param })
  if (given.retry_after !== undefined && given.status === undefined) refuse('retry_after needs a status beside it.')
  if (Number(given.tokens) * choices > MAX_TOKENS) refuse(`tokens times n must not be over ${MAX_TOKENS}.`)
  return given as Directives
}

/** Which keys are known, and where the lines stand. */
type Known = { rules: Record<string, Rule>; param: string }

/** Each key's last value, within its rule. Throws `upstream_invalid_request`. */
export function readDirectives(lines: string[], known: Known): Record<string, number | string> {
  const given: Record<string, number | string> = {}
  for (const line of lines) {
    if (line === '') refuseDirectives('the line has no key=value.', known)
    for (const word of line.split(/\s+/).filter(Boolean)) {
      const equals = word.indexOf('=')
      if (equals === -1) refuseDirectives('a word is not of the form key=value.', known)
      const key = word.slice(0, equals)
      const rule = Object.hasOwn(known.rules, key) ? known.rules[key] : undefined
      if (!rule) refuseDirectives(KEY.test(key) ? `"${key}" is not a key.` : 'a key is not known.', known)
      given[key] = readValue(key, word.slice(equals + 1), { rule, known })
    }
  }
  return given
}

function readValue(key: string, value: string, { rule, known }: { rule: Rule; known: Known }): number | string {
  if ('values' in rule) {
    if (!rule.values.includes(value)) refuseDirectives(`${key} must be ${rule.values.join(' or ')}.`, known)
    return value
  }
  const number = NUMBER.test(value) ? Number(value) : Number.NaN
  if (!(number >= rule.minimum && number <= rule.maximum)) {
    refuseDirectives(`${key} must be a whole number from ${rule.minimum} to ${rule.maximum}.`, known)
  }
  return number
}

export function refuseDirectives(why: string, { rules, param }: Known): never {
  const known = Object.entries(rules)
    .map(([key, rule]) => `${key}=${'values' in rule ? rule.values.join('|') : `${rule.minimum}..${rule.maximum}`}`)
    .join(', ')
  throw new GatewayError('upstream_invalid_request', `@sandbox: ${why} Known are: ${known}.`, {
    param,
    upstream_status: 400,
  })
}
