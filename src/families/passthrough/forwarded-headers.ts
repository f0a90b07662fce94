/** Which headers of a client reach a provider, and which headers of its answer reach the client: lists of names, never all. */

const REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'content-encoding',
  'content-language',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-unmodified-since',
  'range',
]

const RESPONSE_HEADERS = [
  'accept-ranges',
  'content-disposition',
  'content-language',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
  'retry-after',
]

/** Of a connection (RFC 9110, section 7.6.1), of the message's framing, and credentials: whatever the configuration lists. */
const NEVER_FORWARDED =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings|host|content-length|expect|authorization|cookie|set-cookie|x-api-key|api-key|x-goog-api-key|forwarded|via|x-forwarded-.*|x-real-ip|x-original-.*|x-rewrite-.*|x-http-method.*|x-gatehouse-.*|x-request-id|request-id|sec-.*)$/
/** Of the answer besides: what the runtime has decoded, and what would speak for the gateway's own origin. */
const NEVER_RETURNED =
  /^(content-encoding|access-control-.*|content-security-policy.*|strict-transport-security|clear-site-data|service-worker-allowed|www-authenticate|refresh|alt-svc|server|x-content-type-options)$/

/** A page of a provider must not run at the origin of the gateway, which is that of the console too. */
export const SAFE_ANSWER = {
  'content-security-policy': "default-src 'none'; sandbox",
  'x-content-type-options': 'nosniff',
}

/** `more`: names that the configuration adds, in any case. */
export const requestHeaders = (given: Headers, more: readonly string[] = []): Record<string, string> =>
  pick(given, [...REQUEST_HEADERS, ...more])

export function responseHeaders(given: Headers, more: readonly string[] = []): Record<string, string> {
  const headers = pick(given, [...RESPONSE_HEADERS, ...more])
  for (const name of Object.keys(headers)) if (NEVER_RETURNED.test(name)) delete headers[name]
  return headers
}

function pick(given: Headers, names: readonly string[]): Record<string, string> {
  const connection = new Set((given.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase()))
  const out: Record<string, string> = {}
  for (const listed of names) {
    const name = listed.toLowerCase()
    const value = given.get(name)
    if (value === null || NEVER_FORWARDED.test(name) || connection.has(name)) continue
    out[name] = value
  }
  return out
}

/** The query without the secret that a client may present in it. */
export function forwardedQuery(url: string): string {
  const start = url.indexOf('?')
  if (start === -1) return ''
  const query = (url.slice(start + 1).split('#', 1)[0] ?? '').split('&').filter((pair) => !isKey(pair))
  return query.length === 0 || (query.length === 1 && query[0] === '') ? '' : `?${query.join('&')}`
}

/** As the gateway reads it: decoded. */
const isKey = (pair: string): boolean => new URLSearchParams(pair).has('key')
