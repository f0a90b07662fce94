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
  const { kept, wishes } = split(schema)
  for (const name of NAMED) {
    const members = kept[name]
    if (isRecord(members))
      kept[name] = Object.fromEntries(Object.entries(members).map(([key, one]) => [key, vendorSchema(one)]))
  }
  for (const name of LISTED) if (Array.isArray(kept[name])) kept[name] = kept[name].map(vendorSchema)
  for (const name of SINGLE) if (isRecord(kept[name])) kept[name] = vendorSchema(kept[name])
  if (kept.type === 'object' || isRecord(kept.properties)) kept.additionalProperties ??= false
  if (wishes.length > 0) {
    kept.description = [kept.description, `{${wishes.join(', ')}}`]
      .filter((text) => typeof text === 'string')
      .join('\n\n')
  }
  return kept
}

function split(schema: JsonRecord): { kept: JsonRecord; wishes: string[] } {
  const kept: JsonRecord = {}
  const wishes: string[] = []
  for (const [name, value] of Object.entries(schema)) {
    // The vendor knows 0 and 1 of this one.
    const isRefused = REFUSED.includes(name) || (name === 'minItems' && Number(value) > 1)
    if (isRefused && typeof value !== 'object') wishes.push(`${name}: ${String(value)}`)
    else kept[name] = value
  }
  return { kept, wishes }
}
