/** A real OpenID provider on loopback, and a browser that logs in with it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

export const CLIENT = { client_id: 'gatehouse', client_secret: 'secret-of-the-gateway-at-the-provider' }

export type OpenIdServer = { issuer: string; stop(): Promise<void> }

/** Every login is that of `account`, whose groups are `groups`. A listed redirect URI is that of the gateway. */
export async function startOpenIdServer(
  account: { sub: string; groups: unknown },
  redirect_uri: string,
  settings: object = {},
): Promise<OpenIdServer> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = { ...CLIENT, redirect_uris: [redirect_uri], grant_types: ['authorization_code'] }
  const provider = new Provider(issuer, {
    clients: [client, { ...client, client_id: 'another' }],
    claims: { openid: ['sub'], profile: ['groups'], email: [] },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: async () => ({ ...account }) }),
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    cookies: { keys: ['a key of the test'] },
    ...settings,
  })
  const callback = provider.callback()
  server.on('request', async (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return callback(request, response)
    const { prompt, params } = await provider.interactionDetails(request, response)
    if (prompt.name === 'login') {
      return provider.interactionFinished(request, response, { login: { accountId: account.sub } })
    }
    const grant = new provider.Grant({ accountId: account.sub, clientId: params.client_id })
    grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(' '))
    grant.addOIDCClaims(prompt.details.missingOIDCClaims ?? [])
    return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
  })
  return {
    issuer,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Follows the provider's redirects with its cookies, until one leads elsewhere: the address of that. */
export async function visit(address: string): Promise<URL> {
  const jar = new Map<string, string>()
  const { origin } = new URL(address)
  let url = new URL(address)
  for (let hops = 0; hops < 10; hops++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`the provider stopped with ${response.status}: ${await response.text()}`)
    url = new URL(location, url)
    if (url.origin !== origin) return url
  }
  throw new Error('the provider redirects without end')
}
