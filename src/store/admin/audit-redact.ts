/** Removes secrets from what the audit log is given, and bounds it. */
import { isRecord } from '../../kit/json.ts'
import { SECRET_TEXT } from '../../kit/secret-text.ts'

/** Names of members whose values are never stored, in any spelling. `prefix` is what is shown of a secret. */
const SECRET_NAME =
  /secret|passw|pwd|credential|hash|signature|authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|auth[-_]?token|access[-_]?token|refresh[-_]?token|bearer|^keys?$|^headers$/i
/** `https://user:password@host`. The scheme is bounded, so that no text takes quadratic time. */
const USER_INFO = /(\b[a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@]+@/gi

const REDACTED = '[redacted]'
const MAX_DEPTH = 12
const MAX_TEXT = 1_000
const MAX_MEMBERS = 500
/** Of the JSON text of one state. */
const MAX_CHARACTERS = 32_768

/** A copy without secrets, of bounded size. */
export function redacted(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactedText(value)
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : (value ?? null)
  if (depth >= MAX_DEPTH) return '[too deep]'
  if (Array.isArray(value)) return value.slice(0, MAX_MEMBERS).map((item) => redacted(item, depth + 1))
  const members = Object.entries(value).slice(0, MAX_MEMBERS)
  return Object.fromEntries(
    members.map(([name, member]) => [
      redactedText(name),
      isSecret(name, member) ? REDACTED : redacted(member, depth + 1),
    ]),
  )
}

const isSecret = (name: string, member: unknown): boolean =>
  SECRET_NAME.test(name) && member !== null && member !== undefined && typeof member !== 'boolean'

/** The query of an address, which may carry a key. */
function withoutQuery(word: string): string {
  const at = word.indexOf('?', word.indexOf('://') + 3)
  return at < 0 || !word.includes('://') ? word : `${word.slice(0, at)}?${REDACTED}`
}

/** A JSON Web Token: three parts, of which the first begins with `{"`. All that follows in its word is removed with it. */
function withoutWebToken(word: string): string {
  const at = word.search(/\beyJ/)
  return at >= 0 && word.slice(at).split('.', 3).length === 3 ? `${word.slice(0, at)}${REDACTED}` : word
}

/** Cut after the secrets were removed: a cut could leave a part of one that no pattern finds. */
function redactedText(text: string): string {
  let clean = text
    .slice(0, MAX_CHARACTERS)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(/\S+/g, withoutQuery)
    .replace(/[A-Za-z0-9_.-]+/g, withoutWebToken)
  for (const pattern of SECRET_TEXT) clean = clean.replace(pattern, REDACTED)
  return clean.length <= MAX_TEXT ? clean : `${clean.slice(0, MAX_TEXT)}...`
}

/** Both states as JSON text; of two objects only the members that differ. Null: there is none. */
export function stateTexts(before: unknown, after: unknown): { before: string | null; after: string | null } {
  const [old, now] = [redacted(before), redacted(after)]
  if (!isRecord(old) || !isRecord(now)) return { before: textOf(old), after: textOf(now) }
  // Compared as they were: two secrets that differ are redacted to the same text.
  const [raw_old, raw_now] = [before as Record<string, unknown>, after as Record<string, unknown>]
  const changed = [...new Set([...Object.keys(raw_old), ...Object.keys(raw_now)])].filter(
    (name) => JSON.stringify(raw_old[name]) !== JSON.stringify(raw_now[name]),
  )
  const only = (state: Record<string, unknown>) =>
    Object.fromEntries(changed.map(redactedText).flatMap((name) => (name in state ? [[name, state[name]]] : [])))
  return { before: textOf(only(old)), after: textOf(only(now)) }
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  const text = JSON.stringify(value)
  return text.length <= MAX_CHARACTERS ? text : JSON.stringify({ too_large: text.length })
}
