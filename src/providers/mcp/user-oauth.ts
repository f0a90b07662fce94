/** OAuth 2.1 for a person at an MCP server: finds its authorization server, and gets, refreshes and revokes tokens there. */
import type * as OpenId from 'openid-client'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import { isRecord, memberOf, parseJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { createOpenIdFetch, wordOf } from '../openid-client.ts'

export type OAuthServer = {
  name: string
  url?: string | undefined
  oauth_user?: McpServerConfig['oauth_user'] | undefined
}

const KEPT = [
  'issuer',
  'authorization_endpoint',
  'token_endpoint',
  'revocation_endpoint',
  'token_endpoint_auth_methods_supported',
  'authorization_response_iss_parameter_supported',
] as const

/** What the first authorization server has said: later requests go there, whatever the server names by then. */
type Issuer = Pick<OpenId.ServerMetadata, (typeof KEPT)[number]>
type Grant = { issuer: Issuer; client_id: string; client_secret?: string | undefined; resource: string }

/** What is kept while the person is with the authorization server. */
export type PendingConsent = Grant & { state: string; verifier: string; redirect_uri: string }

export type UserTokens = Grant & {
  access_token: string
  refresh_token?: string | undefined
  /** When the access token is to be refreshed, in unix milliseconds; undefined: its end is not known. */
  refresh_at_ms?: number | undefined
}

/** The refresh token is not valid any more: the person must connect again. */
export class GrantEnded extends Error {}

const TIMEOUT_SECONDS = 10
const EARLY_SECONDS = 30
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/
const MAX_SCOPES = 100
const BEARER = /^[\x21-\x7e]{1,16384}$/
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

type UserOAuthParts = { clock: Clock; log: Log; fetch?: GuardedFetch | undefined }

export function createUserOAuth({ clock, log, fetch }: UserOAuthParts) {
  /** By the name of the server: one whose issuer hangs leaves the others their requests. */
  const fetches = new Map<string, ReturnType<typeof createOpenIdFetch>>()
  function sendFor({ name }: OAuthServer) {
    const whom = ['The authorization server of an MCP server', 'Try again.'] as [string, string]
    const send = fetches.get(name) ?? createOpenIdFetch({ clock, log, ...(fetch && { fetch }) }, whom)
    fetches.set(name, send)
    return send
  }
  const library = () => import('openid-client')

  /** Those that the operator has written; all others must be public. */
  const originsOf = ({ url = '', oauth_user }: OAuthServer): string[] =>
    [url, oauth_user?.issuer ?? ''].flatMap((text) => URL.parse(text)?.origin ?? [])

  /** The protected resource (RFC 9728): at the path of the server, or at its origin. */
  async function resourceOf(server: OAuthServer) {
    const { url = '', name, oauth_user } = server
    const { origin, pathname } = new URL(url)
    for (const path of new Set([WELL_KNOWN + (pathname === '/' ? '' : pathname), WELL_KNOWN])) {
      const headers = { accept: 'application/json' }
      const response = await sendFor(server)(originsOf(server), origin + path, { method: 'GET', headers })
      if (response.status !== 200) continue
      const metadata = parseJson(await response.text())
      const resource = memberOf(metadata, 'resource')
      if (typeof resource !== 'string' || !isWithin(url, resource)) {
        throw unusable(name, 'its metadata is of another resource')
      }
      const issuers = textsAt(metadata, 'authorization_servers')
      const issuer = oauth_user?.issuer ?? issuers[0]
      if (issuer === undefined) throw unusable(name, 'its metadata names no authorization server')
      if (!issuers.includes(issuer)) throw unusable(name, 'its metadata does not name the issuer of oauth_user')
      return { resource, issuer, scopes: textsAt(metadata, 'scopes_supported').slice(0, MAX_SCOPES) }
    }
    if (oauth_user?.issuer === undefined) throw unusable(name, 'it has no metadata that name its authorization server')
    return { resource: url, issuer: oauth_user.issuer, scopes: [] }
  }

  async function discover(server: OAuthServer, issuer: string) {
    const { discovery } = await library()
    const address = URL.parse(issuer)
    if (!address || !isSafe(issuer, server)) throw unusable(server.name, 'the address of its issuer is not safe')
    const found = async (algorithm: 'oauth2' | 'oidc') =>
      await discovery(address, 'gatehouse', undefined, undefined, { algorithm, ...(await optionsFor(server)) }).then(
        (client) => ({ algorithm, metadata: client.serverMetadata() as OpenId.ServerMetadata }),
      )
    // RFC 8414, and where there is none, OpenID Connect. Both compare the issuer.
    const discovered = await found('oauth2').catch((thrown) =>
      causeIn(thrown) ? Promise.reject(thrown) : found('oidc').catch(translated(server.name, 'bad_upstream_response')),
    )
    for (const endpoint of ['authorization_endpoint', 'token_endpoint'] as const) {
      if (!isSafe(discovered.metadata[endpoint], server))
        throw unusable(server.name, `its issuer has no safe ${endpoint}`)
    }
    return discovered
  }

  const isSafe = (address: string | undefined, server: OAuthServer): boolean => {
    const url = URL.parse(address ?? '')
    if (!url || url.username || url.password) return false
    return url.protocol === 'https:' || (url.protocol === 'http:' && originsOf(server).includes(url.origin))
  }

  const fetchFor =
    (server: OAuthServer): OpenId.CustomFetch =>
    async (url, options) => {
      if (!isSafe(url, server)) throw unusable(server.name, 'an address of its issuer is not safe')
      return await sendFor(server)(originsOf(server), url, options)
    }

  /** Which addresses may be of http, the fetch decides. */
  async function optionsFor(server: OAuthServer) {
    const openId = await library()
    const insecure = { timeout: TIMEOUT_SECONDS, execute: [openId.allowInsecureRequests] }
    return { ...insecure, [openId.customFetch]: fetchFor(server) }
  }

  async function register(server: OAuthServer, issuer: string, redirect_uri: string, algorithm: 'oauth2' | 'oidc') {
    const { dynamicClientRegistration } = await library()
    const metadata = {
      client_name: 'Gatehouse',
      redirect_uris: [redirect_uri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
    const options = { algorithm, ...(await optionsFor(server)) }
    const registered = await dynamicClientRegistration(new URL(issuer), metadata, undefined, options)
    const { client_id, client_secret } = registered.clientMetadata()
    return { client_id, ...(typeof client_secret === 'string' && { client_secret }) }
  }

  /** A secret of the configuration is read from there at each use. */
  async function clientOf(server: OAuthServer, { issuer, client_id, client_secret }: Grant) {
    const openId = await library()
    const { Configuration, ClientSecretBasic, ClientSecretPost, None } = openId
    const secret = client_id === server.oauth_user?.client_id ? server.oauth_user.client_secret : client_secret
    const methods = issuer.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const useBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post')
    const auth = secret === undefined ? None() : useBasic ? ClientSecretBasic(secret) : ClientSecretPost(secret)
    const client = new Configuration(issuer as OpenId.ServerMetadata, client_id, undefined, auth)
    client[openId.customFetch] = fetchFor(server)
    client.timeout = TIMEOUT_SECONDS
    openId.allowInsecureRequests(client)
    return client
  }

  function tokensOf(name: string, answer: OpenId.TokenEndpointResponse, grant: Grant): UserTokens {
    const { access_token, refresh_token, expires_in, token_type } = answer
    if (token_type !== 'bearer' || !BEARER.test(access_token)) throw unusable(name, 'it granted no bearer token')
    const { issuer, client_id, client_secret, resource } = grant
    return {
      ...{ issuer, client_id, client_secret, resource, access_token, refresh_token },
      refresh_at_ms:
        typeof expires_in === 'number'
          ? clock.now() + Math.max(expires_in / 2, expires_in - EARLY_SECONDS) * 1000
          : undefined,
    }
  }

  return {
    /** Where the person gives its consent, and what `finish` needs then. Throws GatewayError, as the others do. */
    async begin(server: OAuthServer, redirect_uri: string): Promise<{ location: string; pending: PendingConsent }> {
      const { name, oauth_user = {} } = server
      const { randomPKCECodeVerifier, randomState, calculatePKCECodeChallenge, buildAuthorizationUrl } = await library()
      const { resource, issuer, scopes } = await resourceOf(server)
      const { metadata, algorithm } = await discover(server, issuer)
      if (oauth_user.client_id === undefined && metadata.registration_endpoint === undefined) {
        throw unusable(name, 'its issuer registers no clients: oauth_user needs a client_id')
      }
      const client =
        oauth_user.client_id === undefined
          ? await register(server, issuer, redirect_uri, algorithm).catch(translated(name, 'bad_upstream_response'))
          : { client_id: oauth_user.client_id }
      const [state, verifier] = [randomState(), randomPKCECodeVerifier()]
      const pending = { issuer: issuerOf(metadata), ...client, resource, state, verifier, redirect_uri }
      const scope = (oauth_user.scopes ?? scopes.filter((one) => SCOPE.test(one))).join(' ')
      const location = buildAuthorizationUrl(await clientOf(server, pending), {
        redirect_uri,
        state,
        resource,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(scope !== '' && { scope }),
      })
      return { location: location.href, pending }
    },

    /** `query`: what the authorization server has added to the address. */
    async finish(server: OAuthServer, pending: PendingConsent, query: string): Promise<UserTokens> {
      const { authorizationCodeGrant } = await library()
      const url = new URL(pending.redirect_uri)
      url.search = query
      const checks = { expectedState: pending.state, pkceCodeVerifier: pending.verifier }
      const { resource } = pending
      const answer = await authorizationCodeGrant(await clientOf(server, pending), url, checks, { resource }).catch(
        translated(server.name),
      )
      return tokensOf(server.name, answer, pending)
    },

    /** Throws GrantEnded where the authorization server refuses the refresh token. */
    async refresh(server: OAuthServer, tokens: UserTokens): Promise<UserTokens> {
      const { refreshTokenGrant } = await library()
      const { resource, refresh_token } = tokens
      if (refresh_token === undefined) throw new GrantEnded()
      const answer = await refreshTokenGrant(await clientOf(server, tokens), refresh_token, { resource }).catch(
        (thrown) => {
          const code = memberOf(thrown, 'error')
          const isRegistered = tokens.client_id !== server.oauth_user?.client_id
          if (code === 'invalid_grant' || (code === 'invalid_client' && isRegistered)) throw new GrantEnded()
          return translated(server.name, 'upstream_unreachable')(thrown)
        },
      )
      const next = tokensOf(server.name, answer, tokens)
      return { ...next, refresh_token: next.refresh_token ?? refresh_token }
    },

    /** Whether the authorization server has revoked them; it may have no endpoint for it. */
    async revoke(server: OAuthServer, tokens: UserTokens): Promise<boolean> {
      if (!isSafe(tokens.issuer.revocation_endpoint, server)) return false
      const { tokenRevocation } = await library()
      const client = await clientOf(server, tokens)
      return tokenRevocation(client, tokens.refresh_token ?? tokens.access_token).then(
        () => true,
        () => false,
      )
    },
  }
}

const issuerOf = (metadata: OpenId.ServerMetadata): Issuer =>
  Object.fromEntries(KEPT.map((name) => [name, metadata[name]])) as Issuer

function textsAt(value: unknown, name: string): string[] {
  const found = memberOf(value, name)
  return Array.isArray(found) ? found.filter((one) => typeof one === 'string') : []
}

/** The server is the resource, or lies below it. */
function isWithin(server: string, resource: string): boolean {
  const [own, whole] = [URL.parse(server), URL.parse(resource)]
  if (!own || !whole || own.origin !== whole.origin) return false
  const below = (path: string) => (path.endsWith('/') ? path : `${path}/`)
  return below(own.pathname).startsWith(below(whole.pathname))
}

const unusable = (name: string, why: string) =>
  new GatewayError('bad_upstream_response', `Nobody can connect to the MCP server "${name}": ${why}.`)

/** An error of the gateway that the library has wrapped. */
function causeIn(thrown: unknown): GatewayError | undefined {
  for (let cause = thrown; cause instanceof Error; cause = cause.cause) if (cause instanceof GatewayError) return cause
  return undefined
}

/** Descriptions of the library repeat what came, codes and tokens too: only words of the protocol are passed on. */
const translated =
  (name: string, otherwise: 'invalid_value' | 'upstream_unreachable' | 'bad_upstream_response' = 'invalid_value') =>
  (thrown: unknown): never => {
    const own = causeIn(thrown)
    if (own) throw own
    const code = wordOf(memberOf(thrown, 'error'))
    if (code === 'invalid_client' || code === 'unauthorized_client') {
      const message = `The issuer of the MCP server "${name}" does not accept the gateway (${code}): check client_id and client_secret of its oauth_user.`
      throw new GatewayError('upstream_auth', message)
    }
    if (isRecord(thrown) && memberOf(thrown.cause, 'name') === 'TimeoutError') {
      throw new GatewayError('upstream_unreachable', `The issuer of the MCP server "${name}" did not respond in time.`)
    }
    const reason = code ?? wordOf(memberOf(thrown, 'code')) ?? 'not readable'
    const next = otherwise === 'invalid_value' ? 'Connect again' : 'Try again later'
    throw new GatewayError(
      otherwise,
      `The issuer of the MCP server "${name}" refused the connection (${reason}). ${next}.`,
    )
  }
