/** Where a request carries its token, for all supported client libraries. */

/** The scheme's name has any case, and more than one space may follow it (RFC 9110, section 11.4). */
const BEARER = /^bearer +(\S+)\s*$/i
/** As almost all clients send it: tested and cut, without the list that a match makes. */
const USUAL_BEARER = /^Bearer \S+$/

/** The secret as it was sent, unchecked: `Authorization: Bearer`, else `x-api-key`, `x-goog-api-key`, `?key=`. */
export function presentedSecret(request: Request): string | undefined {
  const { headers } = request
  return bearerOf(headers) || headers.get('x-api-key') || headers.get('x-goog-api-key') || keyInQuery(request.url)
}

/** The secret of an administrator: in a header only, since addresses end up in logs. */
export function presentedHeader({ headers }: Request): string | undefined {
  return bearerOf(headers) || headers.get('x-api-key') || undefined
}

function bearerOf(headers: Headers): string | undefined {
  const authorization = headers.get('authorization')
  if (authorization === null) return undefined
  return USUAL_BEARER.test(authorization) ? authorization.slice(BEARER_LENGTH) : BEARER.exec(authorization)?.[1]
}

const BEARER_LENGTH = 'Bearer '.length

/** The query is parsed only if it has such a field: almost no request has one, and parsing costs. */
function keyInQuery(url: string): string | undefined {
  const start = url.indexOf('?')
  if (start === -1) return undefined
  const query = url.slice(start)
  if (!query.includes('?key=') && !query.includes('&key=')) return undefined
  return new URLSearchParams(query.split('#', 1)[0]).get('key') || undefined
}
