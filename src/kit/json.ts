/** JSON from outside, read member by member without trusting its shape; and the canonical form of a value. */
import { isTooDeep } from './json-bounds.ts'

export type JsonRecord = Record<string, unknown>

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A member of a value that may be anything. */
export const memberOf = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined)

/** The parsed text; undefined where it is not JSON, or nested deeper than any of use, which recursion could not walk. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The same text for equal values: members sorted by name, no spaces, undefined members left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(',')}}`
}
