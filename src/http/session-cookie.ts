/** The cookie of an administrator's session, and the checks that keep other pages from using it. */
import { GatewayError } from '../spec/error.ts'

const COOKIE = 'gatehouse_session'
/** A page of another origin cannot set it without a preflight, which /admin never grants. */
const CSRF_HEADER = 'x-gatehouse-csrf'

/** What a login with an OpenID provider must find again when the browser comes back. */
const LOGIN_COOKIE = 'gatehouse_login'

/** The secret in the cookie; undefined: there is none. Throws invalid_api_key for two. */
export const sessionCookie = (request: Request): string | undefined => cookieOf(request, COOKIE)

/** The state of a login that was begun; undefined: there is none. Throws invalid_api_key for two. */
export const loginCookie = (request: Request): string | undefined => cookieOf(request, LOGIN_COOKIE)

/** Another host of the domain can set a second cookie, and a browser does not say which is ours. */
function cookieOf({ headers }: Request, name: string): string | undefined {
  const pairs = headers.get('cookie')?.split(';') ?? []
  const [first, second] = pairs.filter((pair) => pair.slice(0, pair.indexOf('=')).trim() === name)
  if (second !== undefined) {
    const message = `The request has two cookies "${name}": delete the cookies of this site, and log in again.`
    throw new GatewayError('invalid_api_key', message)
  }
  return first?.slice(first.indexOf('=') + 1).trim() || undefined
}

/** No script can read it, and no other site's page sends it. `secret` empty: deletes it. */
export function setCookie({
  secret,
  seconds,
  isSecure,
}: {
  secret: string
  seconds: number
  isSecure: boolean
}): string {
  const secure = isSecure ? '; Secure' : ''
  return `${COOKIE}=${secret}; Path=/admin; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/** Sent with the return from the provider's site, which `Strict` would forbid, and only there. `state` empty: deletes it. */
export function setLoginCookie(state: string, { seconds, isSecure }: { seconds: number; isSecure: boolean }): string {
  const secure = isSecure ? '; Secure' : ''
  return `${LOGIN_COOKIE}=${state}; Path=/admin/v1/login/oidc; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
}

/**
 * Throws permission_denied for a request that a page of another origin may have made with the cookie of this one: it
 * changes something, and it comes from elsewhere or lacks the header. `hosts`: those of this gateway.
 */
export function assertSameOrigin({ method, headers }: Request, hosts: readonly string[]): void {
  if (method === 'GET' || method === 'HEAD') return
  const [origin, site] = [headers.get('origin'), headers.get('sec-fetch-site')]
  const isElsewhere = origin !== null && !hosts.includes(URL.parse(origin)?.host ?? '')
  if (isElsewhere || (site !== null && site !== 'same-origin')) {
    throw new GatewayError('permission_denied', 'A session may be used only by pages of this gateway.')
  }
  if (headers.get(CSRF_HEADER) === null) {
    const message = `A request of a session that changes something needs the header "${CSRF_HEADER}" with any value.`
    throw new GatewayError('permission_denied', message)
  }
}
