/** Connects to upstreams before a request is sent: limits the time of a connection, which the runtime's fetch does not. */
import { connect } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { Exchange } from './exchange.ts'
import { clientClosed, failedToSend, neverSent, notAccepted } from './transport-failure.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** Opens and closes a bare connection; calls back once when it was established, or with why it failed. Call the result to give up. */
export type Dial = (host: string, port: number, settled: (failure?: unknown) => void) => () => void

/** One scheme, host and port. */
export type Origin = {
  readonly host: string
  readonly port: number
  /** Whether the runtime sends requests for it through a proxy. */
  readonly isProxied: boolean
  /** When it last responded, by the steady clock. */
  responded_at: number
}

type Connector = {
  /**
   * Gives a request up where its origin accepts no connection in time: Bun's fetch has no connect timeout, so a second, bare
   * connection is opened beside the first request. The result stops it.
   */
  watch(origin: Origin, exchange: Exchange): () => void
  /**
   * Resolves once a bare connection to the host of an order was established: whatever prevents that connection has certainly
   * prevented the order. The connection itself is not used, since fetch accepts none.
   */
  reach(origin: Origin, request: UpstreamRequest, exchange: Exchange): Promise<void>
}

export function createConnector({ clock, dial = dialTcp }: { clock: Clock; dial?: Dial | undefined }): Connector {
  return {
    watch(origin, exchange) {
      const { request } = exchange
      const cancelTimer = clock.after(request.timeouts.connect_seconds * 1000, () => {
        hangUp()
        exchange.end(notAccepted(request))
      })
      const hangUp = dial(origin.host, origin.port, () => cancelTimer())
      return () => {
        cancelTimer()
        hangUp()
      }
    },

    async reach(origin, request, exchange) {
      if (exchange.reason) throw neverSent(exchange.reason)
      if (origin.isProxied) return
      const { signal } = exchange
      await new Promise<void>((resolve, reject) => {
        const done = (error?: GatewayError) => {
          cancelTimer()
          signal.removeEventListener('abort', disconnect)
          if (error) reject(neverSent(error))
          else resolve()
        }
        const disconnect = () => {
          hangUp()
          done(exchange.reason ?? clientClosed(request.signal))
        }
        const cancelTimer = clock.after(request.timeouts.connect_seconds * 1000, () => {
          hangUp()
          done(notAccepted(request))
        })
        signal.addEventListener('abort', disconnect)
        const hangUp = dial(origin.host, origin.port, (failure) =>
          done(failure === undefined ? undefined : failedToSend(request.provider, failure)),
        )
      })
    },
  }
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

/** `name`: a URL without a path. `environment`: of the process, read only for proxy variables. */
export function originOf(name: string, environment: Record<string, string | undefined>): Origin {
  const url = new URL(name)
  const host = url.hostname.replace(/^\[|\]$/g, '') // IPv6 hosts stand in brackets
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  return { host, port, isProxied: isProxied(url, environment), responded_at: Number.NEGATIVE_INFINITY }
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
