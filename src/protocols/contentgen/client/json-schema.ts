/** Converts a schema in the vendor's format (`type: "OBJECT"`, `nullable`) to a JSON Schema. */
import { asRecord, isRecord } from '../../../kit/json.ts'
import type { JsonObject } from './schema.ts'

/** Numbers that the vendor's clients send as strings. */
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])
/** The order of the properties is the order in which they appear. */
const LEFT_OUT = new Set(['nullable', 'propertyOrdering', 'type', 'example'])
/** Members that hold schemas by name, in a list, or one schema, including those that only JSON Schema has. */
const NAMED = new Set(['$defs', 'definitions'])
const LISTED = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const SINGLE = new Set(['items', 'additionalProperties'])

/** Returns a copy. A value that is not a schema is returned unchanged. The depth of the body was checked before. */
export function jsonSchemaOf(schema: unknown): unknown {
  if (!isRecord(schema)) return schema
  const { type, nullable, propertyOrdering, example } = schema
  const converted: JsonObject = {}
  const named = typeof type === 'string' && type !== 'TYPE_UNSPECIFIED' ? type.toLowerCase() : undefined
  if (named !== undefined) converted.type = nullable === true ? [named, 'null'] : named
  else if (type !== undefined && typeof type !== 'string') converted.type = type
  for (const [name, value] of Object.entries(schema)) {
    if (LEFT_OUT.has(name)) continue
    if (name === 'properties' && isRecord(value)) converted.properties = propertiesOf(value, propertyOrdering)
    else if (NAMED.has(name) && isRecord(value)) converted[name] = propertiesOf(value, undefined)
    else if (LISTED.has(name) && Array.isArray(value)) converted[name] = value.map(jsonSchemaOf)
    else if (SINGLE.has(name)) converted[name] = jsonSchemaOf(value)
    else if (COUNTS.has(name) && typeof value === 'string' && value !== '') converted[name] = Number(value)
    else converted[name] = value
  }
  if (example !== undefined) converted.examples = [example]
  if (nullable !== true) return converted
  if (Array.isArray(converted.enum)) converted.enum = [...converted.enum, null]
  if (named === undefined && Array.isArray(converted.anyOf)) converted.anyOf = [...converted.anyOf, { type: 'null' }]
  return converted
}

function propertiesOf(properties: JsonObject, order: unknown): JsonObject {
  const first = Array.isArray(order)
    ? order.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name))
    : []
  const names = new Set([...first, ...Object.keys(properties)])
  return Object.fromEntries([...names].map((name) => [name, jsonSchemaOf(properties[name])]))
}

/** The keywords that providers with strict schemas are known to support. */
const STRICT = new Set([
  '$defs',
  '$ref',
  '$schema',
  'additionalProperties',
  'anyOf',
  'description',
  'enum',
  'items',
  'properties',
  'required',
  'title',
  'type',
])

/** Whether a provider can apply the schema strictly: every object is closed and requires all its members. */
export function isStrict(schema: unknown): boolean {
  if (!isRecord(schema)) return false
  if (Object.keys(schema).some((name) => !STRICT.has(name))) return false
  const { type, properties, required, additionalProperties, items, anyOf, $defs } = schema
  const members = asRecord(properties)
  if (type === 'object' || isRecord(properties)) {
    const names = Array.isArray(required) ? required : []
    if (additionalProperties !== false || Object.keys(members).some((name) => !names.includes(name))) return false
  }
  const inner = [
    ...Object.values(members),
    ...(items === undefined ? [] : [items]),
    ...(Array.isArray(anyOf) ? anyOf : []),
    ...(isRecord($defs) ? Object.values($defs) : []),
  ]
  return inner.every(isStrict)
}
