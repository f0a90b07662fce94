/** The schemas of the OpenAPI document: those with a title as components, those of requests with what requests may omit. */
import type { Operation } from '../spec/operation.ts'

export type Json = { [name: string]: unknown }

export type Components = {
  all: Record<string, Json>
  use(schema: unknown): Json
  /** Of a body: `null` stands for an absent member, since every endpoint reads it so. */
  useRequest(schema: unknown, nested_nulls: Operation['nested_nulls']): Json
  /** Of the same body as a form, in which these fields can be files. */
  useForm(schema: unknown, files: string[]): Json
}

const FILE = { type: 'string', contentMediaType: 'application/octet-stream', description: 'A file, or text.' }

/** Schemas with a title stand once among the components; wherever they are used, a reference does. */
export function createComponents(): Components {
  const all: Record<string, Json> = {}
  const place = (schema: unknown, render: (schema: unknown) => Json): Json => {
    const { title } = schema as { title?: string }
    if (title === undefined) return render(schema)
    if (!(title in all)) {
      all[title] = {}
      all[title] = render(schema)
    }
    return { $ref: `#/components/schemas/${title}` }
  }
  /** The same value; `useTitled` replaces the schemas with a title in it. */
  const inner = (value: unknown, useTitled: (schema: unknown) => Json): unknown => {
    const nested = (member: unknown): unknown => {
      const isTitled = typeof member === 'object' && member !== null && typeof (member as Json).title === 'string'
      return isTitled ? useTitled(member) : inner(member, useTitled)
    }
    if (Array.isArray(value)) return value.map(nested)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, nested(member)]))
  }
  const use = (schema: unknown): Json => place(schema, (value) => inner(value, use) as Json)
  const change = (member: Json) => orNull(withoutDefault(member))
  const useDeep = (schema: unknown): Json => place(schema, (value) => mapNested(inner(value, useDeep) as Json, change))
  const useRequest: Components['useRequest'] = (schema, nested_nulls) => {
    if (nested_nulls === true) return useDeep(schema)
    return place(schema, (one) => mapOptional(inner(one, use) as Json, change))
  }
  const useForm = (schema: unknown, files: string[]): Json => {
    const { title: _, ...body } = mapOptional(inner(schema, use) as Json, withoutDefault)
    const properties = { ...(body.properties as Record<string, Json>) }
    for (const name of files) properties[name] = fileLike(properties[name] ?? {})
    return { ...body, properties }
  }
  return { all, use, useRequest, useForm }
}

function mapOptional(schema: Json, change: (member: Json) => Json): Json {
  const { properties, required } = schema as { properties?: Record<string, Json>; required?: string[] }
  if (properties === undefined) return schema
  const members = Object.entries(properties).map(([name, member]) =>
    required?.includes(name) ? [name, member] : [name, change(member)],
  )
  return { ...schema, properties: Object.fromEntries(members) }
}

/** Of objects at any depth. No response uses a component of such a request. */
function mapNested(schema: Json, change: (member: Json) => Json): Json {
  const mapped = mapOptional(schema, change)
  const { properties, items, anyOf } = mapped as { properties?: Record<string, Json>; items?: Json; anyOf?: Json[] }
  const inside = (one: Json) => mapNested(one, change)
  return {
    ...mapped,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, inside(member)])),
    }),
    ...(items && { items: inside(items) }),
    ...(anyOf && { anyOf: anyOf.map(inside) }),
  }
}

/** Generators of types take a field with a `default` for one that is always there, so the description says it instead. */
function withoutDefault(member: Json): Json {
  if (!('default' in member)) return mapOptional(member, withoutDefault)
  const { default: value, description = '', ...rest } = member
  const text = String(description)
  return { ...rest, description: /\bdefault\b/i.test(text) ? text : `${text} Default ${JSON.stringify(value)}.`.trim() }
}

function orNull(member: Json): Json {
  const { type, anyOf, description, ...rest } = member
  const described = description === undefined ? {} : { description }
  if (Array.isArray(anyOf)) {
    return anyOf.some((one) => one.type === 'null') ? member : { ...member, anyOf: [...anyOf, { type: 'null' }] }
  }
  if ('enum' in rest || 'const' in rest || '$ref' in rest) {
    return { anyOf: [{ ...(type === undefined ? {} : { type }), ...rest }, { type: 'null' }], ...described }
  }
  // Without a type a schema allows every value.
  return typeof type === 'string' ? { ...member, type: [type, 'null'] } : member
}

/** One file, or several where the field of a JSON body can be a list. */
function fileLike({ type, anyOf, description }: Json): Json {
  const isList = type === 'array' || (Array.isArray(anyOf) && anyOf.some((one) => one.type === 'array'))
  const described = description === undefined ? {} : { description }
  return isList ? { anyOf: [FILE, { type: 'array', items: FILE }], ...described } : { ...FILE, ...described }
}
