/** What a transport sends by: the gateway's own HTTP/1.1 client, or the runtime's fetch. */
import type { ByteReader } from '../../kit/inflate.ts'
import type { RequestLifetime, UpstreamRequest } from './upstream-request.ts'

/** A response as it was received: not decompressed, and without limits. */
export type RawResponse = {
  status: number
  headers: Headers
  /** Called once. Undefined: there is no body. */
  body(): ByteReader | undefined
  /** The whole body, instead of `body`; absent: only by `body`. */
  text?(): Promise<string>
  /** Discards a body that nobody has begun to read. */
  discard(): void
}

/** Aborted by the end of `life`. Rejects with GatewayError, or with an error that has a `code`. */
export type Sender = (
  request: UpstreamRequest,
  given: { url: URL; life: RequestLifetime; headers: Record<string, string> },
) => Promise<RawResponse>
