/** Decides which values of a configuration may be shown: those marked as no secret, so a new setting is hidden at first. */
import { isMarked, schemasAt } from '../schema/schema-at.ts'

/** What stands for a value that is not shown. */
export const MASKED = '***'

type Path = readonly (string | number)[]

/** `source`: the text in the file, where a variable was filled in. */
export function shownValue(path: Path, value: unknown, source?: string): unknown {
  if (value === null || value === undefined) return null
  if (typeof value === 'object' && Object.keys(value).length === 0) return value // there is nothing in it
  if (source !== undefined && typeof value === 'string') {
    // A default within the reference may be a secret.
    return /^\$\{([A-Za-z_]\w*|file:[^}]+)\}$/.test(source) ? source : MASKED
  }
  if (isMarked('shown', path)) return value
  if (isMarked('origin', path)) return originOf(value)
  return isClosed(path, value) ? value : MASKED
}

function originOf(value: unknown): string {
  if (typeof value !== 'string') return MASKED
  if (value.startsWith('sqlite:') || value === '*') return value
  try {
    const { protocol, host } = new URL(value)
    return host === '' ? MASKED : `${protocol}//${host}`
  } catch {
    return MASKED
  }
}

/** Whether the schema allows only a number, a boolean, or words of a list at this place, and this is one. */
function isClosed(path: Path, value: unknown): boolean {
  return schemasAt(path).some((schema) => {
    if (schema.enum) return schema.enum.includes(value)
    if (schema.const !== undefined) return schema.const === value
    if (schema.type === 'number' || schema.type === 'integer') return typeof value === 'number'
    return schema.type === 'boolean' && typeof value === 'boolean'
  })
}
