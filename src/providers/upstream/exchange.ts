/** One request to an upstream and its response: what may end it early, and a body that is read within its limits. */
import { type Clock, TimeLimited } from '../../kit/clock.ts'
import { type ByteReader, decodedReader, InflateError, NO_BODY } from '../../kit/inflate.ts'
import { GatewayError } from '../../spec/error.ts'
import type { LateReads } from './late-reads.ts'
import { type BodyScrubber, type SecretScrubber, scrubHeaders } from './secret-scrubber.ts'
import { clientClosed, failedToRead, timedOut, tooLarge } from './transport-failure.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

/** Official APIs return a few hundred kilobytes at most; images in base64 take some tens of megabytes. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024
const MAX_EXCERPT_BYTES = 64 * 1024 // an error page is read for its message only
const EXCERPT_MILLISECONDS = 5_000
/** What may still follow a complete response: the end of a chunked body, a comment. */
const MAX_REST_BYTES = 16 * 1024
const REST_MILLISECONDS = 1_000

const utf8 = new TextDecoder() // for whole texts only, so that it keeps nothing between them

/** One object for each request. Secrets of the provider are removed from all that leaves it, whatever its content type is. */
export class Exchange extends TimeLimited implements UpstreamResponse {
  readonly request: UpstreamRequest
  status = 0
  /** Why the gateway ended the request, if it did. */
  reason: GatewayError | undefined
  readonly #clock: Clock
  readonly #control = new AbortController()
  #response: Response | undefined
  /** Set once a whole response has begun: it may be read to its end after the client has left. */
  #lateReads: LateReads | undefined
  #scrubber: SecretScrubber | undefined
  #received: Headers | undefined // as they came
  #headers: Headers | undefined
  /** The encoding with which the upstream compressed the body although the request forbade it; undefined: none. */
  #coding: string | undefined
  #reader: ByteReader | undefined
  #body: BodyScrubber | undefined
  #text: string | undefined // the whole text, once it was received
  #peeked: Uint8Array | undefined
  #isEnded = false
  /** Bytes from before a failure are returned before it. */
  #failure: { thrown: unknown } | undefined
  #waitingSince: number | undefined
  #isFirst = false // whether the timer is that of the beginning of the response

  constructor(request: UpstreamRequest, clock: Clock) {
    super()
    this.request = request
    this.#clock = clock
    if (request.signal.aborted) this.handleEvent()
    else {
      request.signal.addEventListener('abort', this)
      this.#limit()
    }
  }

  /** Aborted with the reason. */
  get signal(): AbortSignal {
    return this.#control.signal
  }

  handleEvent(): void {
    const reason = clientClosed(this.request.signal)
    if (!(reason.detail.has_left && this.#lateReads?.admits(this, reason))) this.end(reason)
  }

  end(error: GatewayError): void {
    if (this.reason) return
    this.reason = error
    this.#peeked = undefined
    this.close()
    this.#control.abort(error)
  }

  /** No more timers, no more listening to the client. */
  close(): void {
    this.stopTimer()
    this.request.signal.removeEventListener('abort', this)
    if (this.request.signal.aborted) this.#lateReads?.ended(this)
  }

  /** One timer: until the response begins for that, afterwards for the whole of it. A stream has a limit for each read instead. */
  #limit(): void {
    const { first_byte_seconds, total_seconds } = this.request.timeouts
    this.#isFirst = this.request.stream || first_byte_seconds < total_seconds
    this.startTimer(this.#clock, (this.#isFirst ? first_byte_seconds : total_seconds) * 1000)
  }

  protected timeIsUp(): void {
    const { provider, stream, timeouts } = this.request
    const { first_byte_seconds, total_seconds } = timeouts
    const isFirst = this.#isFirst
    this.#isFirst = false
    const isAnswered = this.status !== 0
    if (stream && isAnswered) this.#watchIdle()
    else if (!isFirst) this.end(timedOut(provider, `the whole response took longer than ${total_seconds} s`))
    else if (!isAnswered) this.end(timedOut(provider, `no response within ${first_byte_seconds} s`))
    else this.startTimer(this.#clock, (total_seconds - first_byte_seconds) * 1000)
  }

  begin(response: Response, lateReads?: LateReads): void {
    this.#response = response
    if (!this.request.stream && response.status < 300) this.#lateReads = lateReads
    this.status = response.status
    this.#scrubber = this.request.scrubber?.()
    this.#received = response.headers
    const coding = response.headers.get('content-encoding')?.trim().toLowerCase()
    this.#coding = coding === '' || coding === 'identity' ? undefined : coding
    if (this.request.stream) this.stopTimer()
  }

  /** Only for who reads them: most calls do not. */
  get headers(): Headers {
    this.#headers ??= scrubHeaders(this.#received ?? new Headers(), this.#scrubber)
    return this.#headers
  }

  get contentType(): string {
    return this.#received?.get('content-type') ?? ''
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#isEnded && !this.#peeked && this.#failure) throw this.#failure.thrown
      if (this.#isEnded && !this.#peeked) return undefined
      let bytes: Uint8Array | undefined
      try {
        bytes = this.#takePeeked() ?? this.#accept(await this.#next())
      } catch (error) {
        const thrown = this.failed(error)
        this.#failure = { thrown }
        const rest = this.#body?.end()
        if (rest && rest.length > 0) return rest
        throw thrown
      }
      if (!this.#scrubber) return bytes
      if (bytes) this.#body ??= this.#scrubber.body()
      const size = bytes && this.#body?.takes(bytes)
      if (size) this.#peeked = bytes?.subarray(size)
      const passed = bytes ? this.#body?.push(size ? bytes.subarray(0, size) : bytes) : this.#body?.end()
      if (passed && passed.length > 0) return passed
      if (!bytes) return undefined
    }
  }

  /** The next bytes as they were received. */
  async #receive(): Promise<Uint8Array | undefined> {
    if (this.#isEnded && !this.#peeked) return undefined
    try {
      return this.#takePeeked() ?? this.#accept(await this.#next())
    } catch (thrown) {
      throw this.failed(thrown)
    }
  }

  #takePeeked(): Uint8Array | undefined {
    const bytes = this.#peeked
    this.#peeked = undefined
    return bytes
  }

  /** What the runtime reads next. */
  #next(): ReturnType<ByteReader['read']> {
    if (this.request.stream) {
      this.#waitingSince = this.#clock.steady()
      if (!this.isTimed) this.startTimer(this.#clock, this.request.timeouts.idle_seconds * 1000)
    }
    if (this.#reader) return this.#reader.read()
    const body = this.#response?.body ?? null
    this.#response = undefined // a stream may be open for long: only its reader and its headers are used
    this.#reader = this.#coding === undefined ? (body?.getReader() ?? NO_BODY) : decodedReader(body, this.#coding)
    return this.#reader.read()
  }

  #accept({ done, value }: Awaited<ReturnType<ByteReader['read']>>): Uint8Array | undefined {
    this.#waitingSince = undefined
    // The end of a body may be reported before the abort that caused it.
    if (this.reason) throw this.reason
    if (!done) return value
    this.#finish()
    return undefined
  }

  async firstByte(): Promise<number | undefined> {
    this.#peeked ??= await this.#receive()
    return this.#peeked?.find((byte) => byte > 32) // 9, 10, 13 and 32 are white space
  }

  /** The whole text, where it can be received without a stream, which a body becomes as soon as it is asked for. */
  wholeText(limit = MAX_RESPONSE_BYTES): Promise<string> | undefined {
    // For a stream, the idle timeout limits each read, and nothing limits the whole.
    const isInPieces = this.request.stream || this.#coding !== undefined || this.#reader
    return !isInPieces && lengthOf(this.#received) <= limit ? this.#response?.text() : undefined
  }

  /** Called with the whole text. Throws where the request was ended meanwhile. */
  keepText(text: string): string {
    if (this.reason) throw this.reason
    this.#finish()
    this.#text = this.#scrubbed(text)
    return this.#text
  }

  #scrubbed(text: string): string {
    const scrubber = this.#scrubber
    if (scrubber) for (const form of scrubber.forms) if (text.includes(form)) return scrubber.text(text)
    return text
  }

  get received(): string | undefined {
    return this.#text
  }

  text(limit = MAX_RESPONSE_BYTES): Promise<string> {
    return this.#text === undefined ? this.#receiveText(limit) : Promise.resolve(this.#text)
  }

  async #receiveText(limit: number): Promise<string> {
    if (lengthOf(this.#received) > limit) throw this.#tooLarge(limit)
    const whole = this.wholeText(limit)
    if (!whole) return this.#scrubbed(await this.#textInPieces(limit))
    try {
      return this.keepText(await whole)
    } catch (thrown) {
      throw this.failed(thrown)
    }
  }

  async #textInPieces(limit: number): Promise<string> {
    const pieces: Uint8Array[] = []
    let size = 0
    for (let bytes = await this.#receive(); bytes; bytes = await this.#receive()) {
      size += bytes.length
      if (size > limit) throw this.#tooLarge(limit)
      pieces.push(bytes)
    }
    return utf8.decode(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces))
  }

  async excerpt(): Promise<string> {
    const decoder = new TextDecoder()
    const scrubbed = this.#scrubber?.body() // before the text is cut, which would leave the beginning of a secret
    let text = ''
    const cancel = this.#clock.after(EXCERPT_MILLISECONDS, () => this.drop())
    try {
      while (text.length < MAX_EXCERPT_BYTES) {
        const bytes = await this.#receive()
        const passed = bytes && scrubbed ? scrubbed.push(bytes) : (bytes ?? scrubbed?.end())
        if (passed) text += decoder.decode(passed, { stream: true })
        if (!bytes) break
      }
    } catch {
      // The status line alone is enough; a client that disconnected is detected by its own signal.
      if (this.request.signal.aborted) throw clientClosed(this.request.signal)
    } finally {
      cancel()
      this.drop()
    }
    return text.slice(0, MAX_EXCERPT_BYTES)
  }

  release(): void {
    if (this.#isEnded) return
    const cancel = this.#clock.after(REST_MILLISECONDS, () => this.drop())
    this.#drain().then(cancel, cancel)
  }

  /** Closes the connection and discards the rest. */
  drop(): void {
    if (this.#isEnded) return
    this.end(new GatewayError('client_closed_request', 'The response was no longer needed.'))
    this.#finish()
    // The abort has errored the body already: the rejection of this call is irrelevant and must not go unhandled.
    void (this.#reader ?? this.#response?.body)?.cancel().catch(() => {})
  }

  /** One timer for the whole stream, rearmed when it fires: a timer for each read would cost more than the read. */
  #watchIdle(): void {
    if (this.#waitingSince === undefined) return
    const { provider, timeouts } = this.request
    const left = this.#waitingSince + timeouts.idle_seconds * 1000 - this.#clock.steady()
    if (left > 0) this.startTimer(this.#clock, left)
    else this.end(timedOut(provider, `the stream sent nothing for ${timeouts.idle_seconds} s`))
  }

  #finish(): void {
    this.#isEnded = true
    this.#waitingSince = undefined
    this.close()
  }

  /** Ends it after a failure to read. Returns the error. */
  failed(thrown: unknown): GatewayError {
    const error = this.reason ?? failedToRead(this.request, thrown)
    // Its server may go on to send it.
    if (thrown instanceof InflateError) this.end(error)
    this.#finish()
    return error
  }

  #tooLarge(limit: number): GatewayError {
    this.drop()
    return tooLarge(this.request.provider, limit)
  }

  /** Reads and discards a short rest, so that the connection can be reused. */
  async #drain(): Promise<void> {
    let size = 0
    for (let bytes = await this.#receive(); bytes; bytes = await this.#receive()) {
      size += bytes.length
      if (size > MAX_REST_BYTES) return this.drop()
    }
  }
}

/** In bytes, as it is stated. NaN: not known. With chunks, the length that is stated beside them does not count. */
const lengthOf = (headers: Headers | undefined): number =>
  headers?.has('transfer-encoding') ? Number.NaN : Number(headers?.get('content-length') ?? Number.NaN)
