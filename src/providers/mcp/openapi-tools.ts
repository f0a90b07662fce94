/** Reads chosen operations of an OpenAPI document as tools, and makes the HTTP request of a call. */
import { matchesGlob } from '../../kit/glob.ts'
import { asRecord, isRecord, type JsonRecord, memberOf } from '../../kit/json.ts'

export type Operation = {
  name: string
  description: string
  inputSchema: JsonRecord & { type: 'object' }
  isReadOnly: boolean
  method: string
  /** Such as `/orders/{id}`. */
  path: string
  parameters: Parameter[]
  hasBody: boolean
}

type Parameter = { name: string; in: 'path' | 'query' | 'header' }
type Node = { value: unknown; depth: number }

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const MAX_OPERATIONS = 200
const MAX_DEPTH = 12
/** Of all schemas of one operation together, so that references cannot multiply without end. */
const MAX_NODES = 2_000
const MAX_DESCRIPTION = 2_000
/** Headers that decide who calls or how the message is sent are the operator's. */
const OWN_HEADERS =
  /^(authorization|cookie|host|connection|content-.*|transfer-encoding|accept-encoding|te|upgrade|proxy-.*)$/i
const NAME = /^[a-zA-Z0-9_-]{1,64}$/

/** Those whose `operationId` is chosen. An operation that has none, or no usable one, cannot be chosen. */
export function operationsOf(document: unknown, chosen: readonly string[]): Operation[] {
  const paths = asRecord(memberOf(document, 'paths'))
  const found = new Map<string, Operation>()
  for (const [path, item] of Object.entries(paths)) {
    if (!isRecord(item) || !path.startsWith('/')) continue
    for (const method of METHODS) {
      const operation = item[method]
      const name = memberOf(operation, 'operationId')
      if (!isRecord(operation) || typeof name !== 'string' || !NAME.test(name) || found.has(name)) continue
      if (found.size >= MAX_OPERATIONS || !chosen.some((pattern) => matchesGlob(pattern, name))) continue
      found.set(name, operationOf({ name, method, path, operation, shared: item.parameters }, document))
    }
  }
  return [...found.values()]
}

type Found = { name: string; method: string; path: string; operation: JsonRecord; shared: unknown }

function operationOf({ name, method, path, operation, shared }: Found, document: unknown): Operation {
  const resolver = createResolver(document)
  const lists = [operation.parameters, shared].flatMap((list) => (Array.isArray(list) ? list : []))
  const parameters: Parameter[] = []
  const properties: JsonRecord = {}
  const required: string[] = []
  for (const given of lists) {
    const parameter = resolver.target(given)
    if (!isRecord(parameter) || typeof parameter.name !== 'string' || Object.hasOwn(properties, parameter.name))
      continue
    const { name, in: place, description } = parameter
    if (place !== 'path' && place !== 'query' && (place !== 'header' || OWN_HEADERS.test(name))) continue
    parameters.push({ name, in: place })
    const schema = resolver.schema(parameter.schema)
    properties[name] = { ...schema, ...(typeof description === 'string' && { description: short(description) }) }
    if (place === 'path' || parameter.required === true) required.push(name)
  }
  const body = resolver.target(operation.requestBody)
  const content = isRecord(body) && isRecord(body.content) ? body.content['application/json'] : undefined
  const hasBody = isRecord(content) && !Object.hasOwn(properties, 'body')
  if (hasBody) {
    properties.body = resolver.schema(content.schema)
    if (isRecord(body) && body.required === true) required.push('body')
  }
  const texts = [operation.summary, operation.description].filter((text) => typeof text === 'string' && text !== '')
  return {
    name,
    method: method.toUpperCase(),
    path,
    description: short(texts.join('\n\n')) || `${method.toUpperCase()} ${path}`,
    inputSchema: { type: 'object', properties, required },
    isReadOnly: method === 'get',
    parameters,
    hasBody,
  }
}

const short = (text: string): string => (text.length > MAX_DESCRIPTION ? `${text.slice(0, MAX_DESCRIPTION)}…` : text)

/** Replaces references by what they refer to, in the same document only. */
function createResolver(document: unknown) {
  let nodes = 0

  function target(value: unknown): unknown {
    let found = value
    for (let step = 0; isRecord(found) && typeof found.$ref === 'string'; step++) {
      if (step > MAX_DEPTH || !found.$ref.startsWith('#/')) return undefined
      found = found.$ref
        .slice(2)
        .split('/')
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
        .reduce<unknown>((at, part) => (isRecord(at) && Object.hasOwn(at, part) ? at[part] : undefined), document)
    }
    return found
  }

  function inlined({ value, depth }: Node): unknown {
    const found = target(value)
    if (Array.isArray(found)) return found.map((one) => inlined({ value: one, depth }))
    if (!isRecord(found)) return found
    if (depth > MAX_DEPTH || ++nodes > MAX_NODES) return {}
    return Object.fromEntries(
      Object.entries(found).map(([name, one]) => [name, inlined({ value: one, depth: depth + 1 })]),
    )
  }

  return {
    target,
    schema: (value: unknown): JsonRecord => asRecord(inlined({ value, depth: 0 })),
  }
}

/** Throws an error that says which argument is wrong. */
export function requestOf(operation: Operation, args: JsonRecord, base_url: string) {
  const { method, path, parameters, hasBody } = operation
  const headers: Record<string, string> = { accept: 'application/json' }
  const query = new URLSearchParams()
  let filled = path
  let decoded = path
  for (const { name, in: place } of parameters) {
    const values = [args[name]].flat().filter((value) => value !== undefined && value !== null)
    const texts = values.map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value)))
    if (place === 'path') {
      const [text = ''] = texts
      if (text === '') throw new Error(`The argument "${name}" must be given.`)
      filled = filled.replaceAll(`{${name}}`, () => encodeURIComponent(text))
      decoded = decoded.replaceAll(`{${name}}`, () => text)
    } else if (place === 'query') for (const text of texts) query.append(name, text)
    else if (texts.length > 0) headers[name.toLowerCase()] = texts.join(', ').replaceAll(/[^\x20-\x7e]/g, '?')
  }
  // A dot segment, also an encoded one and one of two arguments, could lead to another path.
  if (decoded.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part)))
    throw new Error('The arguments of the path must not be "." or "..".')
  const url = new URL(`${base_url.replace(/\/$/, '')}${filled}`)
  url.search = query.toString()
  if (!hasBody || args.body === undefined) return { url: url.href, method, headers }
  return {
    url: url.href,
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(args.body),
  }
}
