/** Schemas in words, for the tables of the manual: the type of a value, its meaning and its default. */
import { PROVIDER_KINDS } from '../../src/config/schema/provider-kinds.ts'
import { isRecord } from '../../src/kit/json.ts'
import { code, codes } from './table.ts'

export type Schema = { [name: string]: unknown }

export const membersOf = (schema: Schema): Record<string, Schema> => (schema.properties ?? {}) as Record<string, Schema>

/** The schema of the values of a map from free names. */
export function mapOf({ patternProperties, additionalProperties }: Schema): Schema | undefined {
  if (isRecord(patternProperties)) return Object.values(patternProperties)[0] as Schema
  return isRecord(additionalProperties) ? additionalProperties : undefined
}

export function typeOf(schema: Schema): string {
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map(typeOf).join(' or ')
  if (Array.isArray(schema.enum)) return namesOf(schema.enum.map(String))
  if (schema.title === 'rate limits') return '[rate limits](../how-to/limit-requests.md)'
  if (schema.const !== undefined) return code(String(schema.const))
  if (schema.type === 'array') return `list of ${typeOf((schema.items ?? {}) as Schema)}`
  if (schema.type === 'object')
    return schema.properties ? `object: ${codes(Object.keys(membersOf(schema)))}` : mapType(schema)
  if (schema.type === 'string')
    return `text${typeof schema.pattern === 'string' ? ` matching ${code(schema.pattern)}` : ''}`
  if (schema.type === undefined) return 'any'
  return `${schema.type}${rangeOf(schema)}`
}

const namesOf = (names: string[]): string =>
  names.length === PROVIDER_KINDS.length ? '[a kind](provider-kinds.md)' : codes(names)

function mapType(schema: Schema): string {
  const values = mapOf(schema)
  return values && Object.keys(values).length > 0 ? `map to ${typeOf(values)}` : 'map'
}

function rangeOf({ minimum, exclusiveMinimum, maximum }: Schema): string {
  const low =
    typeof minimum === 'number'
      ? `from ${minimum}`
      : typeof exclusiveMinimum === 'number'
        ? `above ${exclusiveMinimum}`
        : ''
  const high = typeof maximum === 'number' ? `to ${maximum}` : ''
  return low || high ? ` ${[low, high].filter(Boolean).join(' ')}` : ''
}

/** A description ends with its default: `... Default 10.` */
export function describedBy({ description }: Schema): { meaning: string; fallback: string } {
  if (typeof description !== 'string') return { meaning: '', fallback: '' }
  const [, meaning = '', fallback = ''] = /^(.*?)\s*\bDefault:? ((?:(?!\. ).)*?)\.?$/s.exec(description) ?? []
  return fallback ? { meaning, fallback: fallback.replaceAll('<', '\\<') } : { meaning: description, fallback: '' }
}
