/** Writes the types of the admin API for the console, `console/src/api/types.ts`, from the gateway's own OpenAPI document. */
import { openApi } from './paths.ts'

type Schema = {
  $ref?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  type?: string | string[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
}
type Parameter = { name: string; in: string; required?: boolean; schema: Schema }
type Operation = {
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}
type Document = { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } }

/** The paths that the console uses. */
const USED = /^\/(admin\/v1\/|healthz|readyz)/

export async function consoleTypes(): Promise<{ path: string; text: string }> {
  const document = (await openApi()) as unknown as Document
  const names = new Set<string>()
  const api: string[] = []
  for (const [path, methods] of Object.entries(document.paths)) {
    if (!USED.test(path)) continue
    for (const [method, operation] of Object.entries(methods))
      api.push(`  ${quoted(`${method.toUpperCase()} ${path}`)}: ${endpointType(operation, names)}`)
  }
  const written = new Map<string, string>()
  // A schema that is written names others.
  for (const name of names) written.set(name, typeOf(document.components.schemas[name] ?? {}, names))
  const types = [...written].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => `export type ${name} = ${text}`)
  const text = [
    '/** The types of the admin API. Generated from the OpenAPI document by `npm run docs:reference`; do not edit. */',
    ...types,
    `/** Each endpoint by its method and path. */\nexport type Api = {\n${api.join('\n')}\n}`,
  ]
  return { path: '../../console/src/api/types.ts', text: `${text.join('\n\n')}\n` }
}

function endpointType({ parameters = [], requestBody, responses }: Operation, names: Set<string>): string {
  const objectOf = (place: string) => {
    const fields = parameters.filter((parameter) => parameter.in === place)
    return fields.length === 0
      ? '{}'
      : `{ ${fields.map(({ name, schema, required }) => fieldOf(name, schema, { names, isRequired: place === 'path' || required === true })).join('; ')} }`
  }
  const body = requestBody?.content['application/json']?.schema
  const response = responses['200']?.content?.['application/json']?.schema
  return `{
    params: ${objectOf('path')}
    query: ${objectOf('query')}
    body: ${body ? typeOf(body, names) : 'undefined'}
    response: ${response ? typeOf(response, names) : 'unknown'}
  }`
}

function typeOf(schema: Schema, names: Set<string>): string {
  const { $ref, anyOf, oneOf, allOf, items, type } = schema
  const typesOf = (all: Schema[]) => [...new Set(all.map((one) => typeOf(one, names)))]
  if ($ref) {
    const name = $ref.replace(/^.*\//, '')
    names.add(name)
    return name
  }
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  const union = anyOf ?? oneOf
  if (union) return typesOf(union).join(' | ')
  if (allOf)
    return typesOf(allOf)
      .map((one) => `(${one})`)
      .join(' & ')
  if (Array.isArray(type)) return typesOf(type.map((one) => ({ ...schema, type: one }))).join(' | ')
  if (type === 'array') return `(${items ? typeOf(items, names) : 'unknown'})[]`
  if (type === 'object' || schema.properties) return objectType(schema, names)
  return (
    { string: 'string', number: 'number', integer: 'number', boolean: 'boolean', null: 'null' }[type ?? ''] ?? 'unknown'
  )
}

function objectType(schema: Schema, names: Set<string>): string {
  const { properties = {}, required = [], additionalProperties, patternProperties = {} } = schema
  const fields = Object.entries(properties).map(([name, one]) =>
    fieldOf(name, one, { names, isRequired: required.includes(name) }),
  )
  if (fields.length > 0) return `{\n  ${fields.join('\n  ')}\n}`
  const [pattern] = Object.values(patternProperties)
  const values = pattern ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
  return `Record<string, ${values ? typeOf(values, names) : 'unknown'}>`
}

const fieldOf = (name: string, schema: Schema, { names, isRequired }: { names: Set<string>; isRequired: boolean }) =>
  isRequired ? `${key(name)}: ${typeOf(schema, names)}` : `${key(name)}?: ${typeOf(schema, names)} | undefined`

const key = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name))
const literal = (value: unknown): string => (typeof value === 'string' ? quoted(value) : JSON.stringify(value))
const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
