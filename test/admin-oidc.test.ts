/** Login of administrators with a real OpenID provider, and with one that answers wrongly. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { localPath } from '../src/admin/access/oidc.ts'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import type { OidcConfig } from '../src/config/schema/admin-schema.ts'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { CLIENT, type OpenIdServer, startOpenIdServer, visit } from './kit/openid-server.ts'

const CALLBACK = 'http://gatehouse.test/admin/v1/login/oidc/callback'
const account = { sub: 'ada', groups: ['staff', 'gate-owners'] as unknown }
const stops: (() => Promise<unknown>)[] = []
let server: OpenIdServer

beforeEach(async () => {
  account.groups = ['staff', 'gate-owners']
  server = await startOpenIdServer(account, CALLBACK)
  stops.push(() => server.stop())
})
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const settingsOf = (oidc: Partial<OidcConfig> = {}) => ({
  admin: {
    ...DEFAULT_ADMIN,
    oidc: {
      ...CLIENT,
      issuer: server.issuer,
      role_claim: 'groups',
      roles: { 'gate-owners': { role: 'owner' }, viewers: { role: 'viewer' }, operators: { role: 'operator' } },
      ...oidc,
    } as OidcConfig,
  },
})

async function open(oidc: Partial<OidcConfig> = {}): Promise<AdminGateway> {
  const gateway = await startAdminGateway(settingsOf(oidc))
  stops.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const anonymous = { authorization: '' }
async function begin(gateway: AdminGateway, query = '') {
  const response = await gateway.admin(`/login/oidc${query}`, { headers: anonymous })
  const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';')
  return { response, cookie, location: response.headers.get('location') ?? '' }
}
const comeBack = (gateway: AdminGateway, url: URL, cookie: string) =>
  gateway.admin(`/login/oidc/callback${url.search}`, { headers: { ...anonymous, cookie } })

async function login(gateway: AdminGateway, query = '') {
  const { cookie, location } = await begin(gateway, query)
  return comeBack(gateway, await visit(location), cookie)
}
const sessionOf = (response: Response) =>
  response.headers
    .getSetCookie()
    .find((line) => line.startsWith('gatehouse_session='))
    ?.split(';')[0] ?? ''
const me = async (gateway: AdminGateway, response: Response) =>
  (await gateway.admin('/me', { headers: { ...anonymous, cookie: sessionOf(response) } })).json()

describe('a login with an OpenID provider', () => {
  test('begins a session with the role of the account, recorded in the audit log', async () => {
    const gateway = await open()
    const { response, location, cookie } = await begin(gateway)
    expect(response.status).toBe(302)
    expect(response.headers.get('set-cookie')).toMatch(
      /^gatehouse_login=[\w-]+; Path=\/admin\/v1\/login\/oidc; Max-Age=600; HttpOnly; SameSite=Lax$/,
    )
    const asked = Object.fromEntries(new URL(location).searchParams)
    expect(asked).toMatchObject({ scope: 'openid profile email', code_challenge_method: 'S256', response_type: 'code' })
    const back = await visit(location)
    expect(`${back.origin}${back.pathname}`).toBe(CALLBACK)
    const done = await comeBack(gateway, back, cookie)
    expect([done.status, done.headers.get('location')]).toEqual([303, '/console'])
    expect(done.headers.getSetCookie().join('\n')).toMatch(/gatehouse_login=; .*Max-Age=0/)
    expect(await me(gateway, done)).toMatchObject({ role: 'owner', actor: 'oidc:ada', via: 'session' })
    const { data } = await gateway.read<{ data: object[] }>('/audit?action=session.login')
    expect(data).toMatchObject([{ actor: 'oidc:ada', address: '127.0.0.1' }])
    expect(gateway.logged()).not.toContain(CLIENT.client_secret)
  })

  test('ends with a logout', async () => {
    const gateway = await open()
    const cookie = sessionOf(await login(gateway))
    const headers = { ...anonymous, cookie, 'x-gatehouse-csrf': '1' }
    expect((await gateway.admin('/logout', { method: 'POST', headers })).status).toBe(200)
    expect((await gateway.admin('/me', { headers })).status).toBe(401)
  })

  test('may end at another process than that where it began', async () => {
    const [here, there] = [await open(), await open()]
    const { cookie, location } = await begin(here)
    expect((await comeBack(there, await visit(location), cookie)).status).toBe(303)
  })

  test('gives the highest of several roles, and that of one value', async () => {
    const gateway = await open()
    account.groups = ['viewers', 'operators']
    expect(await me(gateway, await login(gateway))).toMatchObject({ role: 'operator' })
    account.groups = 'viewers'
    expect(await me(gateway, await login(gateway))).toMatchObject({ role: 'viewer' })
  })

  test('puts a person without a role of the installation into all projects of its groups', async () => {
    account.groups = ['a', 'b', 'gone']
    const roles: OidcConfig['roles'] = {}
    const gateway = await open({ roles })
    const make = (name: string) => gateway.read<{ project_id: string }>('/projects', { json: { name } })
    const [a, b, c] = [await make('a'), await make('b'), await make('c')]
    Object.assign(roles, {
      a: { role: 'project_member', project: a.project_id },
      b: { role: 'project_admin', project: b.project_id },
      gone: { role: 'project_member', project: 'proj_none' },
    })
    const cookie = sessionOf(await login(gateway))
    const as = (path: string, headers: Record<string, string> = {}, rest: object = {}) =>
      gateway.admin(path, { ...rest, headers: { ...anonymous, cookie, 'x-gatehouse-csrf': '1', ...headers } })
    const read = async (...call: Parameters<typeof as>) => (await as(...call)).json()
    expect(await read('/me')).toMatchObject({
      role: 'project_admin',
      project_id: b.project_id,
      memberships: [
        { project_id: b.project_id, role: 'project_admin' },
        { project_id: a.project_id, role: 'project_member' },
      ],
    })
    const inA = { 'x-gatehouse-project': a.project_id }
    expect(await read('/me', inA)).toMatchObject({ role: 'project_member', project_id: a.project_id })
    expect((await read('/projects')).data).toHaveLength(2)
    const order = { json: { name: 'key' } }
    expect([(await as('/tokens', {}, order)).status, (await as('/tokens', inA, order)).status]).toEqual([200, 403])
    // The right is that of the project of the object.
    const change = { method: 'PATCH', json: { labels: { team: 'x' } } }
    const changes = [a, b, c].map(({ project_id }) => as(`/projects/${project_id}`, {}, change))
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([403, 200, 404])
    expect((await as('/tokens', { 'x-gatehouse-project': c.project_id })).status).toBe(404)
    expect((await read(`/tokens?project_id=${a.project_id}`)).data).toEqual([])
    const call = { json: { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] } }
    expect((await as('/playground/v1/chat/completions', inA, call)).status).toBe(200)
    expect((await read(`/tokens?project_id=${a.project_id}`)).data).toHaveLength(1)
  })

  test('binds a project_admin to its project, which must exist', async () => {
    const maker = await startAdminGateway()
    stops.push(() => maker[Symbol.asyncDispose]())
    const roles: OidcConfig['roles'] = { 'gate-owners': { role: 'project_admin', project: 'prj_absent' } }
    const gateway = await open({ roles })
    expect(await refusal(await login(gateway))).toEqual([403, 'permission_denied'])
    const made = await gateway.read<{ project_id: string }>('/projects', { json: { name: 'a' } })
    Object.assign(roles['gate-owners'] ?? {}, { project: made.project_id })
    expect(await me(gateway, await login(gateway))).toMatchObject({
      role: 'project_admin',
      project_id: made.project_id,
    })
  })

  test('is refused without a role, and leaves a row in the audit log', async () => {
    const gateway = await open()
    for (const groups of [undefined, 'nobody', ['constructor'], { 'gate-owners': true }]) {
      account.groups = groups
      const response = await login(gateway)
      expect(sessionOf(response)).toBe('')
      const { error } = await response.json()
      expect([response.status, error.code]).toEqual([403, 'permission_denied'])
      expect(error.message).toContain('claim "groups"')
    }
    const { data } = await gateway.read<{ data: object[] }>('/audit?action=session.refuse')
    expect(data).toHaveLength(4)
    expect(data[0]).toMatchObject({ actor: 'oidc:ada', after: { reason: expect.stringContaining('no role') } })
  })

  test('is refused with another state, without the cookie, and with a changed one', async () => {
    const gateway = await open()
    const { cookie, location } = await begin(gateway)
    const back = await visit(location)
    const forged = new URL(back)
    forged.searchParams.set('state', 'of-somebody-else')
    const changed = `${cookie.slice(0, -2)}${cookie.endsWith('AA') ? 'BB' : 'AA'}`
    const other = (await begin(gateway)).cookie
    for (const [url, sent] of [
      [forged, cookie],
      [back, ''],
      [back, changed],
      [back, 'gatehouse_login=AAAA'],
      [back, other],
    ] as const) {
      expect(await refusal(await comeBack(gateway, url, sent))).toEqual([401, 'invalid_api_key'])
    }
    expect((await comeBack(gateway, back, cookie)).status).toBe(303)
  })

  test('is refused with a code that was used', async () => {
    const gateway = await open()
    const { cookie, location } = await begin(gateway)
    const back = await visit(location)
    expect((await comeBack(gateway, back, cookie)).status).toBe(303)
    expect(await refusal(await comeBack(gateway, back, cookie))).toEqual([401, 'invalid_api_key'])
  })

  test('is refused with another nonce, and with a code that another client got', async () => {
    const gateway = await open()
    for (const [name, value] of [
      ['nonce', 'another'],
      ['client_id', 'another'],
    ] as const) {
      const { cookie, location } = await begin(gateway)
      const url = new URL(location)
      url.searchParams.set(name, value)
      const response = await comeBack(gateway, await visit(url.href), cookie)
      expect([name, ...(await refusal(response))]).toEqual([name, 401, 'invalid_api_key'])
    }
  })

  test('is refused from 10 minutes on', async () => {
    const gateway = await open()
    for (const [seconds, status] of [
      [599, 303],
      [600, 401],
    ] as const) {
      const { cookie, location } = await begin(gateway)
      const back = await visit(location)
      gateway.clock.advance(seconds * 1000)
      expect((await comeBack(gateway, back, cookie)).status).toBe(status)
    }
  })

  test('says that the person or the provider has refused it, without repeating free text', async () => {
    const gateway = await open()
    const { cookie, location } = await begin(gateway)
    const back = new URL(CALLBACK)
    const state = new URL(location).searchParams.get('state') ?? ''
    back.search = new URLSearchParams({
      error: 'access_denied',
      error_description: '<b>x',
      state,
      iss: server.issuer,
    }).toString()
    const response = await comeBack(gateway, back, cookie)
    const { error } = await response.json()
    expect([response.status, error.message]).toEqual([401, 'The OpenID provider refused the login (access_denied).'])
  })

  test('answers 502 while the provider is down, and other logins still work', async () => {
    const gateway = await open()
    await server.stop()
    const { response } = await begin(gateway)
    expect(await refusal(response)).toEqual([502, 'upstream_unreachable'])
    const headers = { ...anonymous, 'x-gatehouse-csrf': '1' }
    const link = gateway.instance.first_login
    expect((await gateway.admin('/login', { json: { link }, headers })).status).toBe(200)
  })

  test('answers 502 where the provider does not accept the secret of the gateway', async () => {
    const gateway = await open({ client_secret: 'another-secret-than-the-registered-one' })
    expect(await refusal(await login(gateway))).toEqual([502, 'upstream_auth'])
  })

  test('answers 404 where it is not configured', async () => {
    const gateway = await startAdminGateway()
    stops.push(() => gateway[Symbol.asyncDispose]())
    expect(await refusal((await begin(gateway)).response)).toEqual([404, 'object_not_found'])
  })
})

describe('the address after a login', () => {
  test('is a path of this gateway', async () => {
    const gateway = await open()
    const response = await login(gateway, '?return_to=%2Fadmin%2Flogin%3Fa%3D1')
    expect([response.status, response.headers.get('location')]).toEqual([303, '/admin/login?a=1'])
    for (const path of ['/console', '/console?range=7d', '/console/requests?status=500']) {
      const there = await login(gateway, `?return_to=${encodeURIComponent(path)}`)
      expect(there.headers.get('location')).toBe(path)
    }
    expect(await me(gateway, response)).toMatchObject({ role: 'owner' })
  })

  test('is refused where a browser would leave the gateway', async () => {
    const gateway = await open()
    const bad = [
      'https://evil.example/admin/',
      '/consoles',
      '//evil.example/admin/',
      '/\\evil.example/admin/',
      '/admin/../..//evil.example',
      '/admin/..%2f..',
      '/admin/\\..\\..\\x',
      '/admin/\n//evil.example',
      'javascript:alert(1)',
      '/administrator',
      '/v1/models',
      '',
    ]
    for (const path of bad) {
      const local = localPath(path)
      expect([path, local === undefined || (local.startsWith('/admin/') && !local.includes('\\'))]).toEqual([
        path,
        true,
      ])
    }
    const { response } = await begin(gateway, `?return_to=${encodeURIComponent('//evil.example/admin/')}`)
    expect(await refusal(response)).toEqual([400, 'invalid_value'])
  })
})

describe('an ID token', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

  /** A provider that signs what `change` makes of the right claims. */
  function startSigner(change: (claims: Record<string, unknown>) => object, key = privateKey) {
    let nonce = ''
    const signer = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        const { origin, pathname } = new URL(request.url)
        if (pathname === '/.well-known/openid-configuration') {
          return Response.json({
            issuer: origin,
            authorization_endpoint: `${origin}/authorize`,
            token_endpoint: `${origin}/token`,
            jwks_uri: `${origin}/keys`,
            response_types_supported: ['code'],
            id_token_signing_alg_values_supported: ['RS256'],
          })
        }
        if (pathname === '/keys') {
          return Response.json({
            keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' }],
          })
        }
        const now = Math.floor(Date.now() / 1000)
        const right = {
          iss: origin,
          aud: CLIENT.client_id,
          sub: 'eve',
          nonce,
          iat: now,
          exp: now + 60,
          groups: 'viewers',
        }
        const signed = `${encode({ alg: 'RS256', kid: 'k' })}.${encode(change(right))}`
        const id_token = `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
        return Response.json({ access_token: 'a', token_type: 'Bearer', id_token })
      },
    })
    stops.push(() => signer.stop(true))
    return {
      issuer: `http://127.0.0.1:${signer.port}`,
      asked(value: string) {
        nonce = value
      },
    }
  }

  async function loginAt({ issuer, asked }: ReturnType<typeof startSigner>): Promise<Response> {
    const gateway = await open({ issuer })
    const { cookie, location } = await begin(gateway)
    const { searchParams } = new URL(location)
    asked(searchParams.get('nonce') ?? '')
    const back = new URL(CALLBACK)
    back.search = new URLSearchParams({ code: 'c', state: searchParams.get('state') ?? '' }).toString()
    return comeBack(gateway, back, cookie)
  }

  test('is accepted where it is right', async () => {
    expect((await loginAt(startSigner((claims) => claims))).status).toBe(303)
  })

  for (const [name, change, key] of [
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://elsewhere.example' })],
    ['for another audience', (claims) => ({ ...claims, aud: 'another' })],
    ['that has expired', (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1000) - 60 })],
    ['with another nonce', (claims) => ({ ...claims, nonce: 'another' })],
    ['without a nonce', ({ nonce: _, ...claims }) => claims],
    ['signed with another key', (claims) => claims, stranger],
  ] as [string, (claims: Record<string, unknown>) => object, typeof privateKey?][]) {
    test(`is refused ${name}`, async () => {
      expect(await refusal(await loginAt(startSigner(change, key)))).toEqual([401, 'invalid_api_key'])
    })
  }

  test('is not fetched from a private address that the document of a provider names', async () => {
    const inner = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({}) })
    stops.push(() => inner.stop(true))
    const outer = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request) =>
        Response.json({
          issuer: new URL(request.url).origin,
          authorization_endpoint: `${new URL(request.url).origin}/authorize`,
          token_endpoint: `http://127.0.0.1:${inner.port}/token`,
          jwks_uri: `http://127.0.0.1:${inner.port}/keys`,
        }),
    })
    stops.push(() => outer.stop(true))
    const response = await loginAt({ issuer: `http://127.0.0.1:${outer.port}`, asked: () => {} })
    expect(await refusal(response)).toEqual([502, 'upstream_unreachable'])
  })
})
