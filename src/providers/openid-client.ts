/** The library of OpenID Connect, loaded with the first login, behind the guard of outbound addresses. */
import type * as OpenId from 'openid-client'
import type { OidcConfig } from '../config/schema/admin-schema.ts'
import type { Clock } from '../kit/clock.ts'
import { AddressRefused, createGuardedFetch, type GuardedFetch } from '../kit/guarded-fetch.ts'
import { isRecord } from '../kit/json.ts'
import type { Log } from '../kit/log.ts'
import { readAll } from '../kit/read-all.ts'
import { GatewayError } from '../spec/error.ts'

export type OidcClient = { library: typeof OpenId; provider: OpenId.Configuration }

/** Who only verifies tokens needs no client at the provider. */
type ProviderSettings = Pick<OidcConfig, 'issuer'> & Partial<Pick<OidcConfig, 'client_id' | 'client_secret'>>

type ClientParts = { clock: Clock; log: Log; fetch?: GuardedFetch }

/** Documents of providers have a few kilobytes. */
const MAX_BYTES = 1024 * 1024
const TIMEOUT_SECONDS = 10
/** What a provider says of itself changes rarely; its keys are read again by the library where one is not known. */
const KEEP_MILLISECONDS = 3_600_000
/** After a failure the provider is not asked again for so long: a login is public, and must not become a flood of requests. */
const FAILURE_MILLISECONDS = 2_000
/** Requests at a time, by each process. */
const MAX_OPEN = 16

type Known = { key: string; until: number; client: Promise<OidcClient> }

/** `private_origins`: those that the operator has named; what a provider's document names elsewhere may not be private. */
type OpenIdFetch = (
  private_origins: readonly string[],
  url: string,
  options: Pick<OpenId.CustomFetchOptions, 'method' | 'headers' | 'signal'> & { body?: unknown },
) => Promise<Response>

/** `whom`: as messages name it, and what a person can do meanwhile. */
export function createOpenIdFetch(
  { clock, log, fetch = createGuardedFetch({ clock, answer_ms: 10_000 }) }: ClientParts,
  [whom, meanwhile] = ['The OpenID provider', 'Other ways to log in still work.'],
): OpenIdFetch {
  let open = 0

  return async (private_origins, url, options) => {
    if (open >= MAX_OPEN) {
      throw new GatewayError('server_is_overloaded', 'Too many logins at a time; try again.', { retry_after: 1 })
    }
    open++
    try {
      const body = options.body === undefined || options.body === null ? undefined : String(options.body)
      const answer = await fetch({
        url,
        method: options.method === 'POST' ? 'POST' : 'GET',
        headers: Object.fromEntries(new Headers(options.headers)),
        ...(body !== undefined && { body }),
        signal: options.signal ?? AbortSignal.timeout(TIMEOUT_SECONDS * 1000),
        redirects: 0,
        private_origins,
      })
      return new Response(await readAll(answer.body, tooLarge, MAX_BYTES), {
        status: answer.status,
        headers: answer.headers,
      })
    } catch (error) {
      if (error instanceof GatewayError) throw error
      log.warn(`${whom.replace('The', 'the')} did not respond`, {
        host: URL.parse(url)?.host ?? '',
        cause: error instanceof Error ? error.message : 'unknown',
      })
      const message =
        error instanceof AddressRefused
          ? `${whom} names an address that is not public: ${error.message}`
          : `${whom} did not respond. ${meanwhile}`
      throw new GatewayError('upstream_unreachable', message, { retry_after: 5, cause: error })
    } finally {
      open--
    }
  }
}

export function createOidcClients(parts: ClientParts) {
  const { clock } = parts
  const send = createOpenIdFetch(parts)
  let known: Known | undefined

  async function discover({ issuer, client_id = 'gatehouse', client_secret }: ProviderSettings): Promise<OidcClient> {
    const library = await import('openid-client')
    const address = new URL(issuer)
    const insecure = address.protocol === 'http:' ? [library.allowInsecureRequests] : []
    const provider = await library.discovery(address, client_id, client_secret, undefined, {
      // A token that came over TLS is trusted by the library without its signature; here it is checked always.
      execute: [library.enableNonRepudiationChecks, ...insecure],
      [library.customFetch]: (url, options) => send([address.origin], url, options),
      timeout: TIMEOUT_SECONDS,
    })
    return { library, provider }
  }

  /** Of these settings: one for all logins, until its time is over or the settings change. */
  return async function clientOf(settings: ProviderSettings): Promise<OidcClient> {
    const key = JSON.stringify([settings.issuer, settings.client_id, settings.client_secret])
    if (known?.key === key && known.until > clock.steady()) return known.client
    const asked: Known = { key, until: clock.steady() + KEEP_MILLISECONDS, client: discover(settings) }
    known = asked
    try {
      return await asked.client
    } catch (error) {
      asked.until = clock.steady() + FAILURE_MILLISECONDS
      throw error
    }
  }
}

const tooLarge = () => new Error('The response is too large.')

/** A claim by its whole name, which may contain dots as those of a namespace do, or by a path of members. */
export function claimAt(claims: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const step of name.split('.')) {
    if (!isRecord(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value
}

/** A word of the protocol, as codes of errors are. */
export const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Za-z_]{1,64}$/.test(value) ? value : undefined
