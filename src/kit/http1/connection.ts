/** One connection to an HTTP/1.1 server. It carries one exchange at a time. */
import type { Socket, TLSOptions } from 'bun'
import { createResponseParser, Http1Error, type ResponseHead, type ResponseParser } from './response-parser.ts'

export type Destination = {
  /** A name or an address, without brackets. */
  host: string
  port: number
  /** Encrypts the connection: the name for which the certificate must be valid. */
  server_name?: string | undefined
  /** A certificate authority (PEM) to trust instead of the system's. */
  ca?: string | undefined
}

/** Told of one exchange, in order: its head, its bytes, and one of `ended` and `failed`. */
type ExchangeEvents = {
  head(head: ResponseHead): void
  body(bytes: Uint8Array): void
  ended(): void
  failed(error: Http1Error): void
}

export type Connection = {
  /** Sends a request. The connection must be idle. `bytes` are written in order, as fast as the server reads them. */
  send(bytes: readonly (string | Uint8Array)[], method: string, events: ExchangeEvents): void
  /** Stops and resumes reading: for a reader that is slower than the server. */
  pause(): void
  resume(): void
  /** Closes it at once. The exchange under way is told of `error`, where there is one. */
  destroy(error?: Http1Error): void
  isOpen(): boolean
  /** Closes it once it was silent for so many seconds, counted roughly; 0: never. */
  closeAfter(seconds: number): void
  /** Called once when an idle connection is closed, for example since its server sends what nobody asked for. */
  onIdleClosed: (() => void) | undefined
}

type BunSocket = Socket<ConnectionState>
/** `ALPNProtocols`: of which the server chooses one, each after its length. */
type TlsOptions = TLSOptions & { ALPNProtocols: string }

/** Rejects with Http1Error where the connection could not be established: nothing was sent. */
export function openConnection({ host, port, server_name, ca }: Destination): {
  connected: Promise<Connection>
  cancel(error: Http1Error): void
} {
  const { promise, resolve, reject } = Promise.withResolvers<Connection>()
  const state = new ConnectionState()
  let failed: Http1Error | undefined
  const fail = (error: Http1Error) => {
    failed ??= error
    state.destroy()
    reject(failed)
  }
  state.onEstablished = () => resolve(state)
  state.onRefused = fail
  Bun.connect<ConnectionState>({
    hostname: host,
    port,
    data: state,
    socket: server_name === undefined ? TCP_HANDLERS : TLS_HANDLERS,
    ...(server_name !== undefined && { tls: tlsOptions(server_name, ca) }),
  }).then(
    (socket) => {
      if (failed) socket.terminate()
    },
    (error: unknown) => fail(asHttp1Error(error)),
  )
  promise.catch(() => {})
  return { connected: promise, cancel: fail }
}

const tlsOptions = (serverName: string, ca: string | undefined): TlsOptions => ({
  serverName,
  ALPNProtocols: '\x08http/1.1',
  rejectUnauthorized: true,
  ...(ca !== undefined && { ca }),
})

/** A class, since it is the life of a socket; its methods are what the handlers of all sockets call. */
class ConnectionState implements Connection {
  onIdleClosed: (() => void) | undefined
  onEstablished: (() => void) | undefined
  onRefused: ((error: Http1Error) => void) | undefined
  #socket: BunSocket | undefined
  #isClosed = false
  #parser: ResponseParser | undefined
  #events: ExchangeEvents | undefined
  /** What the socket has not taken yet. */
  #unwritten: Uint8Array[] = []

  established(socket: BunSocket): void {
    this.#socket = socket
    socket.setNoDelay(true)
    if (this.#isClosed) socket.terminate()
    else this.onEstablished?.()
    this.onEstablished = undefined
    this.onRefused = undefined
  }

  /** The handshake begins, which may take too long. */
  opening(socket: BunSocket): void {
    this.#socket = socket
    if (this.#isClosed) socket.terminate()
  }

  /** Before it was established. */
  refused(socket: BunSocket, error: Http1Error): void {
    this.#isClosed = true
    this.onRefused?.(error) // before the socket calls `close`
    socket.terminate()
  }

  send(bytes: readonly (string | Uint8Array)[], method: string, events: ExchangeEvents): void {
    this.#events = events
    this.#parser = createResponseParser(
      { method },
      {
        head: (head) => events.head(head),
        body: (part) => events.body(part),
        end: () => {
          const isWritten = this.#unwritten.length === 0
          this.#events = undefined
          this.#parser = undefined
          if (!isWritten) this.destroy() // the server has answered without reading the request
          events.ended()
        },
      },
    )
    for (const part of bytes) this.#write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
  }

  #write(bytes: Uint8Array): void {
    if (this.#unwritten.length > 0) {
      this.#unwritten.push(bytes)
      return
    }
    const written = this.#socket?.write(bytes) ?? -1
    if (written < 0) this.closed(new Http1Error('EPIPE', 'The connection was closed.'))
    else if (written < bytes.length) this.#unwritten.push(bytes.subarray(written))
  }

  drained(): void {
    const waiting = this.#unwritten
    this.#unwritten = []
    for (const bytes of waiting) this.#write(bytes)
  }

  received(bytes: Buffer): void {
    if (!this.#parser) {
      this.destroy()
      return
    }
    try {
      this.#parser.push(bytes)
    } catch (error) {
      this.destroy(asHttp1Error(error))
    }
  }

  /** By the server, in order (`error` undefined) or not. */
  closed(error?: Http1Error): void {
    const events = this.#events
    const parser = this.#parser
    const wasClosed = this.#isClosed
    this.#isClosed = true
    this.onRefused?.(error ?? new Http1Error('ECONNRESET', 'The connection was closed before it was established.'))
    if (!events || !parser) {
      if (!wasClosed) this.#idleClosed()
      return
    }
    try {
      if (error && !parser.has_started) throw error
      parser.close()
      this.#socket?.terminate()
    } catch (thrown) {
      this.destroy(asHttp1Error(thrown))
    }
  }

  #idleClosed(): void {
    this.onIdleClosed?.()
    this.onIdleClosed = undefined
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  destroy(error?: Http1Error): void {
    const events = this.#events
    this.#isClosed = true
    this.#events = undefined
    this.#parser = undefined
    this.#unwritten = []
    this.#idleClosed()
    this.#socket?.terminate() // which calls `closed`
    if (error && events) events.failed(error)
  }

  closeAfter(seconds: number): void {
    this.#socket?.timeout(seconds)
  }

  /** It was silent for too long. */
  expired(): void {
    this.destroy()
  }

  isOpen(): boolean {
    return !this.#isClosed
  }
}

const COMMON = {
  data: (socket: BunSocket, bytes: Buffer) => socket.data.received(bytes),
  drain: (socket: BunSocket) => socket.data.drained(),
  end: (socket: BunSocket) => socket.data.closed(),
  close: (socket: BunSocket) => socket.data.closed(),
  timeout: (socket: BunSocket) => socket.data.expired(),
  error: (socket: BunSocket, error: Error) => socket.data.closed(asHttp1Error(error)),
}

const TCP_HANDLERS = { ...COMMON, open: (socket: BunSocket) => socket.data.established(socket) }

const TLS_HANDLERS = {
  ...COMMON,
  open: (socket: BunSocket) => socket.data.opening(socket),
  handshake(socket: BunSocket, isSuccess: boolean, error: Error | null) {
    if (isSuccess && socket.authorized && !error) socket.data.established(socket)
    else
      socket.data.refused(
        socket,
        asHttp1Error(error ?? new Http1Error('ERR_TLS_CERT', 'The certificate is not valid.')),
      )
  },
}

export function asHttp1Error(thrown: unknown): Http1Error {
  if (thrown instanceof Http1Error) return thrown
  const code = typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined
  return new Http1Error(typeof code === 'string' && code !== '' ? code : 'ECONNRESET', 'The connection failed.')
}
