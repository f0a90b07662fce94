/** Removes what a recorded request must not carry into the repository: prose, keys, paths, ids and dates. */
import { fillerFor, isFiller } from './filler.ts'

export type Recorded = { method: string; path: string; headers: Record<string, string>; body: unknown }

/** Where the fixtures say that the agent ran. */
export const PROJECT = '/home/user/project'
const PACKAGES = '/usr/lib/node_modules'
const HOME = '/home/user'

/** Keys, and what belongs to one connection. */
const DROPPED = new Set([
  ...['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'cookie', 'proxy-authorization'],
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding', 'traceparent', 'tracestate'],
])

/** Strings that are names, not prose, by the member that holds them; a list holds its own. */
const NAMES = new Set([
  ...['type', 'role', 'name', 'model', 'id', 'call_id', 'tool_use_id', 'tool_call_id', 'status', 'namespace', 'phase'],
  ...['enum', 'required', 'const', '$schema', '$ref', 'format', 'pattern', 'default', 'syntax', 'mimeType', 'ttl'],
  ...['effort', 'verbosity', 'keep', 'display', 'include', 'tool_choice', 'execution', 'summary', 'context', 'mode'],
  ...['encrypted_content', 'signature', 'thoughtSignature', 'prompt_cache_key', 'media_type', 'propertyOrdering'],
])
/** Members that hold names and ids throughout, or the arguments that the script gave. */
const KEPT = new Set(['metadata', 'client_metadata', 'args', 'input', 'arguments', 'user_id'])

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
const LONG_ID = /(?<![A-Za-z0-9])(ses_)?([0-9a-f]{32,}|(?<=ses_)[A-Za-z0-9]{20,})(?![A-Za-z0-9])/g
const TIME = /("turn_started_at_unix_ms":)\d+/g

export type Scrubber = (request: Recorded) => Recorded

/** Where the agent ran and is installed, and the phrases that stay. */
type Where = { project: string; home: string; packages: string; ours: string[] }

/** One scrubber for all requests of a run: the same id becomes the same stand-in in each of them. */
export function createScrubber({ project, home, packages, ours }: Where): Scrubber {
  const standIns = new Map<string, string>()
  const phrases = [...ours, PROJECT, HOME, PACKAGES]
  const standInFor = (id: string, make: (count: number) => string) => {
    const made = standIns.get(id) ?? make(standIns.size + 1)
    standIns.set(id, made)
    return made
  }
  const withoutIds = (text: string) =>
    text
      .replaceAll(project, PROJECT)
      .replaceAll(home, HOME)
      .replaceAll(packages, PACKAGES)
      .replaceAll(UUID, (id) => standInFor(id, (count) => `00000000-0000-7000-8000-${String(count).padStart(12, '0')}`))
      .replaceAll(LONG_ID, (id, prefix: string = '') =>
        standInFor(id, (count) => `${prefix}${String(count).padStart(id.length - prefix.length, '0')}`),
      )
      .replaceAll(TIME, '$11790000000000')
  const text = (value: string, key: string, isKept: boolean): string => {
    const plain = withoutIds(value)
    if (isKept || isName(plain, key)) return plain
    if (key === 'definition') return grammarOf(plain.length)
    return fillerFor(plain, phrases)
  }
  const walk = (value: unknown, key: string, isKept: boolean): unknown => {
    if (typeof value === 'string') return text(value, key, isKept)
    if (Array.isArray(value)) return value.map((item) => walk(item, key, isKept))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, walk(inner, name, isKept || isKeptMember(key, name, inner))]),
    )
  }
  return ({ method, path, headers, body }) => ({
    method,
    path,
    headers: Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => !DROPPED.has(name))
        .map(([name, value]) => [name, withoutIds(value)]),
    ),
    body: walk(body, '', false),
  })
}

/** The list `input` of the responses API is a conversation, and a schema may have a property of any name. */
const isKeptMember = (parent: string, name: string, value: unknown): boolean =>
  KEPT.has(name) && !Array.isArray(value) && parent !== 'properties'

/** A name has no blank in it. */
const isName = (value: string, key: string): boolean => NAMES.has(key) && !/\s/.test(value)

/** A grammar of the given length: it accepts any text, and the rest is a comment. */
function grammarOf(length: number): string {
  const grammar = 'start: TEXT\nTEXT: /[\\s\\S]+/\n'
  return length < grammar.length + 4 ? grammar : `${grammar}// ${'a'.repeat(length - grammar.length - 4)}\n`
}

/** Long strings of a fixture that are neither filler nor names: what the check of the fixtures refuses. */
export function foreignProse({ headers, body }: Recorded, ours: readonly string[]): string[] {
  const found: string[] = []
  const phrases = [...ours, PROJECT, HOME, PACKAGES]
  const isFine = (value: string, key: string, isKept: boolean) =>
    value.length <= 40 ||
    (isKept ? !PROSE.test(value) : isName(value, key)) ||
    isFiller(value, phrases) ||
    (key === 'definition' && OWN_GRAMMAR.test(value))
  const walk = (value: unknown, key: string, isKept: boolean): void => {
    if (typeof value === 'string') {
      const inner = isKept ? jsonIn(value) : undefined
      if (inner !== undefined) walk(inner, key, true)
      else if (!isFine(value, key, isKept)) found.push(`${key}: ${value.slice(0, 80)}`)
    } else if (typeof value === 'object' && value !== null) {
      const isList = Array.isArray(value)
      for (const [name, inner] of Object.entries(value))
        walk(inner, isList ? key : name, isKept || (!isList && isKeptMember(key, name, inner)))
    }
  }
  walk(body, '', false)
  for (const name of Object.keys(headers)) if (DROPPED.has(name)) found.push(`header ${name}`)
  return found
}

/** Arguments and metadata are objects written as text. */
function jsonIn(value: string): unknown {
  if (!value.startsWith('{')) return undefined
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}

/** Eight words in a row: more than the arguments of the script have. */
const PROSE = /(?:[A-Za-z]+[ ,.:;'"]+){8}/
const OWN_GRAMMAR = /^start: TEXT\n.*\n\/\/ a+\n$/
