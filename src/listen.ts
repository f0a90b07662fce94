/** The listening port: accepts connections, passes requests to the gateway, and shuts down gracefully. */
import type { Server } from 'bun'
import { DEFAULT_SERVER, type ServerSettings } from './config/config.ts'
import type { Peer } from './http/live.ts'
import { isWebSocket, type SocketHandler } from './http/socket.ts'
import type { Log } from './kit/log.ts'

type ListenParts = {
  gateway: {
    fetch(request: Request, peer: Peer): Promise<Response>
    drain(options: { deadline_ms: number }): Promise<void>
  }
  server: Pick<ServerSettings, 'host' | 'port'> & Partial<Pick<ServerSettings, 'max_body_bytes'>>
  log: Log
  /** Seconds that a connection may stay open between requests. */
  idle_seconds?: number
}

export type Listener = {
  /** `http://<host>:<port>`, without a slash at the end. */
  url: string
  port: number
  /** Accepts no more connections, lets open requests finish until the deadline, aborts the rest. */
  stop(options: { deadline_ms: number }): Promise<void>
}

/**
 * Longer than the keep-alive of common proxies and clients (60 s), so that they close first. What Bun 1.4.5 does by
 * itself, measured: it cuts a connection whose first head is not complete within 12 s; a later one on the same
 * connection counts as idle. It responds 431 to a head above 16 KiB. It does not buffer a body that is not read yet.
 * What it cannot do: a request that is sent before the previous response (pipelining), a client that closes its half of
 * the connection while it waits, and a method that Bun does not know (`FOO`, `get`) end the connection. For such methods
 * no handler is called: https://github.com/oven-sh/bun/issues/6556. `node:http` reports them, but would carry every call.
 */
const IDLE_SECONDS = 75
/** The last bytes may still be on their way to the socket, even after the deadline. */
const FLUSH_MILLISECONDS = 500
/** A WebSocket message that is a little too large gets an error; a larger one closes the connection (1009). */
const MESSAGE_MARGIN_BYTES = 64 * 1024
/** A WebSocket whose client answers no ping for this long is closed. */
const SOCKET_IDLE_SECONDS = 60

export async function listen({ gateway, server, log, idle_seconds = IDLE_SECONDS }: ListenParts): Promise<Listener> {
  const bun = Bun.serve<SocketHandler>({
    hostname: server.host,
    port: server.port,
    // Otherwise errors would be shown to clients with our source, and printed outside the log.
    development: false,
    // Outside of development the default lets a second process share the port and receive half of the requests.
    reusePort: false,
    idleTimeout: idle_seconds,
    // The gateway limits bodies itself, so that a body that is too large gets an error in its own form.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch(request, self) {
      if (isWebSocket(request)) return upgraded(request, self)
      // An open request may be silent for as long as its upstream may.
      self.timeout(request, 0)
      return gateway.fetch(request, {
        get address() {
          return self.requestIP(request)?.address ?? ''
        },
        ended: () => self.timeout(request, idle_seconds),
      })
    },
    websocket: {
      open(socket) {
        socket.data.open({
          send: (text) => void socket.sendText(text),
          buffered: () => socket.getBufferedAmount(),
          close: (code, reason) => socket.close(code, reason),
        })
      },
      message: (socket, data) => socket.data.message(data),
      drain: (socket) => socket.data.drained(),
      close: (socket) => socket.data.closed(),
      // Without compression: a small message cannot become a large one.
      perMessageDeflate: false,
      maxPayloadLength: (server.max_body_bytes ?? DEFAULT_SERVER.max_body_bytes) + MESSAGE_MARGIN_BYTES,
      // Nothing is dropped: the gateway stops reading from the provider while bytes wait here.
      backpressureLimit: 0,
      // The runtime sends pings; a client that answers none is disconnected.
      idleTimeout: SOCKET_IDLE_SECONDS,
      sendPings: true,
    },
    error(cause) {
      log.error('request failed without a response', {}, cause)
      return new Response(null, { status: 500 })
    },
  })
  /** Undefined once the connection is a WebSocket: the runtime has then responded. */
  async function upgraded(request: Request, self: Server<SocketHandler>): Promise<Response | undefined> {
    let isUpgraded = false
    const response = await gateway.fetch(request, {
      address: self.requestIP(request)?.address ?? '',
      upgrade(handler, headers) {
        isUpgraded = self.upgrade(request, { data: handler, headers })
        return isUpgraded
      },
    })
    return isUpgraded ? undefined : response
  }

  const host = server.host.includes(':') ? `[${server.host}]` : server.host
  return {
    url: `http://${host}:${bun.port}`,
    port: bun.port ?? server.port,
    async stop({ deadline_ms }) {
      const deadline = performance.now() + deadline_ms
      bun.stop()
      await gateway.drain({ deadline_ms })
      // The runtime itself sends a file, after the gateway has finished its request.
      const end = Math.max(deadline, performance.now() + FLUSH_MILLISECONDS)
      while ((bun.pendingRequests > 0 || bun.pendingWebSockets > 0) && performance.now() < end) await Bun.sleep(5)
      await bun.stop(true)
    },
  }
}
