/** Calls the admin API with the session's cookie. A lost session waits for a login, then the call is made again. */
import { projectOfCall } from '../lib/project.ts'
import { logins, waitForLogin } from './login-state.ts'
import type { Api } from './types.ts'

/** An error of the gateway, with what it says of itself. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | undefined
  readonly request_id: string | undefined

  constructor({ status, message, code, param, request_id }: Omit<ApiError, 'name' | 'stack' | 'cause'>) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.param = param
    this.request_id = request_id
  }
}

export type Endpoint = keyof Api
type Values = Record<string, unknown>
/** Only what the endpoint has must be given. */
type Given<Name extends string, Value> = Value extends undefined
  ? { [name in Name]?: undefined }
  : Partial<Value> extends Value
    ? { [name in Name]?: Value | undefined }
    : { [name in Name]: Value }
/** Distributes over endpoints: otherwise each part of one is combined with those of all others, which are too many (TS2590). */
export type CallOptions<E extends Endpoint> = E extends Endpoint
  ? Given<'params', Api[E]['params']> &
      Given<'query', Api[E]['query']> &
      Given<'body', Api[E]['body']> &
      Pick<SendOptions, 'project' | 'signal' | 'withoutLogin'>
  : never

type SendOptions = {
  params?: Values | undefined
  query?: Values | undefined
  body?: unknown
  /** The project of the object, of a person who is in several; what the call itself names needs none. */
  project?: string | null | undefined
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
  /** Whether a lost session is an error instead of a reason to ask for a login. */
  withoutLogin?: boolean
}

/** The JSON response of an endpoint. Throws ApiError. */
export const call = <E extends Endpoint>(endpoint: E, options: CallOptions<E>): Promise<Api[E]['response']> =>
  callUntyped(endpoint, options as object)

/** The same where the endpoint is not one but any, whose types are too many to be combined. */
export async function callUntyped<Answer>(endpoint: string, options: SendOptions): Promise<Answer> {
  const response = await send(endpoint, options)
  return (response.status === 204 ? undefined : await response.json()) as Answer
}

/** The response itself, such as of a stream. `endpoint`: a method and a path. Throws ApiError. */
export async function send(endpoint: string, options: SendOptions = {}): Promise<Response> {
  const before = logins()
  const response = await request(endpoint, options)
  if (response.status === 401 && !options.withoutLogin) {
    // Otherwise it was sent with the session before that one, and is too late to ask again.
    if (logins() === before) await waitForLogin(options.signal)
    return checked(await request(endpoint, options))
  }
  return checked(response)
}

function request(
  endpoint: string,
  { project: of, params = {}, query = {}, body, signal, headers }: SendOptions,
): Promise<Response> {
  const [method = 'GET', path = ''] = endpoint.split(' ')
  const { project_id } = { ...(body as { project_id?: unknown } | undefined) }
  const project = projectOfCall([of, params.project_id, query.project_id, query.project, project_id])
  // The browser writes the media type of a form with its boundary.
  const isForm = body instanceof FormData
  return fetch(addressOf(path, params, query), {
    method,
    credentials: 'same-origin',
    headers: {
      accept: 'application/json',
      'x-gatehouse-csrf': '1',
      ...(project !== undefined && { 'x-gatehouse-project': project }),
      ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  })
}

/** The path with its parameters, percent-encoded, and its query without what is empty. */
export function addressOf(path: string, params: Values = {}, query: Values = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    // An id of a model has slashes, which the gateway takes raw.
    String(params[name] ?? '')
      .split('/')
      .map(encodeURIComponent)
      .join('/'),
  )
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value))
  return search.size === 0 ? filled : `${filled}?${search}`
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response
  const body = (await response.json().catch(() => ({}))) as { error?: Values }
  const { message, code, param } = body.error ?? {}
  throw new ApiError({
    status: response.status,
    message: typeof message === 'string' ? message : `The gateway returned the status ${response.status}.`,
    code: typeof code === 'string' ? code : 'unknown',
    param: typeof param === 'string' ? param : undefined,
    request_id: response.headers.get('x-request-id') ?? undefined,
  })
}
