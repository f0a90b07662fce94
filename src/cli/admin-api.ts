/** The admin API of a running gateway, as commands use it. */
import { isLoopbackHost } from '../kit/address.ts'
import { asRecord, isRecord, memberOf } from '../kit/json.ts'
import { type Arguments, UsageError } from './arguments.ts'
import type { Terminal } from './terminal.ts'

type Sent = { method?: string; body?: unknown; if_match?: string }
type ApiAnswer = { body: Record<string, unknown>; etag: string | undefined }

export type AdminApi = {
  /** `path`: what follows /admin/v1. Throws Error that says what was wrong, and what would be right. */
  call(path: string, sent?: Sent): Promise<ApiAnswer>
  /** Every row of a list. */
  all(path: string): Promise<unknown[]>
  /** At most so many rows of a list, from a cursor on. `next`: where the rest starts; undefined: there is none. */
  some(path: string, page: { limit: number; after?: string | undefined }): Promise<{ rows: unknown[]; next?: string }>
}

/** The object was changed since it was read. */
export class ChangedMeanwhile extends Error {
  constructor() {
    super('The object is being changed by others; try again.')
    this.name = 'ChangedMeanwhile'
  }
}

/** The gateway refuses the request. */
export class GatewayRefusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'GatewayRefusal'
    this.status = status
  }
}

export const API_FLAGS = { url: 'text', insecure: 'switch' } as const

export const API_OPTIONS_HELP = `\
  --url <address>         a gateway, with GATEHOUSE_ADMIN_TOKEN (default: GATEHOUSE_URL with that token; else the store)
  --insecure              allow plain http to another machine`

const TIMEOUT_MILLISECONDS = 30_000
const PAGE = 200

/** Undefined: the command works on the store, which is named by a flag, or no gateway is. */
export function connectedApi(given: Arguments, { environment }: Terminal): AdminApi | undefined {
  const flag = given.text('url')
  const store_flag = ['data-dir', 'config'].find((name) => given.text(name) !== undefined)
  if (flag !== undefined && store_flag !== undefined) {
    throw new Error(`--url names a running gateway and --${store_flag} a store: give one of them.`)
  }
  const address = flag ?? (environment.GATEHOUSE_URL || undefined)
  const token = environment.GATEHOUSE_ADMIN_TOKEN || undefined
  if (address === undefined || store_flag !== undefined) return undefined
  if (token === undefined) {
    if (flag === undefined) return undefined
    throw new Error('--url needs an admin token in the variable GATEHOUSE_ADMIN_TOKEN.')
  }
  const url = checkedAddress(address, given.has('insecure'))
  return createAdminApi((path, init) => sendTo(url, token, [path, init]), url.host)
}

async function sendTo(address: URL, token: string, [path, init]: [string, RequestInit]): Promise<Response> {
  const headers = { ...init.headers, authorization: `Bearer ${token}` }
  // A redirect would take the token elsewhere.
  const more = { headers, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) } as const
  return fetch(`${address.href.replace(/\/+$/, '')}/admin/v1${path}`, { ...init, ...more }).catch((cause: unknown) => {
    const message = `No gateway answers at ${address.host}. Check --url or GATEHOUSE_URL; without them the command works on the store.`
    throw new Error(message, { cause })
  })
}

/** Throws an Error where a key would be sent in plain, or the address is none. */
export function checkedAddress(text: string, may_be_plain: boolean): URL {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new Error('The address of the gateway must be such as https://gateway.example.com (--url or GATEHOUSE_URL).')
  }
  if (url.protocol === 'http:' && !isLoopbackHost(url) && !may_be_plain) {
    throw new Error(
      `The admin token would be sent to ${url.host} without encryption: use https, or --insecure in a network that you trust.`,
    )
  }
  return url
}

/** `send`: takes what follows /admin/v1. `host`: for messages. */
export function createAdminApi(send: (path: string, init: RequestInit) => Promise<Response>, host: string): AdminApi {
  async function call(path: string, { method = 'GET', body, if_match }: Sent = {}): Promise<ApiAnswer> {
    const headers: Record<string, string> = {}
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (if_match !== undefined) headers['if-match'] = if_match
    const response = await send(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
    const read: unknown = await response.json().catch(() => undefined)
    if (response.status === 412) throw new ChangedMeanwhile()
    if (!response.ok || !isRecord(read)) {
      throw new GatewayRefusal(response.status, troubleOf(response.status, read, host))
    }
    return { body: read, etag: response.headers.get('etag') ?? undefined }
  }

  async function some(path: string, { limit, after }: { limit: number; after?: string | undefined }) {
    const rows: unknown[] = []
    for (let cursor = after; ; ) {
      const size = Math.min(PAGE, limit - rows.length)
      const page = pathWith(path, { limit: String(size), cursor })
      const { data, next_cursor } = (await call(page)).body
      rows.push(...(Array.isArray(data) ? data : []))
      if (typeof next_cursor !== 'string') return { rows }
      if (rows.length >= limit) return { rows, next: next_cursor }
      cursor = next_cursor
    }
  }

  return { call, some, all: async (path) => (await some(path, { limit: Number.POSITIVE_INFINITY })).rows }
}

const DEFAULT_LIMIT = 50
const MAX_LISTED = 1_000

/** Of `--limit`: how many rows a list shows. Throws UsageError. */
export function readLimit(command: string, text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LISTED) return limit
  throw new UsageError(command, `--limit: found ${JSON.stringify(text)}, must be a number from 1 to ${MAX_LISTED}`)
}

/** A path with these values in its query, but for those that are undefined. */
export function pathWith(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return given.length === 0 ? path : `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams(given)}`
}

/** What the gateway says is for its clients: it holds no secret. */
function troubleOf(status: number, body: unknown, host: string): string {
  const error = asRecord(memberOf(body, 'error'))
  const reason = typeof error.message === 'string' ? error.message : undefined
  if (reason === undefined)
    return `${host} answers with status ${status}, not as the admin API of a gateway: check the address.`
  if (status === 401) return `The gateway at ${host} refuses the admin token in GATEHOUSE_ADMIN_TOKEN: ${reason}`
  if (status === 403) return `The admin token in GATEHOUSE_ADMIN_TOKEN may not do this: ${reason}`
  return reason
}
