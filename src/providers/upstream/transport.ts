/** The gateway's only HTTP client: sends a request by the runtime's fetch, within its time limits. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { Exchange } from './exchange.ts'
import type { LateReads } from './late-reads.ts'
import { createOrigins, type Dial, type Origin } from './origins.ts'
import { errorCodeOf, failedToSend, neverSent, notRecorded } from './transport-failure.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

export type Transport = { send(request: UpstreamRequest): Promise<UpstreamResponse> }

type FetchInit = RequestInit & { timeout: false; decompress: false; protocol?: 'http1.1' }
type Fetch = (url: string, init: FetchInit) => Promise<Response>

/** Further headers of a request to this provider; undefined: none. */
type HeadersFor = (provider: string) => Record<string, string> | undefined

type TransportParts = {
  clock: Clock
  log: Log
  fetch?: Fetch
  dial?: Dial
  headersFor?: HeadersFor | undefined
  /** Absent: no response is read after its client has left. */
  lateReads?: LateReads
  /** The process environment, read only for proxy variables. */
  environment?: Record<string, string | undefined>
}

/** Shorter texts cost more to convert than to hold. */
const LONG_CHARACTERS = 64 * 1024

export function createTransport(parts: TransportParts): Transport {
  const { clock, log, headersFor, lateReads, environment = {}, fetch: send = fetch } = parts
  const origins = createOrigins({ clock, dial: parts.dial, environment })

  /** Awaited by orders only. */
  async function reachable(request: UpstreamRequest, origin: Origin, exchange: Exchange): Promise<void> {
    await origins.reach(origin, request, exchange)
    await request.beforeSend?.().catch((thrown: unknown) => {
      throw notRecorded(thrown)
    })
    if (exchange.reason) throw neverSent(exchange.reason)
  }

  function initOf(request: UpstreamRequest, signal: AbortSignal): FetchInit {
    const init: FetchInit = {
      method: request.method,
      headers: headersOf(request, headersFor),
      body: takeBody(request),
      signal,
      // A redirect could send the key to another host.
      redirect: 'manual',
      // The runtime decompresses without a limit: a compressed body is decompressed where its size is counted.
      decompress: false,
      // Bun would give up by itself after five minutes.
      timeout: false,
    }
    // Bun repeats a PUT, DELETE or GET by itself when a reused connection breaks; on a new one it repeats nothing.
    if (request.order) {
      init.keepalive = false
      init.protocol = 'http1.1'
    }
    return init
  }

  function failed(thrown: unknown, exchange: Exchange): GatewayError {
    const { request, reason } = exchange
    const { provider, isProbe } = request
    const error = thrown instanceof GatewayError ? thrown : (reason ?? failedToSend(provider, thrown))
    if (error.code !== 'client_closed_request' && !isProbe) {
      log.warn('upstream failed', { provider, error: error.code, reason: errorCodeOf(thrown) })
    }
    exchange.close()
    return error
  }

  return {
    async send(request) {
      const origin = origins.of(request.url)
      if (request.isProbe && origin.isProxied) {
        throw new GatewayError('upstream_unreachable', 'The probe would have to go through a proxy.')
      }
      const exchange = new Exchange(request, clock)
      let stopWatching: (() => void) | undefined
      try {
        if (request.order) await reachable(request, origin, exchange)
        else stopWatching = origins.watch(origin, exchange)
        const response = await send(request.url, initOf(request, exchange.signal))
        origin.responded_at = clock.steady()
        exchange.begin(response, lateReads)
      } catch (thrown) {
        origin.responded_at = Number.NEGATIVE_INFINITY
        throw failed(thrown, exchange)
      } finally {
        stopWatching?.()
      }
      const isSuccess = exchange.status >= 200 && exchange.status < 300
      if (request.refused && !isSuccess) await request.refused(exchange, request.model)
      const text = request.reads_text && isSuccess ? exchange.wholeText() : undefined
      if (!text) return exchange
      try {
        exchange.keepText(await text)
        return exchange
      } catch (thrown) {
        throw exchange.failed(thrown)
      }
    },
  }
}

/** By default the runtime would accept every encoding that it can decompress. */
function headersOf({ headers, provider }: UpstreamRequest, headersFor: HeadersFor | undefined) {
  const added = headersFor?.(provider)
  const all = added ? { ...headers, ...added } : headers
  return headers['accept-encoding'] === undefined ? { ...all, 'accept-encoding': 'identity' } : all
}

/**
 * The body for the runtime, which keeps it until the response has arrived. It is removed from the request, which lives
 * longer. The runtime would hold a long text beside its bytes, in two bytes for each character if one of them needs it.
 */
function takeBody(request: UpstreamRequest): NonNullable<UpstreamRequest['body']> | null {
  const { body = null } = request
  delete request.body
  return typeof body === 'string' && body.length > LONG_CHARACTERS ? Buffer.from(body) : body
}
