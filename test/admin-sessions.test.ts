/** Sessions of administrators: login by a one-time link, the cookie, requests of other sites, and the end. */
import { afterEach, describe, expect, test } from 'bun:test'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { ENGINES } from './kit/engines.ts'

const CSRF = { 'x-gatehouse-csrf': '1' }
let gateway: AdminGateway
afterEach(() => gateway?.[Symbol.asyncDispose]())

const link = () => gateway.instance.first_login ?? ''
const login = (secret: string, headers: Record<string, string> = CSRF) =>
  gateway.call('/admin/v1/login', { json: { link: secret }, headers: { authorization: '', ...headers } })
const cookieOf = (response: Response) => response.headers.get('set-cookie')?.split(';')[0] ?? ''
/** A request of the session, without a token. */
const as = (cookie: string, path: string, { headers, ...options }: Parameters<AdminGateway['call']>[1] = {}) =>
  gateway.call(`/admin/v1${path}`, { ...options, headers: { authorization: '', cookie, ...headers } })

describe('a login', () => {
  test('begins a session in a cookie that no script and no other site can use', async () => {
    gateway = await startAdminGateway()
    const response = await login(link())
    expect(response.headers.get('set-cookie')).toMatch(
      /^gatehouse_session=ghs-\w{48}; Path=\/admin; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    )
    const session = await response.json()
    expect(session).toMatchObject({ role: 'owner', address: '127.0.0.1' })
    const me = await (await as(cookieOf(response), '/me')).json()
    expect(me).toMatchObject({ role: 'owner', via: 'session', actor: session.actor })
    const { data } = await gateway.read<{ data: object[] }>('/audit?action=session.login')
    expect(data).toMatchObject([{ actor: session.actor, address: '127.0.0.1', before: { link_of: 'gateway' } }])
  })

  test('sets a secure cookie where the gateway is reached by https', async () => {
    gateway = await startAdminGateway({ server: { base_url: 'https://gateway.example' } })
    expect((await login(link())).headers.get('set-cookie')).toEndWith('; Secure')
  })

  test('sets a secure cookie behind a proxy with TLS if the proxy is trusted, and clears it as one', async () => {
    for (const [trust_proxy, proto, isSecure] of [
      [true, 'https', true],
      [true, 'HTTPS, http', true],
      [true, 'http', false],
      [true, 'javascript', false],
      [false, 'https', false],
    ] as const) {
      gateway = await startAdminGateway({ server: { trust_proxy } })
      const forwarded = { ...CSRF, 'x-forwarded-proto': proto }
      const response = await login(link(), forwarded)
      const out = await as(cookieOf(response), '/logout', { method: 'POST', headers: forwarded })
      for (const { headers } of [response, out]) {
        expect([trust_proxy, proto, headers.get('set-cookie')?.endsWith('; Secure')]).toEqual([
          trust_proxy,
          proto,
          isSecure,
        ])
      }
      await gateway[Symbol.asyncDispose]()
    }
    gateway = await startAdminGateway()
  })

  test('is possible once with a link, within 15 minutes, and not with another secret', async () => {
    gateway = await startAdminGateway()
    expect(await refusal(await login(`ghl-${'a'.repeat(48)}`))).toEqual([401, 'invalid_api_key'])
    expect((await login(link())).status).toBe(200)
    expect(await refusal(await login(link()))).toEqual([401, 'invalid_api_key'])
    await gateway[Symbol.asyncDispose]()
    gateway = await startAdminGateway()
    gateway.clock.advance(900_000)
    expect(await refusal(await login(link()))).toEqual([401, 'invalid_api_key'])
  })

  test('needs the header that a page of another site cannot send', async () => {
    gateway = await startAdminGateway()
    expect(await refusal(await login(link(), {}))).toEqual([403, 'permission_denied'])
    const elsewhere = { ...CSRF, origin: 'https://elsewhere.example' }
    expect(await refusal(await login(link(), elsewhere))).toEqual([403, 'permission_denied'])
    expect((await login(link(), { ...CSRF, origin: 'http://gatehouse.test' })).status).toBe(200)
  })

  test('has a page whose script reads the link from the fragment, and nothing else runs in it', async () => {
    gateway = await startAdminGateway()
    const page = await gateway.call('/admin/login', { headers: { authorization: '' } })
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'sha256-")
    expect(await page.text()).toContain('location.hash')
  })
})

describe('a session', () => {
  const change = (cookie: string, headers: Record<string, string>) =>
    as(cookie, '/projects', { json: { name: crypto.randomUUID() }, headers })

  test('changes something only for pages of this gateway', async () => {
    gateway = await startAdminGateway()
    const cookie = cookieOf(await login(link()))
    expect((await change(cookie, CSRF)).status).toBe(200)
    expect(
      (await change(cookie, { ...CSRF, origin: 'http://gatehouse.test', 'sec-fetch-site': 'same-origin' })).status,
    ).toBe(200)
    for (const headers of [
      {},
      { ...CSRF, origin: 'https://elsewhere.example' },
      { ...CSRF, origin: 'null' },
      { ...CSRF, 'sec-fetch-site': 'cross-site' },
      { ...CSRF, 'sec-fetch-site': 'same-site' },
    ]) {
      expect([headers, ...(await refusal(await change(cookie, headers)))]).toEqual([headers, 403, 'permission_denied'])
    }
  })

  test('ends when it is not used, and at its end however it is used', async () => {
    gateway = await startAdminGateway()
    const idle = cookieOf(await login(link()))
    gateway.clock.advance(59 * 60_000)
    expect((await as(idle, '/me')).status).toBe(200)
    gateway.clock.advance(60 * 60_000)
    expect(await refusal(await as(idle, '/me'))).toEqual([401, 'invalid_api_key'])
    await gateway[Symbol.asyncDispose]()
    gateway = await startAdminGateway()
    const used = cookieOf(await login(link()))
    for (let minutes = 30; minutes < 720; minutes += 30) {
      gateway.clock.advance(30 * 60_000)
      expect([minutes, (await as(used, '/me')).status]).toEqual([minutes, 200])
    }
    gateway.clock.advance(30 * 60_000)
    expect((await as(used, '/me')).status).toBe(401)
  })

  test('that has expired reads, changes and ends nothing', async () => {
    gateway = await startAdminGateway()
    const cookie = cookieOf(await login(link()))
    gateway.clock.advance(12 * 3_600_000)
    for (const path of ['/me', '/projects', '/sessions'])
      expect([path, (await as(cookie, path)).status]).toEqual([path, 401])
    expect(await refusal(await change(cookie, CSRF))).toEqual([401, 'invalid_api_key'])
    const all = await as(cookie, '/sessions', { method: 'DELETE', headers: CSRF })
    const out = await as(cookie, '/logout', { method: 'POST', headers: CSRF })
    expect([all.status, out.status]).toEqual([401, 401])
    expect((await gateway.read<{ data: object[] }>('/projects')).data).toEqual([])
  })

  test('ends by logout, and by the end of all', async () => {
    gateway = await startAdminGateway()
    const cookie = cookieOf(await login(link()))
    const { data } = await gateway.read<{ data: { session_id: string }[] }>('/sessions')
    expect(data).toHaveLength(1)
    const out = await as(cookie, '/logout', { method: 'POST', headers: CSRF })
    expect([out.status, out.headers.get('set-cookie')]).toEqual([200, expect.stringContaining('Max-Age=0')])
    expect((await as(cookie, '/me')).status).toBe(401)
    expect((await gateway.read<{ data: object[] }>('/sessions')).data).toEqual([])
    const { sessions } = { sessions: await gateway.read<{ ended: number }>('/sessions', { method: 'DELETE' }) }
    expect(sessions).toEqual({ ended: 0 })
  })

  test('is not accepted by the API for callers', async () => {
    gateway = await startAdminGateway()
    const cookie = cookieOf(await login(link()))
    expect((await gateway.call('/v1/models', { headers: { authorization: '', cookie } })).status).toBe(401)
  })
})

describe('the address of the admin API', () => {
  const settings = { ...DEFAULT_ADMIN, port: 1 }
  const get = (path: string, isAdmin: boolean) =>
    gateway.instance.fetch(
      new Request(`http://gatehouse.test${path}`, {
        headers: { authorization: 'Bearer owner-token-of-the-environment' },
      }),
      { address: '127.0.0.1', ...(isAdmin && { isAdmin }) },
    )

  test('is its own where one is configured, and has nothing else', async () => {
    gateway = await startAdminGateway({ admin: settings })
    expect((await get('/admin/v1/me', true)).status).toBe(200)
    expect((await get('/admin/login', true)).status).toBe(200)
    expect((await get('/healthz', false)).status).toBe(200)
    for (const [path, isAdmin] of [
      ['/admin/v1/me', false],
      ['/admin/login', false],
      ['/healthz', true],
      ['/v1/models', true],
    ] as const)
      expect([path, ...(await refusal(await get(path, isAdmin)))]).toEqual([path, 404, 'unknown_url'])
  })
})

for (const { name, open, openAgain, cleanup } of ENGINES) {
  describe(`login links on ${name}`, () => {
    afterEach(cleanup)
    const session = (id: string) => ({
      session_id: id,
      hash: id,
      actor: `login:${id}`,
      role: 'owner' as const,
      project_id: null,
      memberships: [],
      token_hash: null,
      address: '192.0.2.1',
      user_agent: '',
      created_at: 100,
      last_used_at: 100,
      expires_at: 200,
    })
    const draft = { actor: 'a', at_ms: 100_000, action: 'session.login', object_type: 'session', object_id: 'x' }

    test('are consumed by one of many logins at once', async () => {
      const here = await open()
      const there = (await openAgain?.()) ?? here
      await here.admin.sessions.addLink({ hash: 'h', actor: 'a', expires_at: 150, person: null }, draft)
      const logins = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          (n % 2 ? here : there).admin.sessions.login({ hash: 'h', now: 100 }, () => ({
            session: session(`ses_${n}`),
            audit: draft,
          })),
        ),
      )
      expect(logins.filter(Boolean)).toHaveLength(1)
      expect((await here.admin.sessions.page({ now: 100, limit: 99 })).rows).toHaveLength(1)
      expect((await here.audit.page({ limit: 99 })).rows).toHaveLength(2)
    })

    test('expire', async () => {
      const made = { session: session('ses_a'), audit: draft }
      const { admin } = await open()
      await admin.sessions.addLink({ hash: 'h', actor: 'a', expires_at: 150, person: null }, draft)
      expect(await admin.sessions.login({ hash: 'h', now: 150 }, () => made)).toBeUndefined()
      expect(await admin.sessions.login({ hash: 'h', now: 149 }, () => made)).toEqual(made.session)
    })
  })
}
