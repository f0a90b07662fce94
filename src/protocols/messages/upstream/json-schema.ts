/** A JSON Schema as the vendor takes one: every object closed, and the bounds that it refuses told in words. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'

/** Keywords that the vendor's structured output refuses; as words they still are wishes. */
const REFUSED = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
]
/** Members that hold schemas by name, in a list, or one. */
const NAMED = ['properties', '$defs', 'definitions']
const LISTED = ['anyOf', 'allOf', 'oneOf', 'prefixItems']
const SINGLE = ['items', 'additionalProperties', 'not']

/** A copy; what is no schema is handed back as it is. */
export function vendorSchema(schema: unknown): unknown {
  if (!isRecord(schema)) return schema
  const { supported, hints } = split(schema)
  for (const name of NAMED) {
    const members = supported[name]
    if (isRecord(members))
      supported[name] = Object.fromEntries(Object.entries(members).map(([key, one]) => [key, vendorSchema(one)]))
  }
  for (const name of LISTED) if (Array.isArray(supported[name])) supported[name] = supported[name].map(vendorSchema)
  for (const name of SINGLE) if (isRecord(supported[name])) supported[name] = vendorSchema(supported[name])
  if (supported.type === 'object' || isRecord(supported.properties)) supported.additionalProperties ??= false
  if (hints.length > 0) {
    supported.description = [supported.description, `{${hints.join(', ')}}`]
      .filter((text) => typeof text === 'string')
      .join('\n\n')
  }
  return supported
}

function split(schema: JsonRecord): { supported: JsonRecord; hints: string[] } {
  const supported: JsonRecord = {}
  const hints: string[] = []
  for (const [name, value] of Object.entries(schema)) {
    // The vendor knows 0 and 1 of this one.
    const isRefused = REFUSED.includes(name) || (name === 'minItems' && Number(value) > 1)
    if (isRefused && typeof value !== 'object') hints.push(`${name}: ${String(value)}`)
    else supported[name] = value
  }
  return { supported, hints }
}
