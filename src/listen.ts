/** The listening port: accepts connections, passes requests to the gateway, and shuts down gracefully. */
import type { Server } from 'bun'
import { DEFAULT_SERVER, type ServerSettings } from './config/config.ts'
import type { Outcome, Peer } from './http/context.ts'
import { isWebSocket } from './http/request-parts.ts'
import type { SocketHandler } from './http/socket.ts'
import { descriptorLimit, openDescriptors } from './kit/descriptors.ts'
import { type ListeningSocket, listeningSocket } from './kit/listening-socket.ts'
import type { Log } from './kit/log.ts'

type ListenParts = {
  gateway: {
    fetch(request: Request, peer: Peer): Promise<Response>
    drain(options: { deadline_ms: number }): Promise<void>
  }
  server: Pick<ServerSettings, 'host' | 'port'> & Partial<Pick<ServerSettings, 'max_body_bytes'>>
  log: Log
  /** Other processes of this user may listen on the port as well: each gets a part of the connections. */
  isShared?: boolean
  /** Seconds that a connection may stay open between requests. */
  idle_seconds?: number
  /** Replaced by tests. */
  descriptors?: { open(): number | undefined; limit: number | undefined }
}

export type Listener = {
  /** `http://<host>:<port>`, without a slash at the end. */
  url: string
  port: number
  /** Requests that are open, and all that have started; messages of WebSockets count as requests. */
  requests(): { open: number; started: number }
  /** From now on each connection is closed after its next response, so that another process that shares the port gets its client. */
  retire(): void
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
/**
 * For a client that has stopped reading: what waits for it in the system's buffers is not worth its connection. The
 * runtime closes a connection only by its idle time, which it measures in steps of four seconds.
 */
const GONE_SECONDS = 1
/** The last bytes may still be on their way to the socket, even after the deadline. */
const FLUSH_MILLISECONDS = 500
/** In this time after the port is closed, requests on connections that are open already are served. */
const LAST_REQUEST_MILLISECONDS = 250
/** A WebSocket message that is a little too large gets an error; a larger one closes the connection (1009). */
const MESSAGE_MARGIN_BYTES = 64 * 1024
/** A WebSocket whose client answers no ping for this long is closed. */
const SOCKET_IDLE_SECONDS = 60

/** Of the file descriptors: beyond the first part idle connections are closed, beyond the second requests refused. */
const CLOSE_IDLE_PART = 0.7
const CROWDED_PART = 0.9
const LOOK_MILLISECONDS = 100

const SYSTEM_DESCRIPTORS = { open: openDescriptors, limit: descriptorLimit() }

type Connected = {
  request: Request
  server: Server<SocketHandler>
  isCrowded: boolean
  isRetiring: boolean
  idle_seconds: number
}

/** One object for each request, without closures. */
class ConnectedPeer implements Peer {
  readonly #request: Request
  readonly #server: Server<SocketHandler>
  readonly #idle_seconds: number
  readonly isCrowded: boolean
  readonly isRetiring: boolean

  constructor({ request, server, isCrowded, isRetiring, idle_seconds }: Connected) {
    this.#request = request
    this.#server = server
    this.#idle_seconds = idle_seconds
    this.isCrowded = isCrowded
    this.isRetiring = isRetiring
  }

  get address(): string {
    return this.#server.requestIP(this.#request)?.address ?? ''
  }

  ended(outcome: Outcome): void {
    this.#server.timeout(this.#request, outcome === 'client_gone' ? GONE_SECONDS : this.#idle_seconds)
  }
}

/** Who has connected last may not have sent its request yet: it is served, and its connection closed after it. */
async function closePort(socket: ListeningSocket, deadline_ms: number): Promise<void> {
  await socket.shutDown()
  await Bun.sleep(Math.min(deadline_ms, LAST_REQUEST_MILLISECONDS))
}

export async function listen(parts: ListenParts): Promise<Listener> {
  const {
    gateway,
    server,
    log,
    isShared = false,
    idle_seconds = IDLE_SECONDS,
    descriptors = SYSTEM_DESCRIPTORS,
  } = parts
  let isCrowded = false
  let isRetiring = false
  let started = 0
  let socket: ListeningSocket | undefined
  const bun = Bun.serve<SocketHandler>({
    hostname: server.host,
    port: server.port,
    // Otherwise errors would be shown to clients with our source, and printed outside the log.
    development: false,
    // Outside of development the default would let any second gateway share the port and receive half of the requests.
    reusePort: isShared,
    idleTimeout: idle_seconds,
    // The gateway limits bodies itself, so that a body that is too large gets an error in its own form.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch(request, self) {
      started++
      if (isWebSocket(request)) return upgraded(request, self)
      // An open request may be silent for as long as its upstream may.
      self.timeout(request, 0)
      return gateway.fetch(request, new ConnectedPeer({ request, server: self, isCrowded, isRetiring, idle_seconds }))
    },
    websocket: {
      open(socket) {
        socket.data.open({
          send: (text) => void socket.sendText(text),
          buffered: () => socket.getBufferedAmount(),
          close: (code, reason) => socket.close(code, reason),
        })
      },
      message(socket, data) {
        started++
        socket.data.message(data)
      },
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
      isCrowded,
      upgrade(handler, headers) {
        isUpgraded = self.upgrade(request, { data: handler, headers })
        return isUpgraded
      },
    })
    return isUpgraded ? undefined : response
  }

  /** Without a free descriptor no connection can be accepted, and none opened to a provider. */
  function look(): void {
    const open = descriptors.open() ?? 0
    const { limit = Number.POSITIVE_INFINITY } = descriptors
    if (open > limit * CLOSE_IDLE_PART) bun.closeIdleConnections()
    const wasCrowded = isCrowded
    isCrowded = open > limit * CROWDED_PART
    if (isCrowded && !wasCrowded) log.warn('few file descriptors are left: requests are refused', { open, limit })
  }
  const timer = setInterval(look, LOOK_MILLISECONDS)
  timer.unref()

  const host = server.host.includes(':') ? `[${server.host}]` : server.host
  return {
    url: `http://${host}:${bun.port}`,
    port: bun.port ?? server.port,
    requests: () => ({ open: bun.pendingRequests, started }),
    retire() {
      isRetiring = true
      socket = listeningSocket(bun.port ?? server.port)
      socket?.acceptAtOnce()
    },
    async stop({ deadline_ms }) {
      const deadline = performance.now() + deadline_ms
      if (socket && deadline_ms > 0) await closePort(socket, deadline_ms)
      bun.stop()
      clearInterval(timer)
      await gateway.drain({ deadline_ms })
      // The runtime itself sends a file, after the gateway has finished its request.
      const end = Math.max(deadline, performance.now() + FLUSH_MILLISECONDS)
      while ((bun.pendingRequests > 0 || bun.pendingWebSockets > 0) && performance.now() < end) await Bun.sleep(5)
      await bun.stop(true)
    },
  }
}
