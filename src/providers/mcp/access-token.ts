/** Access tokens for an MCP server by OAuth 2.0: with the credentials of the gateway itself. */
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { Timeouts } from '../../config/schema/schema.ts'
import type { Clock } from '../../kit/clock.ts'
import { memberOf, parseJson } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import { refusedToken } from '../refused-token.ts'
import type { Transport } from '../upstream/transport.ts'

type OAuth = NonNullable<McpServerConfig['oauth']>
type TokenParts = { name: string; oauth: OAuth; transport: Transport; timeouts: Required<Timeouts>; clock: Clock }

export type AccessToken = {
  /** The token, a new one where the last one is about to expire. Rejects with GatewayError. */
  current(): Promise<string>
  /** The server has refused it. */
  drop(token: string): void
}

/** A token is renewed this long before it expires, and one without a lifetime after so long. */
const EARLY_SECONDS = 30
const DEFAULT_SECONDS = 600

export function createAccessToken({ name, oauth, transport, timeouts, clock }: TokenParts): AccessToken {
  let known: { token: string; until: number } | undefined
  let request: Promise<string> | undefined

  const unusable = (why: string) =>
    new GatewayError('upstream_auth', `The OAuth credentials of the MCP server "${name}" do not work: ${why}.`)

  async function ask(): Promise<string> {
    const { token_url: url, client_id, client_secret, scope, resource, refresh_token } = oauth
    const form = new URLSearchParams({
      ...(refresh_token === undefined
        ? { grant_type: 'client_credentials' }
        : { grant_type: 'refresh_token', refresh_token }),
      ...(scope !== undefined && { scope }),
      ...(resource !== undefined && { resource }),
    })
    // RFC 6749, 2.3.1: each is encoded like a form before they are joined.
    const pair = [client_id, client_secret].map((text) => encodeURIComponent(text)).join(':')
    const response = await transport.send({
      provider: name,
      url,
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
      },
      body: form.toString(),
      signal: AbortSignal.timeout(timeouts.connect_seconds * 1000),
      timeouts,
      stream: false,
      grants_credentials: true,
    })
    const payload = parseJson(await response.excerpt())
    if (response.status !== 200) throw unusable(refusedToken(response.status, payload))
    const token = memberOf(payload, 'access_token')
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) throw unusable('the response has no token')
    const seconds = Number(memberOf(payload, 'expires_in')) || DEFAULT_SECONDS
    known = { token, until: clock.steady() + Math.max(1, seconds - EARLY_SECONDS) * 1000 }
    return token
  }

  return {
    async current() {
      if (known && clock.steady() < known.until) return known.token
      request ??= ask().finally(() => {
        request = undefined
      })
      return await request
    },
    drop(token) {
      if (known?.token === token) known = undefined
    },
  }
}
