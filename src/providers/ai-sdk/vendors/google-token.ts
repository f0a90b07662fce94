/** Access tokens of Google Cloud: from a service account, a user's login, or the metadata server of the machine. */
import { readFile } from 'node:fs/promises'
import type { Timeouts } from '../../../config/schema/schema.ts'
import { type Clock, unixSeconds } from '../../../kit/clock.ts'
import { isRecord, type JsonRecord, memberOf, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { refusedToken } from '../../refused-token.ts'
import type { Transport } from '../../upstream/transport.ts'

type TokenParts = {
  id: string
  transport: Transport
  clock: Clock
  timeouts: Required<Timeouts>
  /** The credentials themselves, the path of their file, or `metadata` for the metadata server. */
  credentials: unknown
}

const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const METADATA_URL = 'http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** The longest lifetime that Google grants. */
const GRANT_SECONDS = 3600
/** A token is renewed this long before it expires, so that it does not expire in transit. */
const EARLY_SECONDS = 120

/** The returned function gives the token, and requests a new one when the last one is about to expire. */
export function createGoogleToken(parts: TokenParts): (signal: AbortSignal) => Promise<string> {
  const { id, transport, clock, timeouts } = parts
  let cached: { token: string; until: number } | undefined

  const unusable = (why: string) =>
    new GatewayError('upstream_auth', `The credentials of the upstream "${id}" do not work: ${why}. Tell the operator.`)

  async function credentials(): Promise<JsonRecord> {
    if (isRecord(parts.credentials)) return parts.credentials
    const text = await readFile(String(parts.credentials), 'utf8').catch(() => undefined)
    const found = text === undefined ? undefined : parseJson(text)
    if (isRecord(found)) return found
    throw unusable(text === undefined ? 'their file cannot be read' : 'their file holds no JSON object')
  }

  async function requestToken(signal: AbortSignal): Promise<unknown> {
    const common = { provider: id, signal, timeouts, stream: false, grants_credentials: true } as const
    if (parts.credentials === 'metadata') {
      const headers = { 'metadata-flavor': 'Google' }
      return readResponse(await transport.send({ ...common, url: METADATA_URL, method: 'GET', headers }))
    }
    const own = await credentials()
    const form = own.type === 'authorized_user' ? userForm(own) : await accountForm(own)
    return readResponse(
      await transport.send({
        ...common,
        url: typeof own.token_uri === 'string' ? own.token_uri : TOKEN_URL,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(form).toString(),
      }),
    )
  }

  async function readResponse(response: Awaited<ReturnType<Transport['send']>>): Promise<unknown> {
    const payload = parseJson(await response.excerpt())
    if (response.status === 200) return payload
    throw unusable(refusedToken(response.status, payload))
  }

  async function accountForm(own: JsonRecord): Promise<Record<string, string>> {
    const { client_email, private_key, private_key_id, token_uri = TOKEN_URL } = own
    if (typeof client_email !== 'string' || typeof private_key !== 'string') {
      throw unusable('they belong neither to a service account nor to a user')
    }
    const now = unixSeconds(clock)
    const head = { alg: 'RS256', typ: 'JWT', ...(typeof private_key_id === 'string' ? { kid: private_key_id } : {}) }
    const claims = { iss: client_email, scope: SCOPE, aud: token_uri, iat: now, exp: now + GRANT_SECONDS }
    const signed = [head, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const key = await privateKey(private_key).catch(() => {
      throw unusable('their private_key is not a PKCS #8 key')
    })
    const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', key, Buffer.from(signed))
    return {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: `${signed}.${Buffer.from(signature).toString('base64url')}`,
    }
  }

  return async (signal) => {
    if (cached && clock.steady() < cached.until) return cached.token
    const granted = await requestToken(signal)
    const token = memberOf(granted, 'access_token')
    if (typeof token !== 'string' || token === '') throw unusable('the response has no token')
    const seconds = isRecord(granted) && Number(granted.expires_in) > 0 ? Number(granted.expires_in) : GRANT_SECONDS
    cached = { token, until: clock.steady() + Math.max(0, seconds - EARLY_SECONDS) * 1000 }
    return token
  }
}

const userForm = ({ client_id, client_secret, refresh_token }: JsonRecord) => ({
  grant_type: 'refresh_token',
  client_id: String(client_id),
  client_secret: String(client_secret),
  refresh_token: String(refresh_token),
})

/** Not by `jose`, which refuses RSA keys below 2048 bits: Google issues shorter ones where it is asked to. */
function privateKey(pem: string): Promise<CryptoKey> {
  const body = pem.replace(/-----[A-Z ]+-----|\s/g, '') // the header and footer of a PEM file, and its line breaks
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  return crypto.subtle.importKey('pkcs8', Buffer.from(body, 'base64'), algorithm, false, ['sign'])
}
