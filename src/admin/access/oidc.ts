/** Login of administrators with an OpenID provider: authorization code, PKCE, state and nonce. */
import type { OidcConfig } from '../../config/schema/admin-schema.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import { isRecord } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { type BoxKey, seal, unseal } from '../../kit/sealed-box.ts'
import { sha256 } from '../../kit/secret.ts'
import { claimAt, createOidcClients, type OidcClient, wordOf } from '../../providers/openid-client.ts'
import type { AdminRole, Membership } from '../../spec/admin.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ProjectStore } from '../../store/tokens/account-store.ts'
import { highestRole } from './oidc-roles.ts'

/** Time that a person has to log in with the provider. */
export const LOGIN_SECONDS = 600
const MAX_ACTOR = 200

type OidcPerson = { actor: string; role: AdminRole; project_id?: string; memberships: Membership[] }

/** What the gateway must remember while the browser is with the provider. The browser keeps it, and cannot read it. */
type LoginState = {
  state: string
  nonce: string
  verifier: string
  redirect_uri: string
  return_to: string
  expires_at: number
}

export type OidcLogin = {
  isConfigured(): boolean
  /** Throws object_not_found where it is not configured. `return_to`: see `localPath`. */
  begin(where: { redirect_uri: string; return_to: string }): Promise<{ location: string; cookie: string }>
  /**
   * Who comes back from the provider. `query`: what it has added to the address. Throws LoginRefused, and errors of the
   * provider as GatewayError.
   */
  finish(from: { query: string; cookie: string | undefined }): Promise<{ person: OidcPerson; return_to: string }>
}

/** `actor`: known where the provider has identified the account, which has no role here. */
export class LoginRefused extends Error {
  readonly actor: string | undefined
  constructor(message: string, actor?: string) {
    super(message)
    this.name = 'LoginRefused'
    this.actor = actor
  }
}

type OidcParts = {
  /** Now; undefined: not configured. */
  settings(): OidcConfig | undefined
  projects: Pick<ProjectStore, 'find'>
  clock: Clock
  log: Log
  fetch?: GuardedFetch
}

const AGAIN = 'Begin again at /admin/v1/login/oidc.'

export function createOidcLogin({ settings, projects, clock, log, fetch }: OidcParts): OidcLogin {
  const clientOf = createOidcClients({ clock, log, ...(fetch && { fetch }) })

  function configured(): OidcConfig {
    const found = settings()
    if (found) return found
    throw new GatewayError('object_not_found', 'Login with an OpenID provider is not configured (admin.oidc).')
  }

  function read(cookie: string | undefined, config: OidcConfig): LoginState {
    const state = cookie === undefined ? undefined : opened(cookie, boxOf(config))
    if (!state) throw new LoginRefused(`This browser has not begun a login, or with other settings. ${AGAIN}`)
    if (state.expires_at <= unixSeconds(clock)) {
      throw new LoginRefused(`The login took longer than ${LOGIN_SECONDS / 60} minutes. ${AGAIN}`)
    }
    return state
  }

  /** The claims of the account: those of its ID token, and where that lacks the claim of the role, of its user info. */
  async function claimsOf({ library, provider }: OidcClient, query: string, state: LoginState, role_claim: string) {
    const url = new URL(state.redirect_uri)
    url.search = query
    const tokens = await library.authorizationCodeGrant(provider, url, {
      expectedState: state.state,
      expectedNonce: state.nonce,
      pkceCodeVerifier: state.verifier,
      idTokenExpected: true,
    })
    const claims: Record<string, unknown> & { sub: string } = { sub: '', ...tokens.claims() }
    if (claimAt(claims, role_claim) !== undefined || !provider.serverMetadata().userinfo_endpoint) return claims
    return { ...(await library.fetchUserInfo(provider, tokens.access_token, claims.sub)), ...claims }
  }

  /** Those whose project is there. */
  async function present(memberships: Membership[]): Promise<Membership[]> {
    const found = await Promise.all(memberships.map(({ project_id }) => projects.find(project_id)))
    return memberships.filter((_, index) => found[index]?.deleted_at === null)
  }

  return {
    isConfigured: () => settings() !== undefined,
    async begin({ redirect_uri, return_to }) {
      const config = configured()
      const { library, provider } = await clientOf(config).catch(refuse)
      const verifier = library.randomPKCECodeVerifier()
      const state: LoginState = {
        state: library.randomState(),
        nonce: library.randomNonce(),
        verifier,
        redirect_uri: config.redirect_uri ?? redirect_uri,
        return_to,
        expires_at: unixSeconds(clock) + LOGIN_SECONDS,
      }
      const location = library.buildAuthorizationUrl(provider, {
        redirect_uri: state.redirect_uri,
        scope: [...new Set(['openid', ...(config.scopes ?? ['profile', 'email'])])].join(' '),
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: state.state,
        nonce: state.nonce,
      })
      return { location: location.href, cookie: seal(JSON.stringify(state), boxOf(config)) }
    },

    async finish({ query, cookie }) {
      const config = configured()
      const state = read(cookie, config)
      const client = await clientOf(config).catch(refuse)
      const claims = await claimsOf(client, query, state, config.role_claim).catch(refuse)
      const actor = `oidc:${claims.sub}`.slice(0, MAX_ACTOR).replaceAll('\0', '').toWellFormed()
      const given = highestRole(claimAt(claims, config.role_claim), config.roles)
      if (!given) {
        const why = `None of the values of its claim "${config.role_claim}" is in admin.oidc.roles.`
        throw new LoginRefused(`This account has no role at this gateway. ${why}`, actor)
      }
      const memberships = await present(given.memberships)
      const [first] = memberships
      if (given.memberships[0] && !first) {
        const { project_id } = given.memberships[0]
        throw new LoginRefused(`The project ${project_id} of its role (admin.oidc.roles) does not exist.`, actor)
      }
      return { person: { actor, role: given.role, ...first, memberships }, return_to: state.return_to }
    },
  }
}

/** Every process has the client's secret, so a login may end at another one than that where it began. */
const boxOf = ({ client_secret, client_id, issuer }: OidcConfig): BoxKey => ({
  secret: client_secret,
  salt: sha256(`${issuer} ${client_id}`),
  purpose: 'gatehouse oidc login',
})

function opened(cookie: string, key: BoxKey): LoginState | undefined {
  try {
    return JSON.parse(unseal(cookie, key)) as LoginState
  } catch {
    return undefined // changed, or of other settings
  }
}

/** Translates an error of the library. Its descriptions are free text of the provider, and are not repeated. */
function refuse(error: unknown): never {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof GatewayError) throw cause
  }
  const code = wordOf(isRecord(error) ? error.error : undefined)
  if (code === 'access_denied') throw new LoginRefused(`The OpenID provider refused the login (${code}).`)
  if (code === 'invalid_grant') throw new LoginRefused(`The code was used already, or has expired. ${AGAIN}`)
  if (code === 'invalid_client' || code === 'unauthorized_client') {
    const message = `The OpenID provider does not accept the gateway (${code}): check client_id and client_secret of admin.oidc.`
    throw new GatewayError('upstream_auth', message, { cause: error })
  }
  const reason = wordOf(isRecord(error) ? error.code : undefined) ?? 'not readable'
  const { cause } = error instanceof Error ? error : {}
  if (isRecord(cause) && cause.name === 'TimeoutError') {
    throw new GatewayError('upstream_unreachable', 'The OpenID provider did not respond in time.', { cause: error })
  }
  if (code !== undefined) throw new LoginRefused(`The OpenID provider refused the login (${code}). ${AGAIN}`)
  if (NOT_VALID.test(reason))
    throw new LoginRefused(`The response of the OpenID provider is not valid (${reason}). ${AGAIN}`)
  throw new GatewayError('bad_upstream_response', `The OpenID provider failed (${reason}).`, { cause: error })
}

/** Codes of the library: what came back does not belong to this login, or is not signed for it. */
const NOT_VALID = /^OAUTH_(INVALID_RESPONSE|JWT_|KEY_SELECTION)/

const FOR_ADMINISTRATORS = /^\/(admin\/|console(\/|$|\?))/

/**
 * A path of this gateway below /admin/ or /console, where the browser is sent at the end; undefined: any other address,
 * and what a browser would read as another host.
 */
export function localPath(text: string): string | undefined {
  const base = 'http://gateway.invalid'
  if (!FOR_ADMINISTRATORS.test(text) || /[\\\0-\x20\x7f]/.test(text)) return undefined
  const url = URL.parse(text, base)
  if (url?.origin !== base || !FOR_ADMINISTRATORS.test(url.pathname)) return undefined
  return `${url.pathname}${url.search}${url.hash}`
}
