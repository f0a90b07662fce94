/** A JSON Schema as the vendor takes one: with the keywords that it knows, and the others told in words. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'

/** What the vendor documents for `responseJsonSchema` and `parametersJsonSchema`, besides members that hold schemas. */
const KNOWN = new Set([
  '$id',
  '$ref',
  '$anchor',
  'type',
  'format',
  'title',
  'description',
  'enum',
  'required',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'propertyOrdering',
])
/** Bounds that the vendor does not know; as words they still are wishes. */
const WISHES = new Set([
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'default',
])
/** Members that hold schemas by name, in a list, or one, and the vendor's name for each. */
const NAMED: Record<string, string> = { properties: 'properties', $defs: '$defs', definitions: '$defs' }
const LISTED: Record<string, string> = { anyOf: 'anyOf', oneOf: 'oneOf', prefixItems: 'prefixItems' }
const SINGLE: Record<string, string> = { items: 'items', additionalProperties: 'additionalProperties' }

/** A copy; what is no schema is handed back as it is. */
export function vendorSchema(schema: unknown): unknown {
  if (schema === true) return {}
  if (!isRecord(schema)) return schema
  const whole = Array.isArray(schema.allOf) ? merged(schema) : schema
  if (typeof whole.$ref === 'string') return referenceOf(whole, whole.$ref)
  const kept: JsonRecord = {}
  const wishes: string[] = []
  for (const [name, value] of Object.entries(whole)) {
    const named = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
    const listed = Object.hasOwn(LISTED, name) ? LISTED[name] : undefined
    const single = Object.hasOwn(SINGLE, name) ? SINGLE[name] : undefined
    if (named && isRecord(value)) kept[named] = { ...(kept[named] as JsonRecord | undefined), ...schemasByName(value) }
    else if (listed && Array.isArray(value)) kept[listed] = value.map(vendorSchema)
    else if (single) Object.assign(kept, singleOf(name, value))
    else if (name === 'const') Object.assign(kept, constantOf(value, whole))
    else if (KNOWN.has(name)) kept[name] = value
    else if (WISHES.has(name) && typeof value !== 'object') wishes.push(`${name}: ${String(value)}`)
  }
  if (wishes.length > 0) kept.description = withWishes(kept.description, wishes)
  return kept
}

const schemasByName = (members: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(members).map(([name, one]) => [name, vendorSchema(one)]))

function singleOf(name: string, value: unknown): JsonRecord {
  // The older way of writing a tuple.
  if (name === 'items' && Array.isArray(value)) return { prefixItems: value.map(vendorSchema) }
  return { [name]: typeof value === 'boolean' && name === 'additionalProperties' ? value : vendorSchema(value) }
}

/** The vendor knows lists of texts and numbers. */
function constantOf(value: unknown, { type }: JsonRecord): JsonRecord {
  if (typeof value === 'string' || typeof value === 'number') return { enum: [value] }
  if (value === null) return { type: 'null' }
  return { ...(type === undefined ? { type: typeof value } : {}), description: `Always ${JSON.stringify(value)}.` }
}

/** Beside a reference only what begins with `$` may stand. */
function referenceOf(schema: JsonRecord, address: string): JsonRecord {
  const kept: JsonRecord = { $ref: address.replace(/^#\/definitions\//, '#/$defs/') } // the older name of the same place
  const definitions = [schema.definitions, schema.$defs].filter(isRecord)
  if (definitions.length > 0) kept.$defs = schemasByName(Object.assign({}, ...definitions))
  return kept
}

/** All that must hold at once, as one schema. */
function merged({ allOf, ...rest }: JsonRecord): JsonRecord {
  const parts = [rest, ...(Array.isArray(allOf) ? allOf : [])]
    .filter(isRecord)
    .map((part) => (Array.isArray(part.allOf) ? merged(part) : part))
  const whole: JsonRecord = {}
  for (const part of parts) {
    for (const [name, value] of Object.entries(part)) {
      const before = whole[name]
      if (isRecord(before) && isRecord(value)) whole[name] = { ...before, ...value }
      else if (name === 'required' && Array.isArray(before) && Array.isArray(value))
        whole[name] = [...new Set([...before, ...value])]
      else whole[name] ??= value
    }
  }
  return whole
}

function withWishes(description: unknown, wishes: string[]): string {
  return [description, `{${wishes.join(', ')}}`].filter((text) => typeof text === 'string').join('\n\n')
}
