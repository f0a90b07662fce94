/** Fetches an address that somebody else has given: where it truly leads is checked before a byte is sent. */

/** Where a name has led: what is checked at connect time, at the first address and after every redirect. */
export type Destination = { url: URL; address: string; port: number }

export type GuardedRequest = {
  url: string
  method?: 'GET' | 'HEAD' | 'POST'
  headers?: Record<string, string>
  body?: string
  signal: AbortSignal
  /** How many redirects are followed. Default 5; 0 hands a redirect back as it is. */
  redirects?: number
  /** Origins (`https://host:port`) that may lead to a private address all the same. Default: none. */
  private_origins?: readonly string[] | 'any'
}

export type GuardedAnswer = {
  status: number
  headers: Headers
  /** After redirects. */
  url: string
  body: ReadableStream<Uint8Array>
}

/**
 * Rejects with AddressRefused for an address that is not public (loopback, private, link-local, metadata, multicast,
 * unspecified, and IPv6 forms of them) or no http(s) URL; with the runtime's own error when the connection fails.
 * `headers` other than plain ones (accept, range, user-agent) are not sent on to another origin.
 */
export type GuardedFetch = (request: GuardedRequest) => Promise<GuardedAnswer>

/** The message names the host as it was given, never what it resolved to. */
export class AddressRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AddressRefused'
  }
}
