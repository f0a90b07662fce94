/** The types of a request to an upstream, as its provider orders it, and of the response, as it is read. */
import type { Timeouts } from '../../config/schema/schema.ts'
import type { Abortable } from '../../kit/abortable.ts'
import type { SecretScrubber } from './secret-scrubber.ts'

export type UpstreamRequest = {
  /** The operator's name of the provider, for messages and the log; neither ever contains the URL. */
  provider: string
  url: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers: Record<string, string>
  /** A stream is read as the upstream reads it; its request cannot be repeated. */
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  /** Aborted when the client has disconnected: the connection is closed at once, unless a whole response has begun (`LateReads`). */
  signal: Abortable
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
  /** The provider's own name of the model, for errors. */
  model?: string
  /** Rejects with the error of a response that has no 2xx status. Absent: such a response is returned. */
  refused?: (response: UpstreamResponse, model: string | undefined) => Promise<never>
  /** The whole text is received before the response is returned, where its length is known and small enough. */
  reads_text?: true
  /** Removes the secrets of the provider from the response; read when that arrives. Absent: nothing is removed. */
  scrubber?: () => SecretScrubber | undefined
}

export type UpstreamResponse = {
  status: number
  headers: Headers
  /** As the upstream sent it, '' without one: to decide by, and not to be shown. */
  readonly contentType: string
  /** The next bytes of the body, `undefined` at its end. The idle timeout runs only while this waits. */
  read(): Promise<Uint8Array | undefined>
  /** The first byte of the body that is no white space, if it is among those that arrive first; nothing is consumed. */
  firstByte(): Promise<number | undefined>
  /** The whole body, at most `limit` bytes: beyond it, an error. */
  text(limit?: number): Promise<string>
  /** The same, where it has arrived. */
  readonly received?: string | undefined
  /** The beginning of the body, for error responses: what arrives within a size limit and a short time; never throws for the body. */
  excerpt(): Promise<string>
  /** Call when done: a body that ends by itself within a moment leaves its connection for the next request. */
  release(): void
  /** Call to abandon the response: closes the connection. */
  drop(): void
}
