/** One request to an upstream from its start to the end of its body: everything that may end it early, and how it is read. */
import type { Timeouts } from '../../config/schema.ts'
import type { Clock } from '../../kit/clock.ts'
import { type ByteReader, InflateError, inflate, isCoding } from '../../kit/inflate.ts'
import { GatewayError } from '../../spec/error.ts'
import { clientClosed, failedToRead, timedOut, tooLarge } from './transport-failure.ts'

export type UpstreamRequest = {
  /** The operator's name of the provider, for messages and the log; neither ever contains the URL. */
  provider: string
  url: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  headers: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer>
  /** Aborted when the client has disconnected: the connection is closed at once, whatever the state of the response. */
  signal: AbortSignal
  timeouts: Required<Timeouts>
  /** Whether the response is read as it arrives (idle timeout) or as a whole (total timeout). */
  stream: boolean
  /**
   * It may cost money, so it is written to the wire at most once. Its error has `detail.accepted: 'no'` when nothing of
   * it was sent, and no such detail otherwise. For an HTTP response, `acceptanceOf` decides.
   */
  order?: true
  /** The response holds credentials for this provider: only the gateway reads it, and they are not scrubbed. */
  grants_credentials?: true
  /** A probe for a listener: its failure is not logged, and no proxy is used. */
  isProbe?: true
}

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

export type RequestLifetime = {
  signal: AbortSignal
  /** Why the gateway ended the request, if it did. */
  reason(): GatewayError | undefined
  /** Closes the connection. */
  end(error: GatewayError): void
  /** Ends the request after so many seconds; call the result to cancel that. */
  limit(seconds: number, what: string): () => void
  /** No more timers, no more listening to the client. */
  close(): void
}

/** One request from its start to the end of its body: everything that may end it early. */
export function createLifetime(clock: Clock, request: UpstreamRequest): RequestLifetime {
  const control = new AbortController()
  const timers: (() => void)[] = []
  let reason: GatewayError | undefined
  const end = (error: GatewayError) => {
    if (reason) return
    reason = error
    close()
    control.abort(error)
  }
  const disconnect = () => end(clientClosed(request.signal))
  const close = () => {
    for (const cancel of timers) cancel()
    timers.length = 0
    request.signal.removeEventListener('abort', disconnect)
  }
  if (request.signal.aborted) disconnect()
  else request.signal.addEventListener('abort', disconnect)
  return {
    signal: control.signal,
    reason: () => reason,
    end,
    limit(seconds, what) {
      const cancel = clock.after(seconds * 1000, () => end(timedOut(request.provider, `${what} ${seconds} s`)))
      timers.push(cancel)
      return cancel
    },
    close,
  }
}

/** The encoding with which the upstream compressed the body although the request forbade it; undefined: none. */
function codingOf(headers: Headers): string | undefined {
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  return coding === '' || coding === 'identity' ? undefined : coding
}

type ResponseParts = { clock: Clock; request: UpstreamRequest; response: Response; life: RequestLifetime }

export function createUpstreamResponse({ clock, request, response, life }: ResponseParts): UpstreamResponse {
  const { provider } = request
  const idleMilliseconds = request.timeouts.idle_seconds * 1000
  let reader: ByteReader | undefined
  const coding = codingOf(response.headers)
  let ended = false
  let peeked: Uint8Array | undefined
  let waitingSince: number | undefined
  let armed: (() => void) | undefined

  /** One timer for the whole stream, rearmed when it fires: a timer for each read would cost more than the read. */
  const arm = (ms: number) => {
    armed = clock.after(ms, () => {
      armed = undefined
      if (waitingSince === undefined) return
      const left = waitingSince + idleMilliseconds - clock.now()
      if (left > 0) arm(left)
      else life.end(timedOut(provider, `the stream sent nothing for ${request.timeouts.idle_seconds} s`))
    })
  }
  const finish = () => {
    ended = true
    waitingSince = undefined
    armed?.()
    armed = undefined
    life.close()
  }
  const failed = (thrown: unknown) => {
    const error = life.reason() ?? failedToRead(request, thrown instanceof InflateError ? unreadable(thrown) : thrown)
    finish()
    return error
  }

  const unreadable = ({ message }: Error) =>
    new GatewayError('bad_upstream_response', `The upstream "${provider}" sent a body that ${message}.`)

  /** The body after decompression: all limits count these bytes. */
  function readerOf(body: ReadableStream<Uint8Array>): ByteReader {
    const plain = body.getReader()
    if (coding === undefined) return plain
    if (isCoding(coding)) return inflate(plain, coding)
    throw new InflateError(`has the content-encoding "${coding.slice(0, 40)}", which was not requested`)
  }

  async function read(): Promise<Uint8Array | undefined> {
    if (peeked) {
      const bytes = peeked
      peeked = undefined
      return bytes
    }
    if (ended) return undefined
    if (!response.body) {
      finish()
      return undefined
    }
    if (request.stream) {
      waitingSince = clock.now()
      if (!armed) arm(idleMilliseconds)
    }
    try {
      reader ??= readerOf(response.body)
      const { done, value } = await reader.read()
      waitingSince = undefined
      // The end of a body may be reported before the abort that caused it.
      const reason = life.reason()
      if (reason) throw reason
      if (!done) return value
      finish()
      return undefined
    } catch (thrown) {
      throw failed(thrown)
    }
  }

  /** Closes the connection and discards the rest. */
  const drop = () => {
    if (ended) return
    life.end(new GatewayError('client_closed_request', 'The response was no longer needed.'))
    finish()
    // The abort has errored the body already: the rejection of this call is irrelevant and must not go unhandled.
    if (reader) reader.cancel().catch(() => {})
    else response.body?.cancel().catch(() => {})
  }

  /** Reads and discards a short rest, so that the connection can be reused. */
  async function drain(): Promise<void> {
    let size = 0
    while (size <= MAX_REST_BYTES) {
      const bytes = await read()
      if (!bytes) return
      size += bytes.length
    }
    drop()
  }

  return {
    status: response.status,
    headers: response.headers,
    read,
    drop,
    async peek() {
      peeked ??= await read()
      return peeked
    },
    async text(limit = MAX_RESPONSE_BYTES) {
      const length = Number(response.headers.get('content-length') ?? Number.NaN)
      if (length > limit) {
        drop()
        throw tooLarge(provider, limit)
      }
      if (Number.isFinite(length) && coding === undefined && !reader) {
        try {
          const text = await response.text()
          const reason = life.reason()
          if (reason) throw reason
          finish()
          return text
        } catch (thrown) {
          throw failed(thrown)
        }
      }
      const pieces: Uint8Array[] = []
      let size = 0
      for (let bytes = await read(); bytes; bytes = await read()) {
        size += bytes.length
        if (size > limit) {
          drop()
          throw tooLarge(provider, limit)
        }
        pieces.push(bytes)
      }
      return new TextDecoder().decode(Buffer.concat(pieces))
    },
    async excerpt() {
      const decoder = new TextDecoder()
      let text = ''
      const cancel = clock.after(EXCERPT_MILLISECONDS, drop)
      try {
        while (text.length < MAX_EXCERPT_BYTES) {
          const bytes = await read()
          if (!bytes) break
          text += decoder.decode(bytes, { stream: true })
        }
      } catch {
        // The status line alone is enough; a client that disconnected is detected by its own signal.
        if (request.signal.aborted) throw clientClosed(request.signal)
      } finally {
        cancel()
        drop()
      }
      return text.slice(0, MAX_EXCERPT_BYTES)
    },
    release() {
      if (ended) return
      const cancel = clock.after(REST_MILLISECONDS, drop)
      drain().then(cancel, cancel)
    },
  }
}
