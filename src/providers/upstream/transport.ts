/**
 * The gateway's only HTTP client: sends a request by the runtime's fetch, within its time limits. Each provider has it with a
 * scrubber, which removes that provider's own secrets from its responses.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { exchanged, openExchanges } from '../../protocols/shared/batch-exchange.ts'
import { GatewayError } from '../../spec/error.ts'
import { createConnector, type Dial, type Origin, originOf } from './connect.ts'
import { Exchange } from './exchange.ts'
import type { LateReads } from './late-reads.ts'
import { isCredentialName, secretsInHeader, secretsInQuery } from './secret-forms.ts'
import { createSecretScrubber, type DeltaWatch } from './secret-scrubber.ts'
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

/** An origin that responded this recently has an open connection or opens one quickly: it is not watched. */
const TRUSTED_MILLISECONDS = 30_000
/** Origins come from the configuration, and from addresses that providers return: then they may be many. */
const MAX_ORIGINS = 1_000
/** Shorter texts cost more to convert than to hold. */
const LONG_CHARACTERS = 64 * 1024

export function createTransport(parts: TransportParts): Transport {
  const { clock, log, headersFor, lateReads, environment = {}, fetch: send = fetch } = parts
  const connector = createConnector({ clock, dial: parts.dial })
  const origins = new Map<string, Origin>()

  /** Throws a TypeError for what is no URL. */
  function originFor(url: string): Origin {
    const end = url.indexOf('/', url.indexOf('//') + 2)
    const name = end === -1 ? url : url.slice(0, end)
    let origin = origins.get(name)
    if (origin) return origin
    origin = originOf(name, environment)
    if (origins.size >= MAX_ORIGINS) origins.clear()
    origins.set(name, origin)
    return origin
  }

  /** Awaited by orders only. */
  async function reachable(request: UpstreamRequest, origin: Origin, exchange: Exchange): Promise<void> {
    await connector.reach(origin, request, exchange)
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
    /** One function that waits: each further one would make a promise and four objects for every call. */
    async send(request) {
      const batched = openExchanges === 0 ? undefined : exchanged(request)
      const origin = batched ? undefined : originFor(request.url)
      if (request.isProbe && origin?.isProxied) {
        throw new GatewayError('upstream_unreachable', 'The probe would have to go through a proxy.')
      }
      const exchange = new Exchange(request, clock)
      if (batched) exchange.begin(batched)
      if (origin) {
        let stopWatching: (() => void) | undefined
        try {
          if (request.order) await reachable(request, origin, exchange)
          else if (!origin.isProxied && clock.steady() - origin.responded_at >= TRUSTED_MILLISECONDS)
            stopWatching = connector.watch(origin, exchange)
          const response = await send(request.url, initOf(request, exchange.signal))
          origin.responded_at = clock.steady()
          exchange.begin(response, lateReads)
        } catch (thrown) {
          origin.responded_at = Number.NEGATIVE_INFINITY
          throw failed(thrown, exchange)
        } finally {
          stopWatching?.()
        }
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

/** Tokens are renewed every 30 to 60 minutes; responses to requests with the last few may still arrive. */
const MOST_LEARNED = 16

type ScrubbingTransport = Transport & {
  /** Watches one stream of deltas; undefined while the provider has no secret. */
  watchDeltas(): DeltaWatch | undefined
  /** A text that came in another way than as a response. */
  scrub(text: string): string
}

/** Scrubs the configured secrets, and every credential that is sent: keys of the environment, derived tokens. */
export function createScrubbingTransport(transport: Transport, written: string[]): ScrubbingTransport {
  const learned = new Set<string>()
  const isCredential = new Map<string, boolean>()
  /** Header name -> the last value that was checked. */
  const seen = new Map<string, string>()
  let scrubber = createSecretScrubber(written)

  function learn(found: string[]): void {
    const fresh = found.filter((secret) => !written.includes(secret) && !learned.has(secret))
    if (fresh.length === 0) return
    for (const secret of fresh) learned.add(secret)
    for (const oldest of learned) {
      if (learned.size <= MOST_LEARNED) break
      learned.delete(oldest)
      seen.clear() // it may be sent again
    }
    scrubber = createSecretScrubber([...written, ...learned])
  }

  /** The headers last: what the others have replaced is learned again. */
  function learnFrom({ headers, url }: UpstreamRequest): void {
    if (url.includes('?')) learn(secretsInQuery(url))
    for (const name in headers) {
      let isOne = isCredential.get(name)
      if (isOne === undefined) {
        isOne = isCredentialName(name)
        isCredential.set(name, isOne)
      }
      const value = headers[name]
      if (!isOne || value === undefined || seen.get(name) === value) continue
      seen.set(name, value)
      learn(secretsInHeader(value))
    }
  }

  const current = () => scrubber

  return {
    send(request) {
      if (!request.grants_credentials) {
        learnFrom(request)
        request.scrubber = current
      }
      return transport.send(request)
    },
    watchDeltas: () => scrubber?.deltas(),
    scrub: (text) => scrubber?.text(text) ?? text,
  }
}
