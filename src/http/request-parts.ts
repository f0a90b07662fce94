/** Reads the URL and the headers of a request: its path and query, its host, and the secret of its caller. */
import type { ServerSettings } from '../config/config.ts'
import { isLoopbackHost, readAddress } from '../kit/address.ts'
import { GatewayError } from '../spec/error.ts'

export function queryOf({ url }: Pick<Request, 'url'>): URLSearchParams {
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start).split('#', 1)[0])
}

/**
 * The path as it came, still percent-encoded, without the query and a trailing slash. Without a usable `host` header
 * (HTTP/1.0) there is nothing before it.
 */
export function pathOf({ url }: Pick<Request, 'url'>): string {
  let start = url.charCodeAt(0) === 47 ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  if (start === -1) return '/' // of CONNECT, which names no path
  if (url.charCodeAt(start + 1) === 47) start = lastSlash(url, start)
  let end = url.indexOf('?', start)
  if (end === -1) end = url.length
  while (end > start + 1 && url.charCodeAt(end - 1) === 47) end--
  return url.slice(start, end)
}

/**
 * Google's SDK appends the path of a WebSocket to a base URL that ends with a slash, and would show no hint of a refusal. Only of
 * its paths: a proxy may refuse others, such as `/admin`, by their beginning.
 */
const SLASHES = /\/+(?=ws\/)/y

function lastSlash(url: string, start: number): number {
  SLASHES.lastIndex = start
  return SLASHES.test(url) ? SLASHES.lastIndex - 1 : start
}

/** Whether a path is of the admin API or of the console, which are served at one listener. */
export const isAdminPath = (path: string): boolean => /^\/(admin|console)(\/|$)/.test(path)
/** Where the admin API has an address of its own. The manual is at both: the console shows it beside its pages. */
export const isServedAt = (path: string, isAdminAddress: boolean): boolean =>
  isAdminPath(path) === isAdminAddress || (isAdminAddress && /^\/manual(\/|$)/.test(path))

export const isWebSocket = ({ method, headers }: Request): boolean =>
  method === 'GET' && headers.get('upgrade')?.toLowerCase() === 'websocket'

type HostSettings = Pick<ServerSettings, 'hosts' | 'base_url' | 'files_base_url'>

/**
 * RFC 9112, section 3.2: the gateway and a proxy before it could each take another one. The runtime joins repeated headers
 * with commas, which no host contains.
 */
export function assertOneHost({ headers }: Request): void {
  if (!headers.get('host')?.includes(',')) return
  throw new GatewayError('invalid_value', 'The request has several Host headers, or one with a comma; send one host.')
}

/**
 * Whether no name of a foreign page can be in `Host`: with DNS rebinding a page of any public name can lead a browser to
 * an address that only the browser's machine reaches, and read the answer. Safe are addresses, the names of this
 * machine, names of one label and of the private zone `internal`, which no public DNS server answers for, and the names
 * that the settings list. A request without the header is from no browser.
 */
export function isOwnHost({ headers }: Request, { hosts, base_url, files_base_url }: HostSettings): boolean {
  const host = headers.get('host')
  if (host === null) return true
  const url = URL.parse(`http://${host}`)
  if (url === null) return false
  const name = nameOf(url)
  if (isAddress(name) || isLoopbackHost(url) || !name.includes('.') || name.endsWith('.internal')) return true
  return (
    hosts.some((one) => one.toLowerCase() === name) ||
    [base_url, files_base_url].some((address) => address !== undefined && nameOf(new URL(address)) === name)
  )
}

/** Pages that need no token: checked only where the operator lists names, since a proxy may pass on any name. */
export function assertKnownHost(request: Request, settings: HostSettings): void {
  if (settings.hosts.length === 0 || isOwnHost(request, settings)) return
  throw new GatewayError('unknown_url', 'Nothing is served at the host of this request: it is not one of server.hosts.')
}

const isAddress = (name: string): boolean => readAddress(name.replace(/^\[|\]$/g, '')) !== undefined

/** A trailing dot names the same host. */
export const nameOf = ({ hostname }: URL): string => hostname.replace(/\.$/, '')

/** The scheme's name has any case, and more than one space may follow it (RFC 9110, section 11.4). */
const BEARER = /^bearer +(\S+)\s*$/i
/** As almost all clients send it: tested and cut, without the list that a match makes. */
const USUAL_BEARER = /^Bearer \S+$/

/**
 * The secret as it was sent, unchecked: `Authorization: Bearer`, else `x-api-key`, `x-goog-api-key`, `?key=`; of a
 * WebSocket also `api-key`, as Azure's clients send it, and the subprotocol of OpenAI's clients in browsers.
 */
export function presentedSecret(request: Request): string | undefined {
  const { headers } = request
  return (
    bearerOf(headers) ||
    headers.get('x-api-key') ||
    headers.get('x-goog-api-key') ||
    keyInQuery(request.url) ||
    socketSecret(request)
  )
}

const KEY_PROTOCOL = 'openai-insecure-api-key.'

function socketSecret(request: Request): string | undefined {
  if (!isWebSocket(request)) return undefined
  const { headers } = request
  const protocol = offeredProtocols(headers).find((one) => one.startsWith(KEY_PROTOCOL))
  return headers.get('api-key') || protocol?.slice(KEY_PROTOCOL.length) || undefined
}

export const offeredProtocols = (headers: Headers): string[] =>
  (headers.get('sec-websocket-protocol') ?? '').split(',').map((one) => one.trim())

/** The secret of an administrator: in a header only, since addresses end up in logs. */
export function presentedHeader({ headers }: Request): string | undefined {
  return bearerOf(headers) || headers.get('x-api-key') || undefined
}

function bearerOf(headers: Headers): string | undefined {
  const authorization = headers.get('authorization')
  if (authorization === null) return undefined
  return USUAL_BEARER.test(authorization) ? authorization.slice(BEARER_LENGTH) : BEARER.exec(authorization)?.[1]
}

const BEARER_LENGTH = 'Bearer '.length

/** The query is parsed only if it has such a field: almost no request has one, and parsing costs. */
function keyInQuery(url: string): string | undefined {
  const start = url.indexOf('?')
  if (start === -1) return undefined
  const query = url.slice(start)
  if (!query.includes('?key=') && !query.includes('&key=')) return undefined
  return new URLSearchParams(query.split('#', 1)[0]).get('key') || undefined
}
