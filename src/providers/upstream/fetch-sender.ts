/** Sends by the runtime's fetch: through proxies, and to hosts that speak HTTP/2 only. */
import { connect } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import type { ByteReader } from '../../kit/inflate.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { RawResponse, Sender } from './sender.ts'
import { clientClosed, failedToSend, neverSent, notAccepted, notRecorded } from './transport-failure.ts'
import type { RequestLifetime, UpstreamRequest } from './upstream-request.ts'

type FetchInit = RequestInit & { timeout: false; decompress: false; protocol?: 'http1.1' }
export type Fetch = (url: string, init: FetchInit) => Promise<Response>
/** Opens and closes a bare connection; calls back once when it was established, or with why it failed. Call the result to give up. */
export type Dial = (host: string, port: number, settled: (failure?: unknown) => void) => () => void

type FetchSenderParts = {
  clock: Clock
  fetch?: Fetch | undefined
  dial?: Dial | undefined
  /** Whether the runtime sends requests for this address through a proxy. */
  isProxied(url: URL): boolean
}

/** An origin that responded this recently has an open connection or opens one quickly: it is not watched. */
const TRUSTED_MILLISECONDS = 30_000

export function createFetchSender(parts: FetchSenderParts): Sender {
  const { clock, isProxied } = parts
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
    if (isProxied(url)) return () => {}
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
    if (life.isEnded) throw neverSent(life.reason ?? clientClosed(request.signal))
    if (isProxied(url)) return
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

  return async (request, { url, life, headers }) => {
    let stopWatching = () => {}
    try {
      if (request.order) {
        await reach(request, url, life)
        await request.beforeSend?.().catch((thrown: unknown) => {
          throw notRecorded(thrown)
        })
        if (life.isEnded) throw neverSent(life.reason ?? clientClosed(request.signal))
      } else {
        stopWatching = watchConnect(url, request.timeouts.connect_seconds, () => life.end(notAccepted(request)))
      }
      const response = await send(request.url, {
        method: request.method,
        headers,
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
      return new FetchedResponse(response)
    } catch (thrown) {
      respondedAt.delete(url.origin)
      throw thrown
    } finally {
      stopWatching()
    }
  }
}

/** `Response.body` is not read for a text that is read as a whole: it would become a stream first. */
class FetchedResponse implements RawResponse {
  readonly #response: Response
  readonly status: number
  readonly headers: Headers

  constructor(response: Response) {
    this.#response = response
    this.status = response.status
    this.headers = response.headers
  }

  body(): ByteReader | undefined {
    return this.#response.body?.getReader()
  }

  text(): Promise<string> {
    return this.#response.text()
  }

  discard(): void {
    this.#response.body?.cancel().catch(() => {})
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

const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '') // IPv6 hosts stand in brackets
const portOf = (url: URL) => Number(url.port) || (url.protocol === 'https:' ? 443 : 80)

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
