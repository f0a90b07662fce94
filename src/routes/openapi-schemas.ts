/** The schemas of the OpenAPI document: those with a title as components, those of requests with what requests may omit. */

export type Json = { [name: string]: unknown }

export type Components = {
  all: Record<string, Json>
  use(schema: unknown): Json
  /** Of a body: `null` stands for an absent member, since every endpoint reads it so. */
  useRequest(schema: unknown, options: { isDeep: boolean }): Json
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
  const use = (schema: unknown): Json => place(schema, (value) => inner(value) as Json)
  const inner = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(nested)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, nested(member)]))
  }
  const nested = (value: unknown): unknown => {
    const isTitled = typeof value === 'object' && value !== null && typeof (value as Json).title === 'string'
    return isTitled ? use(value) : inner(value)
  }
  const useRequest: Components['useRequest'] = (schema, { isDeep }) =>
    place(schema, (value) => {
      const change = (member: Json) => orNull(withoutDefault(member))
      return isDeep ? mapNested(inner(value) as Json, change) : mapOptional(inner(value) as Json, change)
    })
  const useForm = (schema: unknown, files: string[]): Json => {
    const { title: _, ...body } = mapOptional(inner(schema) as Json, withoutDefault)
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

/** Of objects at any depth. Components stay as they are: responses use some of them too. */
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
