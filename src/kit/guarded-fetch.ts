/** Fetches an untrusted address: checks the resolved IP address before anything is sent. */
import { lookup } from 'node:dns/promises'
import { isPublicAddress, readAddress } from './address.ts'
import type { Clock } from './clock.ts'

/** The IP address of a connection, checked at connect time for the first address and after every redirect. */
type Destination = { url: URL; address: string; port: number }

export type GuardedRequest = {
  url: string
  method?: 'GET' | 'HEAD' | 'POST'
  headers?: Record<string, string>
  body?: string
  signal: AbortSignal
  /** How many redirects are followed. Default 5; 0 returns a redirect as it is, and so does any POST. */
  redirects?: number
  /** Origins (`https://host:port`) that may resolve to a private address. Default: none. */
  private_origins?: readonly string[] | 'any'
}

export type GuardedAnswer = {
  status: number
  headers: Headers
  /** After redirects. */
  url: string
  /** As received: not decompressed. */
  body: ReadableStream<Uint8Array>
}

/**
 * Rejects with AddressRefused for an address that is not public (loopback, private, link-local, metadata, multicast,
 * unspecified, and IPv6 forms of them) or no http(s) URL; with the signal's reason when it is aborted; with an error
 * that has a `code` when the connection fails, or keeps silent for too long (ETIMEDOUT). Any port is allowed.
 * `headers` other than plain ones (accept, range, user-agent) are not sent on to another origin.
 */
export type GuardedFetch = (request: GuardedRequest) => Promise<GuardedAnswer>

/** The message names the host as given, never its resolved address. */
export class AddressRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AddressRefused'
  }
}

/** Parts of one connection: the destination that was checked is the one connected to. */
type GuardedConnect = (
  to: Destination,
  request: { method: string; headers: Headers; body?: string; signal: AbortSignal },
) => Promise<Response>

export type GuardedFetchParts = {
  clock: Clock
  /** All addresses of a host name. */
  resolve?: (host: string) => Promise<string[]>
  isPublic?: (address: string) => boolean
  connect?: GuardedConnect
  /** A certificate authority (PEM) to trust instead of the system's. */
  ca?: string
  /** The timeout of resolving a name, and of waiting for response headers. Default 30 s each. */
  answer_ms?: number
  /** The longest silence while a body is read. Default 60 s. */
  idle_ms?: number
}

/** Providers' file servers respond within a second; one that fetches from cold storage may take ten or more. */
const ANSWER_MILLISECONDS = 30_000
const IDLE_MILLISECONDS = 60_000
/** How many addresses of one name are tried. */
const ADDRESSES_TRIED = 4
/** Headers that do not identify the caller, and may go to any origin. */
const PLAIN_HEADERS = ['accept', 'accept-encoding', 'if-range', 'range', 'user-agent']

export function createGuardedFetch(parts: GuardedFetchParts): GuardedFetch {
  const { clock, resolve = resolveName, isPublic = isPublicAddress, connect = connectTo(parts.ca) } = parts
  const { answer_ms = ANSWER_MILLISECONDS, idle_ms = IDLE_MILLISECONDS } = parts

  /** Throws AddressRefused if any address of the host is private: such a name is an attack or a mistake. */
  async function destinations(url: URL, request: GuardedRequest): Promise<Destination[]> {
    const { private_origins = [], signal } = request
    const host = url.hostname.replace(/^\[|\]$/g, '') // IPv6 hosts are in brackets
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    const addresses = readAddress(host)
      ? [host]
      : await withTimeLimit({ clock, ms: answer_ms, what: 'resolve', signal }, () => resolve(host))
    if (addresses.length === 0) throw coded('ENOTFOUND', `The host "${host}" has no address.`)
    if (private_origins !== 'any' && !private_origins.includes(url.origin) && !addresses.every(isPublic)) {
      throw new AddressRefused(`The host "${host}" does not resolve to a public address.`)
    }
    return addresses.map((address) => ({ url, address, port }))
  }

  /** One request: tries the addresses in order until a connection is established. */
  async function exchange(url: URL, request: GuardedRequest, headers: Headers): Promise<GuardedAnswer> {
    const tried = (await destinations(url, request)).slice(0, ADDRESSES_TRIED)
    for (const [index, to] of tried.entries()) {
      // Closes the connection: for the caller, at a timeout, or when the body is abandoned.
      const ending = new AbortController()
      const follow = () => ending.abort(request.signal.reason)
      request.signal.addEventListener('abort', follow, { once: true })
      const release = () => request.signal.removeEventListener('abort', follow)
      try {
        const { method = 'GET', body } = request
        const response = await withTimeLimit({ clock, ms: answer_ms, what: 'answer', signal: request.signal }, () =>
          connect(to, { method, headers, ...(body === undefined ? {} : { body }), signal: ending.signal }),
        )
        const life = { clock, idle_ms, signal: request.signal, release, end: (why: unknown) => ending.abort(why) }
        return { status: response.status, headers: response.headers, url: url.href, body: guardBody(response, life) }
      } catch (thrown) {
        release()
        ending.abort(thrown)
        request.signal.throwIfAborted()
        if (index === tried.length - 1 || !NEVER_CONNECTED.test(codeOf(thrown))) {
          // The runtime's error may contain the whole address with its signature.
          throw coded(codeOf(thrown), `No answer from the host "${url.hostname}" (${codeOf(thrown)}).`)
        }
      }
    }
    throw coded('ENOTFOUND', `The host "${url.hostname}" has no address.`)
  }

  return async (request) => {
    const { method = 'GET', redirects = 5, signal } = request
    signal.throwIfAborted()
    let url = checkUrl(request.url)
    const headers = new Headers({ 'accept-encoding': 'identity', ...request.headers })
    headers.delete('host')
    for (let followed = 0; ; followed++) {
      const answer = await exchange(url, request, headers)
      const location = answer.headers.get('location')
      if (redirects === 0 || method === 'POST' || !isRedirect(answer.status) || location === null) return answer
      await answer.body.cancel()
      if (followed === redirects) {
        throw coded('ERR_TOO_MANY_REDIRECTS', `The host "${url.hostname}" redirected more than ${redirects} times.`)
      }
      const next = checkUrl(location, url)
      if (url.protocol === 'https:' && next.protocol === 'http:') {
        throw new AddressRefused(`The host "${url.hostname}" redirected from https to http.`)
      }
      // Dropped headers stay dropped, even if a redirect leads back.
      if (next.origin !== url.origin) {
        for (const name of [...headers.keys()]) if (!PLAIN_HEADERS.includes(name)) headers.delete(name)
      }
      url = next
    }
  }
}

function checkUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base)
  if (!url) throw new AddressRefused('The address is no URL.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new AddressRefused(`The address begins with "${url.protocol}", not with http:// or https://.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new AddressRefused(`The address of the host "${url.hostname}" contains a user name or password.`)
  }
  return url
}

const isRedirect = (status: number) => [301, 302, 303, 307, 308].includes(status)

/** IPv4 first: many machines resolve IPv6 addresses but have no IPv6 route, and would wait for a timeout. */
export async function resolveName(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true, verbatim: true })
  return found.toSorted((a, b) => a.family - b.family).map(({ address }) => address)
}

/**
 * The runtime gets a numeric address, so it resolves nothing; the certificate is still checked against the name.
 * Connections are not pooled, because a pooled one was checked at another time.
 */
const connectTo =
  (ca: string | undefined): GuardedConnect =>
  ({ url, address, port }, { method, headers, body, signal }) => {
    const target = new URL(url)
    target.hostname = address.includes(':') ? `[${address}]` : address
    target.port = String(port)
    target.hash = ''
    const sent = new Headers(headers)
    sent.set('host', url.host)
    // The certificate of a numeric address needs no server name.
    const name = target.hostname === url.hostname ? {} : { serverName: url.hostname }
    const options: BunFetchRequestInit = {
      method,
      headers: sent,
      ...(body === undefined ? {} : { body }),
      signal,
      redirect: 'manual',
      keepalive: false,
      decompress: false,
      // Bun's own timeout would be five minutes.
      timeout: false,
      ...(url.protocol === 'https:' ? { tls: { ...name, ...(ca === undefined ? {} : { ca }) } } : {}),
    }
    return fetch(target, options)
  }

type BodyLife = {
  clock: Clock
  idle_ms: number
  signal: AbortSignal
  release: () => void
  end: (why: unknown) => void
}

/** The body with a limit on silence; read only on demand. */
function guardBody(response: Response, life: BodyLife): ReadableStream<Uint8Array> {
  const reader = response.body?.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const limit = { clock: life.clock, ms: life.idle_ms, what: 'body', signal: life.signal }
        try {
          const { done, value } = reader ? await withTimeLimit(limit, () => reader.read()) : DONE
          if (!done) return controller.enqueue(value)
          life.release()
          controller.close()
        } catch (thrown) {
          life.release()
          life.end(thrown)
          controller.error(life.signal.aborted ? life.signal.reason : brokenOff(thrown))
        }
      },
      async cancel(reason) {
        life.release()
        life.end(reason ?? new Error('The body was left.'))
      },
    },
    { highWaterMark: 0 },
  )
}

const DONE = { done: true, value: undefined } as const

const brokenOff = (thrown: unknown) => coded(codeOf(thrown), `The body ended early (${codeOf(thrown)}).`)

/** Codes of a connection that was never established, so that another address of the host may be tried. */
const NEVER_CONNECTED =
  /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|ConnectionRefused|FailedToOpenSocket)$/

const coded = (code: string, message: string) => Object.assign(new Error(message), { code })

export function codeOf(thrown: unknown): string {
  const code = typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code : thrown instanceof Error ? thrown.name : 'unknown'
}

type TimeLimit = { clock: Clock; ms: number; what: string; signal: AbortSignal }

/** Settles with the work, or rejects at the timeout or abort, whatever the work does afterwards. */
async function withTimeLimit<T>({ clock, ms, what, signal }: TimeLimit, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const over = Promise.withResolvers<never>()
  const leave = () => over.reject(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  const cancel = clock.after(ms, () => over.reject(coded('ETIMEDOUT', `No ${what} within ${ms / 1000} s.`)))
  try {
    return await Promise.race([work(), over.promise])
  } finally {
    cancel()
    signal.removeEventListener('abort', leave)
  }
}
