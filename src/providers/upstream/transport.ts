/** The gateway's only HTTP client: timeouts, abort, size limits, and errors for failed connections. */
import type { HttpClient } from '../../config/config.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { createFetchSender, type Dial, type Fetch } from './fetch-sender.ts'
import { createSocketSender } from './socket-sender.ts'
import { errorCodeOf, failedToSend } from './transport-failure.ts'
import { LimitedResponse, type UpstreamResponse } from './transport-response.ts'
import { RequestLifetime, type UpstreamRequest } from './upstream-request.ts'

export type Transport = { send(request: UpstreamRequest): Promise<UpstreamResponse> }

/** Further headers of a request to this provider; undefined: none. */
type HeadersFor = (provider: string) => Record<string, string> | undefined

type TransportParts = {
  clock: Clock
  log: Log
  fetch?: Fetch
  dial?: Dial
  /** Which client sends; read for each request. Absent: fetch. */
  client?: () => HttpClient
  headersFor?: HeadersFor | undefined
  /** The process environment, read only for proxy variables. */
  environment?: Record<string, string | undefined>
}

export function createTransport(parts: TransportParts): Transport {
  const { clock, log, headersFor, environment = {} } = parts
  const client = parts.client ?? (() => 'fetch')
  const isBehindProxy = (url: URL) => isProxied(url, environment)
  const byFetch = createFetchSender({ clock, fetch: parts.fetch, dial: parts.dial, isProxied: isBehindProxy })
  const bySockets = createSocketSender({ clock })

  return {
    async send(request) {
      const url = new URL(request.url)
      const goesThroughProxy = isBehindProxy(url)
      if (request.isProbe && goesThroughProxy) {
        throw new GatewayError('upstream_unreachable', 'The probe would have to go through a proxy.')
      }
      const life = new RequestLifetime(clock, request)
      const { timeouts } = request
      if (!request.stream) life.limit(timeouts.total_seconds, 'the whole response took longer than')
      const first = life.limit(timeouts.first_byte_seconds, 'no response within')
      try {
        const send = goesThroughProxy || client() === 'fetch' ? byFetch : bySockets
        const response = await send(request, { url, life, headers: headersOf(request, headersFor) })
        first()
        return new LimitedResponse({ clock, request, response, life })
      } catch (thrown) {
        const error = thrown instanceof GatewayError ? thrown : (life.reason ?? failedToSend(request.provider, thrown))
        if (error.code !== 'client_closed_request' && !request.isProbe) {
          log.warn('upstream failed', { provider: request.provider, error: error.code, reason: errorCodeOf(thrown) })
        }
        life.close()
        throw error
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
