/** JSON that others wrote, looked at member by member and believed in nothing. */
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
