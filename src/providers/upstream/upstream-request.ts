/** One request to an upstream, and all that may end it early. */
import type { Timeouts } from '../../config/schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'
import { clientClosed, timedOut } from './transport-failure.ts'

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
  /** For an order: awaited once its host is reachable, right before it is written. If it rejects, nothing was sent. */
  beforeSend?: (() => Promise<void>) | undefined
  /** The response holds credentials for this provider: only the gateway reads it, and they are not scrubbed. */
  grants_credentials?: true
  /** A probe for a listener: its failure is not logged, and no proxy is used. */
  isProbe?: true
}

/** One request from its start to the end of its body: everything that may end it early. */
export class RequestLifetime {
  /** Only for who needs a signal: creating one costs time. */
  #control: AbortController | undefined
  readonly #timers: (() => void)[] = []
  readonly #clock: Clock
  readonly #request: UpstreamRequest
  readonly #disconnect = () => this.end(clientClosed(this.#request.signal))
  /** Why the gateway ended the request, if it did. */
  reason: GatewayError | undefined
  /** Called with the reason. */
  onEnd: ((reason: GatewayError) => void) | undefined

  constructor(clock: Clock, request: UpstreamRequest) {
    this.#clock = clock
    this.#request = request
    if (request.signal.aborted) this.#disconnect()
    else request.signal.addEventListener('abort', this.#disconnect)
  }

  /** Aborted with the reason. */
  get signal(): AbortSignal {
    if (!this.#control) {
      this.#control = new AbortController()
      if (this.reason) this.#control.abort(this.reason)
    }
    return this.#control.signal
  }

  get isEnded(): boolean {
    return this.reason !== undefined
  }

  /** Closes the connection. */
  end(error: GatewayError): void {
    if (this.reason) return
    this.reason = error
    this.close()
    this.#control?.abort(error)
    this.onEnd?.(error)
  }

  /** Ends the request after so many seconds; call the result to cancel that. */
  limit(seconds: number, what: string): () => void {
    const expire = () => this.end(timedOut(this.#request.provider, `${what} ${seconds} s`))
    const cancel = this.#clock.after(seconds * 1000, expire)
    this.#timers.push(cancel)
    return cancel
  }

  /** No more timers, no more listening to the client. */
  close(): void {
    for (const cancel of this.#timers) cancel()
    this.#timers.length = 0
    this.#request.signal.removeEventListener('abort', this.#disconnect)
  }
}
