/** Verifies access tokens (JWT) by the keys that their OpenID provider publishes. */
import type { FetchImplementation, JWTPayload, JWTVerifyGetKey } from 'jose'
import type { Clock } from '../kit/clock.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import { isRecord } from '../kit/json.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import { createOidcClients, type OidcClient } from './openid-client.ts'

type Expected = { issuer: string; audiences: string[] }
type VerifierParts = { clock: Clock; log: Log; fetch?: GuardedFetch }

/** Of these, none has a secret that both sides know, which a published key could be taken for. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** RFC 9068 requires `at+jwt`; many providers have `JWT` or nothing. Tokens of logout and others have types of their own. */
const TYPES: readonly unknown[] = [undefined, 'JWT', 'jwt', 'at+jwt', 'application/at+jwt']
/** Between two requests for the keys: tokens that nobody has signed must not become a flood of them. */
const RETRY_MILLISECONDS = 2_000
/** An unknown key is looked for again after it: until then, tokens of a new key are refused. */
const UNKNOWN_KEY_MILLISECONDS = 30_000
export const CLOCK_SKEW_SECONDS = 10

/** Its claims. Rejects with invalid_api_key, or an error of the provider. */
export type VerifyAccessToken = (token: string, expected: Expected) => Promise<JWTPayload>

export function createAccessTokenVerifier(parts: VerifierParts): VerifyAccessToken {
  const { clock } = parts
  const clientOf = createOidcClients(parts)
  let known: { client: OidcClient; keys: JWTVerifyGetKey } | undefined

  async function keysOf(client: OidcClient): Promise<JWTVerifyGetKey> {
    if (known?.client === client) return known.keys
    const { createRemoteJWKSet, customFetch } = await import('jose')
    const { provider, library } = client
    const address = URL.parse(provider.serverMetadata().jwks_uri ?? '')
    const send = provider[library.customFetch]
    if (!address || !send) throw failed('it names no keys (jwks_uri)')
    let askedAt = Number.NEGATIVE_INFINITY
    const fetch: FetchImplementation = async (url, { headers, signal }) => {
      if (clock.steady() - askedAt < RETRY_MILLISECONDS) throw failed('its keys could not be read')
      askedAt = clock.steady()
      const sent = { headers: Object.fromEntries(headers), method: 'GET', redirect: 'manual' as const, signal }
      return send(url, { ...sent, body: undefined })
    }
    const keys = createRemoteJWKSet(address, { cooldownDuration: UNKNOWN_KEY_MILLISECONDS, [customFetch]: fetch })
    known = { client, keys }
    return keys
  }

  return async (token, { issuer, audiences }) => {
    try {
      const keys = await keysOf(await clientOf({ issuer }))
      const { jwtVerify } = await import('jose')
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        issuer,
        audience: audiences,
        algorithms: ALGORITHMS,
        requiredClaims: ['exp', 'sub'],
        clockTolerance: CLOCK_SKEW_SECONDS,
        currentDate: new Date(clock.now()),
      })
      if (TYPES.includes(protectedHeader.typ)) return payload
    } catch (thrown) {
      throw asRefusal(thrown)
    }
    throw refused('it is no access token (typ)')
  }
}

/** Codes of the library, for which the token is at fault. */
const REASONS: Record<string, string> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'its algorithm is not accepted',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'its signature is wrong',
  ERR_JWKS_NO_MATCHING_KEY: 'its key is none of the issuer',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'it does not name its key',
  ERR_JWT_EXPIRED: 'it has expired',
}

function asRefusal(thrown: unknown): GatewayError {
  for (let cause = thrown; cause instanceof Error; cause = cause.cause) if (cause instanceof GatewayError) return cause
  const { code = '', claim = '' } = isRecord(thrown) ? (thrown as { code?: string; claim?: string }) : {}
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED') return refused(`its claim "${claim}" is not the expected one`)
  if (Object.hasOwn(REASONS, code)) return refused(String(REASONS[code]))
  if (/^ERR_(JWT|JWS|JOSE_NOT_SUPPORTED)/.test(code)) return refused('it is not readable')
  return failed(/^\w{1,64}$/.test(code) ? code : 'it did not respond as expected', thrown)
}

const refused = (reason: string) =>
  new GatewayError('invalid_api_key', `The access token was refused: ${reason}. Log in again.`)
const failed = (reason: string, cause?: unknown) =>
  new GatewayError(
    'upstream_unreachable',
    `Access tokens cannot be verified: the OpenID provider failed (${reason}).`,
    {
      retry_after: 5,
      cause,
    },
  )
