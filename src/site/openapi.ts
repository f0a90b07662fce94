/** The OpenAPI 3.1 document, from the schemas that validate requests and the table that defines errors. */
import type { Route } from '../http/context.ts'
import { ERRORS, ErrorBody, type ErrorCode, errorBody, GatewayError, shouldRetry } from '../spec/error.ts'
import { type Link, type Operation, type Parameter, TAGS } from '../spec/operation.ts'
import { type Components, createComponents, type Json } from './openapi-schemas.ts'

type OpenApiParts = { routes: Route[]; version: string }

const DESCRIPTION = `A self-hosted gateway to hosted generative models: chat, responses, messages and
generateContent for any chat model; embeddings, rerank, images, videos and 3D models; token counts and the model
catalogue. The manual of this gateway is at [/manual](/manual).

## Errors

Every error has the shape of the schema \`Error\`. Paths of tasks return the shape \`TaskError\`, which contains it; paths of
other APIs return the error of that API. \`code\` stays the same between versions. Repeat a request
after 408, 429 or 5xx, unless the response has \`x-should-retry: false\`.

${errorSheet()}
`

/** A list under each status and type: a table of four columns is unreadable where the page is narrow. */
function errorSheet(): string {
  const groups = new Map<string, string[]>()
  for (const [code, { status, type, when }] of Object.entries(ERRORS)) {
    const heading = `**${status}** \`${type}\``
    groups.set(heading, [...(groups.get(heading) ?? []), `- \`${code}\`: ${when}`])
  }
  return [...groups].map(([heading, codes]) => [heading, '', ...codes].join('\n')).join('\n\n')
}

/** The errors of every route, of one that requires a token, and of one with a path parameter. */
const COMMON_ERRORS: ErrorCode[] = ['method_not_allowed', 'internal_error', 'shutting_down']
const TOKEN_ERRORS: ErrorCode[] = [
  'invalid_api_key',
  'address_not_allowed',
  'project_disabled',
  'rate_limit_exceeded',
  'storage_unavailable',
]
const ADMIN_ERRORS: ErrorCode[] = ['invalid_api_key', 'permission_denied', 'rate_limit_exceeded', 'storage_unavailable']
const PARAMETER_ERRORS: ErrorCode[] = ['invalid_value']

/** `/v1/models/:model{.+}` -> `/v1/models/{model}`. */
export const documentedPath = ({ path, shown }: Pick<Route, 'path' | 'shown'>): string =>
  shown ?? path.replaceAll(/:(\w+)(\{[^}]*\})?/g, '{$1}')

export function openApiDocument({ routes: all, version }: OpenApiParts): Json {
  const routes = all.filter(({ hidden }) => !hidden)
  const components = createComponents()
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = documentedPath(route)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, components) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version,
      description: DESCRIPTION,
      contact: { name: 'Whoever operates this gateway' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: [...new Set(routes.map(({ operation }) => operation.tag))].map(tagOf),
    paths,
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API token of this gateway: `gatehouse token create` creates one.',
        },
        admin_token: {
          type: 'http',
          scheme: 'bearer',
          description: 'An admin token: the value of GATEHOUSE_ADMIN_TOKEN, or a stored one.',
        },
      },
      schemas: components.all,
    },
  }
}

const tagOf = (name: string): Json => ({ name, description: TAGS[name] })

function operationOf(route: Route, components: Components): Json {
  const { operation } = route
  return {
    operationId: operationId(route),
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    tags: [operation.tag],
    ...securityOf(route),
    ...parametersOf(operation, components),
    ...(operation.request === undefined ? {} : { requestBody: requestBody(operation, components) }),
    responses: { '200': success(operation, components), ...otherResponses(operation), ...failures(route, components) },
  }
}

/** `GET /v1/models/:model` -> `getModelsModel`. */
function operationId({ method, path, shown }: { method: string; path: string; shown?: string }): string {
  const segments = (shown ?? path).replaceAll(shown ? /[{}]/g : /\{[^}]*\}/g, '').split(/[^A-Za-z0-9]+/)
  const named = path === '/' ? ['home'] : segments.filter((word) => word !== '' && word !== 'v1')
  return method.toLowerCase() + named.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

/** A route that is public for some requests accepts a token or none. */
function securityOf({ public: isOpen, admin }: Route): Json {
  if (admin) return { security: [{ admin_token: [] }, ...(isOpen ? [{}] : [])] }
  if (isOpen === undefined) return {}
  return { security: isOpen === true ? [] : [{ token: [] }, {}] }
}

function parametersOf({ params = {}, query = {}, headers = {} }: Operation, components: Components): Json {
  const inPath = Object.entries(params).map(([name, description]) => ({
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string', minLength: 1 },
  }))
  const elsewhere = (place: string, parameters: Record<string, Parameter>) =>
    Object.entries(parameters).map(([name, { schema, ...described }]) => ({
      name,
      in: place,
      required: false,
      ...described,
      schema: components.use(schema),
    }))
  const parameters = [...inPath, ...elsewhere('query', query), ...elsewhere('header', headers)]
  return parameters.length === 0 ? {} : { parameters }
}

function requestBody(
  { request, nested_nulls, files, form_only, example, body_optional }: Operation,
  components: Components,
): Json {
  const shown = example === undefined ? {} : { example }
  const content: Json = {}
  if (!form_only) content['application/json'] = { schema: components.useRequest(request, nested_nulls), ...shown }
  if (files) {
    content['multipart/form-data'] = { schema: components.useForm(request, files), ...(form_only ? shown : {}) }
  }
  return { required: body_optional !== true, content }
}

/** Text is a string; a schema cannot describe other media. */
const mediaContent = (media: string[]): Json =>
  Object.fromEntries(media.map((type) => [type, { schema: type.startsWith('text/') ? { type: 'string' } : {} }]))

function success(operation: Operation, components: Components): Json {
  const { request, response, stream, media = [], responseHeaders = {}, links } = operation
  const content: Json = mediaContent(media)
  if (response) content['application/json'] = { schema: components.use(response) }
  if (stream) {
    content['text/event-stream'] = {
      schema: {
        type: 'string',
        description:
          'Events whose data is such an object, each followed by an empty line; chat completions end with `data: [DONE]`.',
        contentMediaType: 'application/json',
        contentSchema: components.use(stream),
      },
    }
  }
  const own = Object.fromEntries(Object.entries(responseHeaders).map(([name, text]) => [name, header('string', text)]))
  const headers = { ...REQUEST_ID, ...(request ? FIELD_WARNING : {}), ...own }
  return {
    description: 'Success.',
    headers,
    ...(Object.keys(content).length === 0 ? {} : { content }),
    ...(links && { links: Object.fromEntries(links.flatMap(linksOf)) }),
  }
}

/** By the name of the operation that it leads to, `getVideosVideo_id`. */
function linksOf({ at, to, parameter }: Link): [string, Json][] {
  return to.map((target) => {
    const [method = '', path = ''] = target.split(' ')
    const name = parameter ?? /\{(\w+)\}/.exec(path)?.[1] ?? ''
    const id = operationId({ method, path, shown: path })
    return [id, { operationId: id, parameters: { [name]: `$response.body#${at}` } }]
  })
}

/** Responses that are neither 200 nor an error, such as a part of a file, or 304. */
function otherResponses({ otherResponses: others = {}, media = [] }: Operation): Json {
  const responses = Object.entries(others).map(([status, description]) => {
    const content = status === '206' ? { content: mediaContent(media) } : {}
    return [status, { description, headers: REQUEST_ID, ...content }]
  })
  return Object.fromEntries(responses)
}

const header = (type: string, description: string): Json => ({ schema: { type }, description })

const REQUEST_ID: Json = {
  'x-request-id': header('string', 'The id of this request in the log; yours, if you sent a valid one.'),
  'request-id': header('string', 'The same.'),
}

const FIELD_WARNING: Json = {
  'x-gatehouse-warning': header('string', 'Top-level fields that are probably misspelt, and what was probably meant.'),
}

/** The headers of errors with this status. */
function failureHeaders(status: number, group: ErrorCode[]): Json {
  const isMarked = group.some((code) => shouldRetry(code) !== undefined)
  return {
    ...REQUEST_ID,
    ...(status === 429 || status === 503 || status === 529
      ? { 'retry-after': header('integer', 'Seconds to wait, when known.') }
      : {}),
    ...(isMarked ? { 'x-should-retry': header('boolean', '`false` if a retry cannot succeed.') } : {}),
    ...(status === 416 ? { 'content-range': header('string', '`bytes */` and the length of the file.') } : {}),
    ...(status === 401
      ? {
          'www-authenticate': header(
            'string',
            '`Bearer`, at `/mcp` with the address of its OAuth metadata where `mcp.oauth` is configured.',
          ),
        }
      : {}),
    ...(status === 405 ? { allow: header('string', 'The methods of the path.') } : {}),
  }
}

/** The errors of a route: one response for each status, with its codes and when they occur. */
function failures(route: Route, components: Components): Json {
  const { operation, path, encodeError = errorBody, errorSchema = ErrorBody, errorStatus } = route
  const own = [...(operation.errors ?? []), ...(path.includes(':') ? PARAMETER_ERRORS : [])]
  const documented = new Set([
    ...own,
    ...(route.public === true ? [] : route.admin ? ADMIN_ERRORS : TOKEN_ERRORS),
    ...COMMON_ERRORS,
  ])
  // In the order of the table of errors, however a route lists them.
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => documented.has(code))
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codes) {
    const status = errorStatus?.(new GatewayError(code, '')) ?? ERRORS[code].status
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const out: Json = {}
  for (const [status, group] of [...byStatus].sort(([a], [b]) => a - b)) {
    const refusal = operation.refusal?.status === status ? operation.refusal : undefined
    const schema = components.use(errorSchema)
    out[String(status)] = {
      description: [
        ...(refusal ? [refusal.when] : []),
        ...group.map((code) => `\`${code}\`: ${ERRORS[code].when}`),
      ].join('\n\n'),
      headers: failureHeaders(status, group),
      content: {
        'application/json': {
          schema: refusal ? { anyOf: [components.use(refusal.response), schema] } : schema,
          examples: Object.fromEntries(
            group.map((code) => [code, { value: encodeError(new GatewayError(code, ERRORS[code].when)) }]),
          ),
        },
      },
    }
  }
  return out
}
