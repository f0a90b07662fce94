/** One request by HTTP/1.1, from its connection to the end of its response. */
import type { Clock } from '../clock.ts'
import type { ByteReader } from '../inflate.ts'
import { asHttp1Error, type Connection, type Destination, openConnection } from './connection.ts'
import { requestHead } from './request-head.ts'
import { Http1Error, type ResponseHead } from './response-parser.ts'

export type Http1Request = {
  url: URL
  method: string
  headers: Record<string, string>
  /** Removed from the request, which may live longer. */
  body?: string | Uint8Array | undefined
  /** Requests of one pool share connections. */
  pool: string
  /** How long a connection may take to be established, its encryption included. */
  connect_ms: number
  /** It is sent on a connection of its own, and never again. */
  is_single?: boolean
  /** With `is_single`: awaited before a byte is written, once the connection is established. If it rejects, nothing was sent. */
  beforeSend?: (() => Promise<void>) | undefined
}

type Http1Response = {
  status: number
  headers: Headers
  /** Undefined: there is none. */
  body: ByteReader | undefined
}

export type Http1Call = {
  /** Rejects with Http1Error, with what `beforeSend` rejects with, or with the reason of `abort`. */
  response: Promise<Http1Response>
  /** Closes the connection, wherever the call stands; the response or its body rejects with the reason. */
  abort(reason: unknown): void
  /** Whether a byte of the request may have left. */
  isSent(): boolean
}

/** A reader that is this far behind stops the server; it goes on when half of it is read. */
const MOST_UNREAD_BYTES = 256 * 1024

/** A connection that was idle for so long. */
export type Pooled = { connection: Connection; idle_ms: number }

type CallParts = {
  clock: Clock
  ca: string | undefined
  /** An idle connection. */
  take(pool: string): Pooled | undefined
  /** For further requests, or closes it. */
  keep(pool: string, connection: Connection, head: ResponseHead): void
}

export const startCall = (request: Http1Request, parts: CallParts): Http1Call => new Call(request, parts)

/** Also the reader of the body. */
class Call implements Http1Call, ByteReader {
  readonly response: Promise<Http1Response>
  readonly #request: Http1Request
  /** Needed until the response begins: it may be long. */
  #body: Http1Request['body']
  readonly #parts: CallParts
  readonly #respond: (response: Http1Response) => void
  readonly #reject: (reason: unknown) => void
  #connection: Connection | undefined
  #cancelConnect: ((error: Http1Error) => void) | undefined
  #mayRepeat = false
  #stopRepeat: (() => void) | undefined
  #isSent = false
  #isAborted = false
  #head: ResponseHead | undefined
  readonly #chunks: Uint8Array[] = []
  #unread = 0
  #isPaused = false
  #isEnded = false
  #failure: { error: unknown } | undefined
  #waiting: PromiseWithResolvers<ReadResult> | undefined

  constructor(request: Http1Request, parts: CallParts) {
    this.#request = request
    this.#body = request.body
    delete request.body
    this.#parts = parts
    const { promise, resolve, reject } = Promise.withResolvers<Http1Response>()
    this.response = promise
    this.#respond = resolve
    this.#reject = reject
    promise.catch(() => {})
    const pooled = request.is_single ? undefined : parts.take(request.pool)
    if (!pooled) this.#open().catch((error: unknown) => this.#fail(error))
    else {
      this.#mayRepeat = true
      if (pooled.idle_ms >= STALE_MS) this.#stopRepeat = parts.clock.after(NOTICE_MS, this.#forget)
      else afterNextRead(this.#forget) // it may have been closed before, which is noticed when sockets are read next
      this.#start(pooled.connection)
    }
  }

  readonly #forget = () => {
    this.#mayRepeat = false
  }

  async #open(): Promise<void> {
    const { beforeSend } = this.#request
    const connection = await this.#connect()
    this.#connection = connection
    if (this.#isAborted) return connection.destroy()
    if (beforeSend) {
      await beforeSend()
      if (this.#isAborted) return connection.destroy()
      if (!connection.isOpen())
        throw new Http1Error('ECONNABORTED', 'The connection was closed before anything was sent.')
    }
    this.#mayRepeat = false
    this.#start(connection)
  }

  async #connect(): Promise<Connection> {
    const { clock, ca } = this.#parts
    const { url, connect_ms } = this.#request
    const { connected, cancel } = openConnection(destinationOf(url, ca))
    this.#cancelConnect = cancel
    const stop = clock.after(connect_ms, () =>
      cancel(new Http1Error('ETIMEDOUT', 'The connection was not established in time.')),
    )
    try {
      return await connected
    } finally {
      stop()
      this.#cancelConnect = undefined
    }
  }

  #start(connection: Connection): void {
    this.#connection = connection
    try {
      const body = this.#body
      const head = requestHead({ ...this.#request, body })
      const { method } = this.#request
      this.#isSent = true
      connection.send(bytesOf(head, body), method, {
        head: (found) => this.#headArrived(found),
        body: (bytes) => this.#bodyArrived(bytes),
        ended: () => this.#ended(),
        failed: (error) => this.#failed(error),
      })
    } catch (error) {
      connection.destroy()
      this.#fail(error)
    }
  }

  #headArrived(head: ResponseHead): void {
    this.#stopRepeat?.()
    this.#head = head
    this.#body = undefined
    this.#respond({ status: head.status, headers: headersOf(head), body: this })
  }

  #bodyArrived(bytes: Uint8Array): void {
    if (this.#waiting) {
      this.#waiting.resolve({ done: false, value: bytes })
      this.#waiting = undefined
      return
    }
    this.#chunks.push(bytes)
    this.#unread += bytes.length
    if (this.#unread < MOST_UNREAD_BYTES || this.#isPaused) return
    this.#isPaused = true
    this.#connection?.pause()
  }

  #ended(): void {
    this.#isEnded = true
    const connection = this.#connection
    this.#connection = undefined
    if (connection) {
      if (this.#isPaused) connection.resume()
      const head = this.#head
      if (head?.is_reusable && !this.#request.is_single) this.#parts.keep(this.#request.pool, connection, head)
      else connection.destroy()
    }
    this.#waiting?.resolve(DONE)
    this.#waiting = undefined
  }

  /** The connection has failed. One that was idle may have been closed before the request arrived: it is sent once more. */
  #failed(error: Http1Error): void {
    this.#stopRepeat?.()
    const wasStale = this.#mayRepeat && this.#head === undefined && CLOSED.has(error.code) && !this.#isAborted
    this.#connection = undefined
    if (wasStale) this.#open().catch((thrown: unknown) => this.#fail(thrown))
    else this.#fail(error)
  }

  #fail(error: unknown): void {
    this.#stopRepeat?.()
    if (this.#failure || this.#isEnded) return
    this.#failure = { error }
    this.#connection = undefined
    this.#reject(error)
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }

  abort(reason: unknown): void {
    if (this.#isAborted || this.#isEnded) return
    this.#isAborted = true
    const connection = this.#connection
    this.#fail(reason)
    this.#chunks.length = 0
    this.#cancelConnect?.(asHttp1Error(reason))
    connection?.destroy()
  }

  isSent(): boolean {
    return this.#isSent
  }

  read(): Promise<ReadResult> {
    const bytes = this.#chunks.shift()
    if (bytes) {
      this.#unread -= bytes.length
      if (this.#isPaused && this.#unread <= MOST_UNREAD_BYTES / 2) {
        this.#isPaused = false
        this.#connection?.resume()
      }
      return Promise.resolve({ done: false, value: bytes })
    }
    if (this.#isEnded) return Promise.resolve(DONE)
    if (this.#failure) return Promise.reject(this.#failure.error)
    this.#waiting = Promise.withResolvers<ReadResult>()
    return this.#waiting.promise
  }

  cancel(): Promise<void> {
    this.abort(new Http1Error('ECONNABORTED', 'The response was no longer needed.'))
    return Promise.resolve()
  }
}

/** What is called after the next read of the sockets, and after the one that follows. */
let next: (() => void)[] = []
let later: (() => void)[] = []
let isScheduled = false

/** One timer of the event loop for all calls: each makes the loop turn once more without waiting. */
function afterNextRead(work: () => void): void {
  later.push(work)
  if (isScheduled) return
  isScheduled = true
  setImmediate(turn)
}

/** The sockets are read between two turns. */
function turn(): void {
  const due = next
  next = later
  later = []
  isScheduled = next.length > 0
  if (isScheduled) setImmediate(turn)
  for (const work of due) work()
}

type ReadResult = Awaited<ReturnType<ByteReader['read']>>
const DONE: ReadResult = { done: true, value: undefined }

/** A server that closes a connection after less time has not done so for its idleness: it may have read the request. */
const STALE_MS = 1_000
/** It answers a request on a connection that it has closed within the time of one round trip; later, it has read the request. */
const NOTICE_MS = 500
/** Codes of a connection that its server has closed. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

const destinationOf = ({ protocol, hostname, port }: URL, ca: string | undefined): Destination => ({
  host: hostname.replace(/^\[|\]$/g, ''),
  port: Number(port) || (protocol === 'https:' ? 443 : 80),
  server_name: protocol === 'https:' ? hostname.replace(/^\[|\]$/g, '') : undefined,
  ca,
})

/** A short body is written together with the head: one packet. */
const SHORT_BYTES = 16 * 1024

function bytesOf(head: string, body: Http1Request['body']): Uint8Array[] {
  if (body === undefined) return [Buffer.from(head, 'latin1')]
  const size = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const whole = `${head}content-length: ${size}\r\n\r\n`
  if (size > SHORT_BYTES) return [Buffer.from(whole, 'latin1'), typeof body === 'string' ? Buffer.from(body) : body]
  const bytes = Buffer.allocUnsafe(whole.length + size)
  bytes.write(whole, 0, 'latin1')
  if (typeof body === 'string') bytes.write(body, whole.length)
  else bytes.set(body, whole.length)
  return [bytes]
}

function headersOf({ headers }: ResponseHead): Headers {
  const found = new Headers()
  for (const [name, value] of headers) found.append(name, value)
  return found
}
