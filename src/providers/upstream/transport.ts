/** The gateway's only HTTP client: timeouts, abort, size limits, and errors for failed connections. */
import { connect } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { clientClosed, errorCodeOf, failedToSend, neverSent } from './transport-failure.ts'
import { LimitedResponse, RequestLifetime, type UpstreamRequest, type UpstreamResponse } from './transport-response.ts'

export type Transport = { send(request: UpstreamRequest): Promise<UpstreamResponse> }

type FetchInit = RequestInit & { timeout: false; decompress: false; protocol?: 'http1.1' }
type Fetch = (url: string, init: FetchInit) => Promise<Response>
/** Opens and closes a bare connection; calls back once when it was established, or with why it failed. Call the result to give up. */
type Dial = (host: string, port: number, settled: (failure?: unknown) => void) => () => void

/** Further headers of a request to this provider; undefined: none. */
export type HeadersFor = (provider: string) => Record<string, string> | undefined

type TransportParts = {
  clock: Clock
  log: Log
  fetch?: Fetch
  dial?: Dial
  headersFor?: HeadersFor | undefined
  /** The process environment, read only for proxy variables. */
  environment?: Record<string, string | undefined>
}

/** An origin that responded this recently has an open connection or opens one quickly: it is not watched. */
const TRUSTED_MILLISECONDS = 30_000

export function createTransport(parts: TransportParts): Transport {
  const { clock, log, headersFor, environment = {} } = parts
  const send: Fetch = parts.fetch ?? fetch
  const dial = parts.dial ?? dialTcp
  /** Origin -> when it last responded; origins come from the configuration, so there are few. */
  const respondedAt = new Map<string, number>()

  /**
   * Bun's fetch has no connect timeout, so a second, bare connection is opened beside the first request to an origin: if
   * that one is not established in time either, the host is unreachable.
   */
  function watchConnect(url: URL, connectSeconds: number, giveUp: () => void): () => void {
    const last = respondedAt.get(url.origin)
    if (last !== undefined && clock.steady() - last < TRUSTED_MILLISECONDS) return () => {}
    if (isProxied(url, environment)) return () => {}
    const stop = () => {
      cancelTimer()
      hangUp()
    }
    const cancelTimer = clock.after(connectSeconds * 1000, () => {
      hangUp()
      giveUp()
    })
    const hangUp = dial(hostOf(url), portOf(url), () => cancelTimer())
    return stop
  }

  /**
   * An order is sent only after a bare connection to its host was established: whatever prevents that connection has
   * certainly prevented the order. The connection itself is not used, since fetch accepts none.
   */
  async function reach(request: UpstreamRequest, url: URL, life: RequestLifetime): Promise<void> {
    if (life.signal.aborted) throw neverSent(clientClosed(request.signal))
    if (isProxied(url, environment)) return
    const { connect_seconds } = request.timeouts
    await new Promise<void>((resolve, reject) => {
      const done = (error?: GatewayError) => {
        cancelTimer()
        life.signal.removeEventListener('abort', disconnect)
        if (error) reject(neverSent(error))
        else resolve()
      }
      const disconnect = () => {
        hangUp()
        done(life.reason ?? clientClosed(request.signal))
      }
      const cancelTimer = clock.after(connect_seconds * 1000, () => {
        hangUp()
        done(notAccepted(request))
      })
      life.signal.addEventListener('abort', disconnect)
      const hangUp = dial(hostOf(url), portOf(url), (failure) =>
        done(failure === undefined ? undefined : failedToSend(request.provider, failure)),
      )
    })
  }

  return {
    async send(request) {
      const url = new URL(request.url)
      if (request.isProbe && isProxied(url, environment)) {
        throw new GatewayError('upstream_unreachable', 'The probe would have to go through a proxy.')
      }
      const life = new RequestLifetime(clock, request)
      const { timeouts } = request
      if (!request.stream) life.limit(timeouts.total_seconds, 'the whole response took longer than')
      const first = life.limit(timeouts.first_byte_seconds, 'no response within')
      let stopWatching = () => {}
      try {
        if (request.order) {
          await reach(request, url, life)
          await request.beforeSend?.().catch((thrown: unknown) => {
            throw notRecorded(thrown)
          })
          if (life.signal.aborted) throw neverSent(life.reason ?? clientClosed(request.signal))
        } else stopWatching = watchConnect(url, timeouts.connect_seconds, () => life.end(notAccepted(request)))
        const response = await send(request.url, {
          method: request.method,
          headers: headersOf(request, headersFor),
          body: takeBody(request),
          signal: life.signal,
          // A redirect could send the key to another host.
          redirect: 'manual',
          // The runtime decompresses without a limit: a compressed body is decompressed where its size is counted.
          decompress: false,
          // Bun would give up by itself after five minutes.
          timeout: false,
          // Bun repeats a PUT, DELETE or GET by itself when a reused connection breaks; on a new one it repeats nothing.
          ...(request.order ? { keepalive: false, protocol: 'http1.1' } : {}),
        })
        respondedAt.set(url.origin, clock.steady())
        first()
        return new LimitedResponse({ clock, request, response, life })
      } catch (thrown) {
        const error = thrown instanceof GatewayError ? thrown : (life.reason ?? failedToSend(request.provider, thrown))
        if (error.code !== 'client_closed_request' && !request.isProbe) {
          log.warn('upstream failed', { provider: request.provider, error: error.code, reason: errorCodeOf(thrown) })
        }
        respondedAt.delete(url.origin)
        life.close()
        throw error
      } finally {
        stopWatching()
      }
    },
  }
}

/** Shorter texts cost more to convert than to hold. */
const LONG_CHARACTERS = 64 * 1024

/**
 * The body for the runtime, which keeps it until the response has arrived. It is removed from the request, which lives
 * longer. The runtime would hold a long text beside its bytes, in two bytes for each character if one of them needs it.
 */
function takeBody(request: UpstreamRequest): NonNullable<UpstreamRequest['body']> | null {
  const { body = null } = request
  delete request.body
  return typeof body === 'string' && body.length > LONG_CHARACTERS ? Buffer.from(body) : body
}

/** By default the runtime would accept every encoding that it can decompress. */
function headersOf({ headers, provider }: UpstreamRequest, headersFor: HeadersFor | undefined) {
  const added = headersFor?.(provider)
  const all = added ? { ...headers, ...added } : headers
  return headers['accept-encoding'] === undefined ? { ...all, 'accept-encoding': 'identity' } : all
}

const notAccepted = ({ provider, timeouts }: UpstreamRequest) =>
  new GatewayError(
    'upstream_unreachable',
    `The upstream "${provider}" did not accept a connection within ${timeouts.connect_seconds} s.`,
  )

const notRecorded = (thrown: unknown) =>
  neverSent(
    thrown instanceof GatewayError
      ? thrown
      : new GatewayError('internal_error', 'The order was not sent, since it could not be recorded.', {
          cause: thrown,
        }),
  )

const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '') // IPv6 hosts stand in brackets
const portOf = (url: URL) => Number(url.port) || (url.protocol === 'https:' ? 443 : 80)

/** Whether the runtime's fetch would go through a proxy for this address, by the customary variables. */
function isProxied(url: URL, environment: Record<string, string | undefined>): boolean {
  const variable = (name: string) => environment[name] || environment[name.toUpperCase()]
  if (!variable(url.protocol === 'https:' ? 'https_proxy' : 'http_proxy')) return false
  const exempt = (variable('no_proxy') ?? '').split(',').map((entry) => entry.trim().replace(/^\*?\./, '')) // `.a.b`, `*.a.b`
  return !exempt.some(
    (entry) =>
      entry === '*' ||
      (entry !== '' && (url.hostname === entry || url.host === entry || url.hostname.endsWith(`.${entry}`))),
  )
}

const dialTcp: Dial = (host, port, settled) => {
  const socket = connect({ host, port })
  const close = () => void socket.destroy()
  const settle = (failure?: unknown) => {
    close()
    settled(failure)
  }
  socket.once('connect', () => settle())
  socket.on('error', settle)
  return close
}
