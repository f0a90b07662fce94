/** The cookie of an administrator's session, and the checks that keep other pages from using it. */
import { GatewayError } from '../spec/error.ts'

const COOKIE = 'gatehouse_session'
/** A page of another origin cannot set it without a preflight, which /admin never grants. */
const CSRF_HEADER = 'x-gatehouse-csrf'

/** What a login with an OpenID provider must find again when the browser comes back. */
const LOGIN_COOKIE = 'gatehouse_login'

/** The secret in the cookie; undefined: there is none. */
export const sessionCookie = (request: Request): string | undefined => cookieOf(request, COOKIE)

/** The state of a login that was begun; undefined: there is none. */
export const loginCookie = (request: Request): string | undefined => cookieOf(request, LOGIN_COOKIE)

function cookieOf({ headers }: Request, name: string): string | undefined {
  for (const pair of headers.get('cookie')?.split(';') ?? []) {
    const at = pair.indexOf('=')
    if (pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim() || undefined
  }
  return undefined
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
