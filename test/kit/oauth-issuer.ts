/** An OAuth 2.1 authorization server on loopback, whose people consent at once, and which can misbehave. */
import { createHash, randomBytes } from 'node:crypto'

type Code = { person: string; challenge: string; redirect_uri: string; client_id: string }

export const USER_CLIENT = { client_id: 'gatehouse', client_secret: 'secret-of-the-client' }

export function startOAuthIssuer() {
  const codes = new Map<string, Code>()
  const clients = new Set<string>([USER_CLIENT.client_id])
  const draw = (prefix: string) => `${prefix}-${randomBytes(12).toString('hex')}`

  function grant(person: string) {
    const [access_token, refresh_token] = [draw('access'), draw('refresh')]
    issuer.access.set(access_token, person)
    issuer.refresh.set(refresh_token, person)
    issuer.secrets.push(access_token, refresh_token)
    return Response.json({ access_token, refresh_token, token_type: 'Bearer', expires_in: issuer.expires_in })
  }

  async function token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text())
    const given = (name: string) => form.get(name) ?? ''
    const refused = (error: string) => Response.json({ error, error_description: form.toString() }, { status: 400 })
    const grant_type = given('grant_type')
    issuer.grants.push(grant_type)
    const own = await issuer.intercept?.(grant_type)
    if (own) return own
    const basic = Buffer.from(request.headers.get('authorization')?.slice(6) ?? '', 'base64').toString()
    const [client_id = '', secret] = basic === '' ? [given('client_id')] : basic.split(':').map(decodeURIComponent)
    if (!clients.has(client_id) || (secret ?? USER_CLIENT.client_secret) !== USER_CLIENT.client_secret) {
      return refused('invalid_client')
    }
    if (given('resource') === '') return refused('invalid_target')
    if (grant_type === 'refresh_token') {
      const person = issuer.refresh.get(given('refresh_token'))
      // A refresh token is valid once.
      issuer.refresh.delete(given('refresh_token'))
      const answer = person === undefined ? refused('invalid_grant') : grant(person)
      await issuer.granted?.()
      return answer
    }
    const code = codes.get(given('code'))
    codes.delete(given('code'))
    const challenge = createHash('sha256').update(given('code_verifier')).digest('base64url')
    const isSame = code?.challenge === challenge && code.client_id === client_id
    return code && isSame && code.redirect_uri === given('redirect_uri') ? grant(code.person) : refused('invalid_grant')
  }

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/.well-known/oauth-authorization-server') return Response.json(issuer.metadata)
    if (pathname === '/token') return token(request)
    if (pathname === '/authorize') {
      const location = `${new URL(request.url).searchParams.get('redirect_uri')}?${issuer.consent(request.url, 'ada')}`
      return new Response(null, { status: 302, headers: { location } })
    }
    if (pathname === '/register') {
      const client_id = draw('client')
      clients.add(client_id)
      return Response.json({ ...((await request.json()) as object), client_id }, { status: 201 })
    }
    if (pathname !== '/revoke') return new Response(null, { status: 404 })
    const revoked = new URLSearchParams(await request.text()).get('token') ?? ''
    issuer.revoked.push(revoked)
    issuer.refresh.delete(revoked)
    return new Response(null)
  }

  const http = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  const url = `http://127.0.0.1:${http.port}`
  const issuer = {
    url,
    metadata: {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      revocation_endpoint: `${url}/revoke`,
      registration_endpoint: `${url}/register`,
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    } as Record<string, unknown>,
    expires_in: 3600,
    /** Of valid tokens, the person. */
    access: new Map<string, string>(),
    refresh: new Map<string, string>(),
    /** All that were ever granted. */
    secrets: [] as string[],
    /** The grant types of all token requests. */
    grants: [] as string[],
    revoked: [] as string[],
    /** Instead of the answer to a token request. */
    intercept: undefined as ((grant_type: string) => Response | undefined | Promise<Response | undefined>) | undefined,
    /** After a refresh, before its response is sent. */
    granted: undefined as (() => unknown) | undefined,
    /** The person consents: what the browser is sent back with. */
    consent(location: string, person: string): string {
      const { searchParams: asked } = new URL(location)
      const given = (name: string) => asked.get(name) ?? ''
      const code = draw('code')
      codes.set(code, {
        person,
        challenge: given('code_challenge'),
        redirect_uri: given('redirect_uri'),
        client_id: given('client_id'),
      })
      return new URLSearchParams({ code, state: given('state'), iss: url }).toString()
    },
    stop: () => http.stop(true),
  }
  return issuer
}
