/** Converts a JSON Schema to the vendor's subset. Unsupported constraints move to the description. */
import { isRawNumber, isRecord, isScalar, type JsonRecord, scalarText } from '../../../kit/json.ts'

/**
 * The keywords that the vendor documents for `responseJsonSchema` and `parametersJsonSchema`, except members that
 * hold schemas.
 */
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
/** Constraints that the vendor does not support. They are added to the description as hints. */
const HINTS = new Set([
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
/** Members that hold schemas by name, in a list, or one schema, with the vendor's name for each. */
const NAMED: Record<string, string> = { properties: 'properties', $defs: '$defs', definitions: '$defs' }
const LISTED: Record<string, string> = { anyOf: 'anyOf', oneOf: 'oneOf', prefixItems: 'prefixItems' }
const SINGLE: Record<string, string> = { items: 'items', additionalProperties: 'additionalProperties' }

/** Returns a copy. A value that is not a schema is returned unchanged. */
export function vendorSchema(schema: unknown): unknown {
  if (schema === true) return {}
  if (!isRecord(schema)) return schema
  const whole = Array.isArray(schema.allOf) ? merged(schema) : schema
  if (typeof whole.$ref === 'string') return referenceOf(whole, whole.$ref)
  const supported: JsonRecord = {}
  const hints: string[] = []
  for (const [name, value] of Object.entries(whole)) {
    const named = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
    const listed = Object.hasOwn(LISTED, name) ? LISTED[name] : undefined
    const single = Object.hasOwn(SINGLE, name) ? SINGLE[name] : undefined
    if (named && isRecord(value))
      supported[named] = { ...(supported[named] as JsonRecord | undefined), ...schemasByName(value) }
    else if (listed && Array.isArray(value)) supported[listed] = value.map(vendorSchema)
    else if (single) Object.assign(supported, singleOf(name, value))
    else if (name === 'const') Object.assign(supported, constantOf(value, whole))
    else if (KNOWN.has(name)) supported[name] = value
    else if (HINTS.has(name) && isScalar(value)) hints.push(`${name}: ${scalarText(value)}`)
  }
  if (hints.length > 0) supported.description = withHints(supported.description, hints)
  return supported
}

const schemasByName = (members: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(members).map(([name, one]) => [name, vendorSchema(one)]))

function singleOf(name: string, value: unknown): JsonRecord {
  // The older form of a tuple.
  if (name === 'items' && Array.isArray(value)) return { prefixItems: value.map(vendorSchema) }
  return { [name]: typeof value === 'boolean' && name === 'additionalProperties' ? value : vendorSchema(value) }
}

/** The vendor supports enums of strings and numbers. */
function constantOf(value: unknown, { type }: JsonRecord): JsonRecord {
  if (typeof value === 'string' || typeof value === 'number' || isRawNumber(value)) return { enum: [value] }
  if (value === null) return { type: 'null' }
  return { ...(type === undefined ? { type: typeof value } : {}), description: `Always ${JSON.stringify(value)}.` }
}

/** Beside a reference only members that start with `$` are allowed. */
function referenceOf(schema: JsonRecord, address: string): JsonRecord {
  const supported: JsonRecord = { $ref: address.replace(/^#\/definitions\//, '#/$defs/') } // the older name of the same member
  const definitions = [schema.definitions, schema.$defs].filter(isRecord)
  if (definitions.length > 0) supported.$defs = schemasByName(Object.assign({}, ...definitions))
  return supported
}

/** Merges all schemas of `allOf` into one. */
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

function withHints(description: unknown, hints: string[]): string {
  return [description, `{${hints.join(', ')}}`].filter((text) => typeof text === 'string').join('\n\n')
}
