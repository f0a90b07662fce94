/** Query parameters and headers of task requests, and the address at which the client reached the gateway. */
import Type from 'typebox'
import type { ServerSettings } from '../../../config/config.ts'
import type { Context } from '../../../http/context.ts'
import { invalidValue } from '../../../spec/error.ts'
import { parameter } from '../../../spec/fields.ts'
import type { Parameter } from '../../../spec/operation.ts'
import { TASK_STATUSES, type TaskStatus } from '../../../spec/task.ts'
import { MAX_WAIT_SECONDS } from '../wait.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** How many seconds the response may wait for a change: 0 to 60. */
export function parseWait(query: URLSearchParams): number {
  const text = query.get('wait')
  if (text === null) return 0
  // Plain decimals only: `Number` alone would accept "" and "0x8" too.
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (seconds <= MAX_WAIT_SECONDS) return seconds
  throw invalidValue('wait', `"wait" must be a number of seconds from 0 to ${MAX_WAIT_SECONDS}.`)
}

type Page = { after?: string; limit: number; order?: 'asc' | 'desc' }

export function parsePage(query: URLSearchParams): Page {
  const [after, limit, order] = [query.get('after'), query.get('limit'), query.get('order')]
  const page: Page = { limit: limit === null ? DEFAULT_LIMIT : parseLimit(limit) }
  if (after !== null && after !== '') page.after = after
  if (order === 'asc' || order === 'desc') page.order = order
  else if (order !== null) throw invalidValue('order', '"order" must be "asc" or "desc".')
  return page
}

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalidValue('limit', `"limit" must be an integer from 1 to ${MAX_LIMIT}.`)
}

/** `status=QUEUED,IN_PROGRESS`; undefined: all. */
export function parseStatuses(query: URLSearchParams): TaskStatus[] | undefined {
  const given = query.getAll('status').flatMap((text) => text.split(','))
  if (given.length === 0) return undefined
  return given.map((text) => {
    const status = TASK_STATUSES.find((one) => one === text.trim())
    if (status === undefined) throw invalidValue('status', `"status" must be one of ${TASK_STATUSES.join(', ')}.`)
    return status
  })
}

/** Visible ASCII, which every client and proxy passes on unchanged. */
const KEY = /^[\x21-\x7e]{1,255}$/

export function parseIdempotencyKey({ headers }: Request): string | undefined {
  const key = headers.get('idempotency-key')
  if (key === null || KEY.test(key)) return key ?? undefined
  throw invalidValue('Idempotency-Key', 'The header "Idempotency-Key" must be 1 to 255 visible ASCII characters.')
}

/** A host name or an IP address with an optional port: nothing that could change the meaning of a link. */
const HOST = /^([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?$/

/** `server.base_url` as links start with it. */
export const baseUrlOf = ({ base_url }: Pick<ServerSettings, 'base_url'>) => base_url?.replace(/\/+$/, '')

/** `scheme://host` at which the client reached the gateway; behind a trusted proxy, what the proxy reports. */
export function requestBaseUrl(request: Request, settings: ServerSettings): string {
  const configured = baseUrlOf(settings)
  if (configured !== undefined) return configured
  // Without a host header (HTTP/1.0) the request has no host.
  const { host: own, port } = settings
  const here = URL.parse(request.url) ?? new URL(`http://${own.includes(':') ? `[${own}]` : own}:${port}`)
  if (!settings.trust_proxy) return here.origin
  const header = (name: string) => request.headers.get(name)?.split(',')[0]?.trim() ?? ''
  const scheme = header('x-forwarded-proto').toLowerCase()
  const host = header('x-forwarded-host')
  return `${scheme === 'http' || scheme === 'https' ? `${scheme}:` : here.protocol}//${HOST.test(host) ? host : here.host}`
}

/**
 * Where a browser has reached the console and the admin API. `server.base_url` is that of the clients, at which a listener
 * of the admin API's own does not answer, unless a proxy leads there with its host.
 */
export function adminBaseUrl({ request, peer }: Pick<Context, 'request' | 'peer'>, settings: ServerSettings): string {
  const { base_url } = settings
  const isAtBase = base_url !== undefined && request.headers.get('host') === new URL(base_url).host
  return requestBaseUrl(request, peer?.isAdmin && !isAtBase ? { ...settings, base_url: undefined } : settings)
}

export const WAIT_PARAMETER: Record<string, Parameter> = {
  wait: parameter(
    'Waits until the task has changed, at most this many seconds. Default 0.',
    Type.Number({ minimum: 0, maximum: MAX_WAIT_SECONDS }),
  ),
}

export const PAGE_PARAMETERS: Record<string, Parameter> = {
  after: parameter('The id after which the page starts.'),
  limit: parameter('Default 20.', Type.Integer({ minimum: 1, maximum: MAX_LIMIT })),
  order: parameter('By time of creation. Default `desc`: newest first.', Type.Enum(['asc', 'desc'])),
}

export const STATUS_PARAMETER: Record<string, Parameter> = {
  status: parameter(`Only tasks in these states, separated by commas: ${TASK_STATUSES.join(', ')}.`),
}

export const IDEMPOTENCY_KEY_HEADER: Record<string, Parameter> = {
  'Idempotency-Key': parameter(
    'The same key with the same body within 24 hours returns the first task instead of a second one; with another body it is rejected.',
    Type.String({ minLength: 1, maxLength: 255 }),
  ),
}
