/**
 * Converts a JSON Schema to the vendor's subset: every object is closed, and unsupported constraints move to the
 * description.
 */
import { isRecord, isScalar, type JsonRecord, scalarText } from '../../../kit/json.ts'

/** Keywords that the vendor's structured output refuses. They are added to the description as hints. */
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
/** Members that hold schemas by name, in a list, or one schema. */
const NAMED = ['properties', '$defs', 'definitions']
const LISTED = ['anyOf', 'allOf', 'oneOf', 'prefixItems']
const SINGLE = ['items', 'additionalProperties', 'not']

/** Returns a copy. A value that is not a schema is returned unchanged. */
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
    // The vendor supports only 0 and 1 for `minItems`.
    const isRefused = REFUSED.includes(name) || (name === 'minItems' && Number(value) > 1)
    if (isRefused && isScalar(value)) hints.push(`${name}: ${scalarText(value)}`)
    else supported[name] = value
  }
  return { supported, hints }
}
