/** The response of an upstream, read within the limits of its request. */
import type { Clock } from '../../kit/clock.ts'
import { type ByteReader, InflateError, inflate, isCoding } from '../../kit/inflate.ts'
import { GatewayError } from '../../spec/error.ts'
import type { RawResponse } from './sender.ts'
import { clientClosed, failedToRead, timedOut, tooLarge } from './transport-failure.ts'
import type { RequestLifetime, UpstreamRequest } from './upstream-request.ts'

export type UpstreamResponse = {
  status: number
  headers: Headers
  /** The next bytes of the body, `undefined` at its end. The idle timeout runs only while this waits. */
  read(): Promise<Uint8Array | undefined>
  /** The first bytes of the body, without consuming them. */
  peek(): Promise<Uint8Array | undefined>
  /** The whole body, at most `limit` bytes: beyond it, an error. */
  text(limit?: number): Promise<string>
  /** The beginning of the body, for error responses: what arrives within a size limit and a short time; never throws for the body. */
  excerpt(): Promise<string>
  /** Call when done: a body that ends by itself within a moment leaves its connection for the next request. */
  release(): void
  /** Call to abandon the response: closes the connection. */
  drop(): void
}

/** Official APIs return a few hundred kilobytes at most; images in base64 take some tens of megabytes. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024
/** An error page is read for its message only. */
const MAX_EXCERPT_BYTES = 64 * 1024
const EXCERPT_MILLISECONDS = 5_000
/** What may still follow a complete response: the end of a chunked body, a comment. */
const MAX_REST_BYTES = 16 * 1024
const REST_MILLISECONDS = 1_000

/** The encoding with which the upstream compressed the body although the request forbade it; undefined: none. */
function codingOf(headers: Headers): string | undefined {
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  return coding === '' || coding === 'identity' ? undefined : coding
}

/** Used for whole texts only, so that it keeps nothing between them. */
const utf8 = new TextDecoder()

const NO_BODY: ByteReader = {
  read: () => Promise.resolve({ done: true, value: undefined }),
  cancel: () => Promise.resolve(),
}

type ResponseParts = { clock: Clock; request: UpstreamRequest; response: RawResponse; life: RequestLifetime }

/** A response whose body is read within the limits of its request. */
export class LimitedResponse implements UpstreamResponse {
  readonly status: number
  readonly headers: Headers
  readonly #parts: ResponseParts
  readonly #coding: string | undefined
  #reader: ByteReader | undefined
  #ended = false
  #peeked: Uint8Array | undefined
  #waitingSince: number | undefined
  #cancelIdle: (() => void) | undefined

  constructor(parts: ResponseParts) {
    this.#parts = parts
    this.status = parts.response.status
    this.headers = parts.response.headers
    this.#coding = codingOf(this.headers)
  }

  async read(): Promise<Uint8Array | undefined> {
    const { clock, request, response, life } = this.#parts
    if (this.#peeked) {
      const bytes = this.#peeked
      this.#peeked = undefined
      return bytes
    }
    if (this.#ended) return undefined
    if (request.stream) {
      this.#waitingSince = clock.steady()
      if (!this.#cancelIdle) this.#watchIdle(request.timeouts.idle_seconds * 1000)
    }
    try {
      this.#reader ??= this.#readerOf(response.body())
      const { done, value } = await this.#reader.read()
      this.#waitingSince = undefined
      // The end of a body may be reported before the abort that caused it.
      if (life.reason) throw life.reason
      if (!done) return value
      this.#finish()
      return undefined
    } catch (thrown) {
      throw this.#failed(thrown)
    }
  }

  async peek(): Promise<Uint8Array | undefined> {
    this.#peeked ??= await this.read()
    return this.#peeked
  }

  text(limit = MAX_RESPONSE_BYTES): Promise<string> {
    const length = Number(this.headers.get('content-length') ?? Number.NaN)
    if (length > limit) return Promise.reject(this.#tooLarge(limit))
    const { request, response } = this.#parts
    // For a stream, the idle timeout limits each read, and nothing limits the whole.
    const isAtOnce = !request.stream && this.#coding === undefined && !this.#reader
    if (response.text && Number.isFinite(length) && isAtOnce) return this.#textAtOnce(response.text())
    return this.#textInPieces(limit)
  }

  async #textInPieces(limit: number): Promise<string> {
    const pieces: Uint8Array[] = []
    let size = 0
    for (let bytes = await this.read(); bytes; bytes = await this.read()) {
      size += bytes.length
      if (size > limit) throw this.#tooLarge(limit)
      pieces.push(bytes)
    }
    return utf8.decode(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces))
  }

  async excerpt(): Promise<string> {
    const { clock, request } = this.#parts
    const decoder = new TextDecoder()
    let text = ''
    const cancel = clock.after(EXCERPT_MILLISECONDS, () => this.drop())
    try {
      while (text.length < MAX_EXCERPT_BYTES) {
        const bytes = await this.read()
        if (!bytes) break
        text += decoder.decode(bytes, { stream: true })
      }
    } catch {
      // The status line alone is enough; a client that disconnected is detected by its own signal.
      if (request.signal.aborted) throw clientClosed(request.signal)
    } finally {
      cancel()
      this.drop()
    }
    return text.slice(0, MAX_EXCERPT_BYTES)
  }

  release(): void {
    if (this.#ended) return
    const cancel = this.#parts.clock.after(REST_MILLISECONDS, () => this.drop())
    this.#drain().then(cancel, cancel)
  }

  /** Closes the connection and discards the rest. */
  drop(): void {
    if (this.#ended) return
    const { response, life } = this.#parts
    life.end(new GatewayError('client_closed_request', 'The response was no longer needed.'))
    this.#finish()
    // The abort has errored the body already: the rejection of this call is irrelevant and must not go unhandled.
    if (this.#reader) this.#reader.cancel().catch(() => {})
    else response.discard()
  }

  /** The text of a body whose length is known. */
  async #textAtOnce(reading: Promise<string>): Promise<string> {
    const { life } = this.#parts
    try {
      const text = await reading
      if (life.reason) throw life.reason
      this.#finish()
      return text
    } catch (thrown) {
      throw this.#failed(thrown)
    }
  }

  /** The body after decompression: all limits count these bytes. */
  #readerOf(plain: ByteReader | undefined): ByteReader {
    if (!plain) return NO_BODY
    const coding = this.#coding
    if (coding === undefined) return plain
    if (isCoding(coding)) return inflate(plain, coding)
    throw new InflateError(`has the content-encoding "${coding.slice(0, 40)}", which was not requested`)
  }

  /** One timer for the whole stream, rearmed when it fires: a timer for each read would cost more than the read. */
  #watchIdle(ms: number): void {
    const { clock, request, life } = this.#parts
    const { idle_seconds } = request.timeouts
    this.#cancelIdle = clock.after(ms, () => {
      this.#cancelIdle = undefined
      if (this.#waitingSince === undefined) return
      const left = this.#waitingSince + idle_seconds * 1000 - clock.steady()
      if (left > 0) this.#watchIdle(left)
      else life.end(timedOut(request.provider, `the stream sent nothing for ${idle_seconds} s`))
    })
  }

  #finish(): void {
    this.#ended = true
    this.#waitingSince = undefined
    this.#cancelIdle?.()
    this.#cancelIdle = undefined
    this.#parts.life.close()
  }

  #failed(thrown: unknown): unknown {
    const { request, life } = this.#parts
    const error =
      life.reason ?? failedToRead(request, thrown instanceof InflateError ? this.#unreadable(thrown) : thrown)
    // Its server may go on to send it.
    if (thrown instanceof InflateError) life.end(error)
    this.#finish()
    return error
  }

  #unreadable({ message }: Error): GatewayError {
    const { provider } = this.#parts.request
    return new GatewayError('bad_upstream_response', `The upstream "${provider}" sent a body that ${message}.`)
  }

  #tooLarge(limit: number): GatewayError {
    this.drop()
    return tooLarge(this.#parts.request.provider, limit)
  }

  /** Reads and discards a short rest, so that the connection can be reused. */
  async #drain(): Promise<void> {
    let size = 0
    while (size <= MAX_REST_BYTES) {
      const bytes = await this.read()
      if (!bytes) return
      size += bytes.length
    }
    this.drop()
  }
}
