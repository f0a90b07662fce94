/** Describes schemas for the tables of the manual: the type of a value in a few words. */
import { PROVIDER_KINDS } from '../../src/config/schema/provider-kinds.ts'
import { isRecord } from '../../src/kit/json.ts'
import { ADMIN_ROLES } from '../../src/spec/admin.ts'
import { ENDPOINT_FAMILIES } from '../../src/spec/endpoint-family.ts'
import { code, codes } from './table.ts'

export type Schema = { [name: string]: unknown }

export const membersOf = (schema: Schema): Record<string, Schema> => (schema.properties ?? {}) as Record<string, Schema>

/** The schema of the values of a map from free names. */
export function mapOf({ patternProperties, additionalProperties }: Schema): Schema | undefined {
  if (isRecord(patternProperties)) return Object.values(patternProperties)[0] as Schema
  return isRecord(additionalProperties) ? additionalProperties : undefined
}

/** Objects have the name that `nameOf` gives them; without it they list their members. */
export function typeOf(schema: Schema, nameOf?: (schema: Schema) => string): string {
  if (Array.isArray(schema.anyOf)) return formsOf([...new Set(schema.anyOf.map((form) => typeOf(form, nameOf)))])
  if (Array.isArray(schema.enum)) return namesOf(schema.enum.map(String))
  if (schema.title === 'rate limits') return '[rate limits](../how-to/limit-requests.md)'
  if (schema.const !== undefined) return code(String(schema.const))
  if (schema.type === 'array') return `list of ${typeOf((schema.items ?? {}) as Schema, nameOf)}`
  if (schema.type === 'object') return objectType(schema, nameOf)
  if (schema.type === 'string') return 'text'
  if (schema.type === undefined) return 'any'
  return `${schema.type}${rangeOf(schema)}`
}

function formsOf(forms: string[]): string {
  const [one = '', other] = forms
  return forms.length === 2 && other === `list of ${one}` ? `one or a list of ${one}` : forms.join(' or ')
}

const LISTED_ELSEWHERE = [
  { names: [...ADMIN_ROLES], type: '[a role](../how-to/administrators.md#roles)' },
  { names: ['budget.threshold_reached', 'disk.low'], type: '[events](../how-to/alerts.md#what-you-are-told-of)' },
  { names: PROVIDER_KINDS, type: '[a kind](provider-kinds.md)' },
  { names: ENDPOINT_FAMILIES, type: '[families](../how-to/models.md#endpoint-families)' },
]

const namesOf = (names: string[]): string =>
  LISTED_ELSEWHERE.find((list) => list.names.every((name: string) => names.includes(name)))?.type ?? codes(names)

function objectType(schema: Schema, nameOf?: (schema: Schema) => string): string {
  if (schema.properties) {
    const short = SHORT_OBJECTS.find((object) => isOf(object, schema))
    if (short) return short.type
    return nameOf ? nameOf(schema) : `object: ${codes(Object.keys(membersOf(schema)))}`
  }
  const values = mapOf(schema)
  return values && Object.keys(values).length > 0 ? `map to ${typeOf(values, nameOf)}` : 'map'
}

/** Objects with few members, which the page of settings explains at its beginning. */
const SHORT_OBJECTS = [
  { type: 'range', members: ['minimum', 'maximum', 'default'] },
  { type: 'choice', members: ['values', 'default'] },
  { type: 'choice or range', members: ['values', 'minimum', 'maximum', 'default'] },
]
const isOf = ({ members }: { members: string[] }, schema: Schema): boolean =>
  Object.keys(membersOf(schema)).every((name) => members.includes(name))
export const isShort = (schema: Schema): boolean => SHORT_OBJECTS.some((object) => isOf(object, schema))

/** Such as ` 1-64`, ` >0` or ` ≥1`. */
function rangeOf({ minimum, exclusiveMinimum, maximum }: Schema): string {
  const low =
    typeof minimum === 'number' ? `${minimum}` : typeof exclusiveMinimum === 'number' ? `>${exclusiveMinimum}` : ''
  if (typeof maximum !== 'number') return low && ` ${low.startsWith('>') ? low : `≥${low}`}`
  return ` ${low && `${low}–`}${low ? '' : '≤'}${maximum}`
}
