/** Persons without rights of an administrator: sessions by a link that somebody makes, by an admin token, and in several projects. */
import { afterEach, describe, expect, it } from 'bun:test'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { ENGINES } from './kit/engines.ts'

const CSRF = { 'x-gatehouse-csrf': '1' }
const CHAT = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }
let gateway: AdminGateway
/** The database is another test's next: its gateway writes to it until it is closed. */
let cleanup: (() => Promise<void>) | undefined
afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await cleanup?.()
  cleanup = undefined
})

const login = (json: object) => gateway.call('/admin/v1/login', { json, headers: { authorization: '', ...CSRF } })
type Options = { json?: unknown; method?: string; headers?: Record<string, string> }
type Person = (path: string, options?: Options) => Promise<Response>

async function session(json: object): Promise<Person> {
  const response = await login(json)
  if (response.status !== 200) throw new Error(await response.text())
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
  return (path, { headers, ...options } = {}) =>
    gateway.call(`/admin/v1${path}`, { ...options, headers: { authorization: '', cookie, ...CSRF, ...headers } })
}

const project = (name: string) => gateway.read<{ project_id: string }>('/projects', { json: { name } })
const adminToken = (role: string, project_id?: string) =>
  gateway.read<{ secret: string; admin_token_id: string }>('/admin-tokens', { json: { name: role, role, project_id } })
async function linkFor(order: object, as?: string): Promise<string> {
  const { link } = await gateway.read<{ link: string }>('/login-links', { json: order, ...(as && { as }) })
  return link.split('#')[1] ?? ''
}

describe.each(ENGINES)('a login link for a person, on $name', (engine) => {
  it('begins a session of the member, who sees and calls in the project and changes nothing', async () => {
    cleanup = engine.cleanup
    await engine.open()
    gateway = await startAdminGateway({}, { store_url: engine.url?.() ?? 'sqlite::memory:' })
    const [ours, theirs] = [await project('ours'), await project('theirs')]
    for (const { project_id } of [ours, theirs]) await gateway.read('/tokens', { json: { name: 'key', project_id } })
    const link = await linkFor({ name: 'Ann', role: 'project_member', project_id: ours.project_id })
    const ann = await session({ link })
    expect(await (await ann('/me')).json()).toMatchObject({
      actor: 'person:Ann',
      role: 'project_member',
      project_id: ours.project_id,
      rights: ['read', 'call'],
    })
    expect((await ann('/playground/v1/chat/completions', { json: CHAT })).status).toBe(200)
    const { data: tokens } = await (await ann('/tokens')).json()
    expect(tokens.map(({ project_id }: { project_id: string }) => project_id)).toEqual([
      ours.project_id,
      ours.project_id,
    ])
    for (const path of ['/usage', '/requests', `/projects/${ours.project_id}`, `/tokens/${tokens[0].token_id}/limits`])
      expect([path, (await ann(path)).status]).toEqual([path, 200])
    for (const [path, options] of [
      ['/tokens', { json: { name: 'mine' } }],
      [`/projects/${ours.project_id}`, { method: 'PATCH', json: { labels: {} } }],
      ['/login-links', { json: { name: 'Bob', role: 'project_member' } }],
      ['/config', {}],
    ] as const)
      expect([path, ...(await refusal(await ann(path, options)))]).toEqual([path, 403, 'permission_denied'])
    expect(await refusal(await ann(`/projects/${theirs.project_id}`))).toEqual([404, 'object_not_found'])
    expect(await refusal(await login({ link }))).toEqual([401, 'invalid_api_key'])
  })
})

describe('a login link', () => {
  it('gives no right that its maker lacks', async () => {
    gateway = await startAdminGateway()
    const { project_id } = await project('ours')
    const theirs = await project('theirs')
    const operator = (await adminToken('operator')).secret
    const lead = (await adminToken('project_admin', project_id)).secret
    for (const [as, order, status] of [
      [operator, { role: 'viewer' }, 200],
      [operator, { role: 'project_member', project_id }, 200],
      [operator, { role: 'owner' }, 403],
      [operator, { role: 'project_admin', project_id }, 403],
      [lead, { role: 'project_admin' }, 200],
      [lead, { role: 'project_member' }, 200],
      [lead, { role: 'viewer' }, 403],
      [lead, { role: 'project_member', project_id: theirs.project_id }, 404],
      [undefined, { role: 'project_member' }, 400],
      [undefined, { role: 'viewer', project_id }, 400],
      [undefined, { role: 'viewer', name: 'a\nb' }, 400],
    ] as const) {
      const response = await gateway.admin('/login-links', { json: { name: 'Ann', ...order }, ...(as && { as }) })
      expect([order, response.status]).toEqual([order, status])
    }
  })

  it('expires when it says', async () => {
    gateway = await startAdminGateway()
    const link = await linkFor({ name: 'Ann', role: 'viewer', valid_seconds: 60 })
    gateway.clock.advance(60_000)
    expect((await login({ link })).status).toBe(401)
  })
})

describe('an admin token that is typed in', () => {
  it('begins a session of its role, which ends when the token is revoked', async () => {
    gateway = await startAdminGateway()
    const { secret, admin_token_id } = await adminToken('operator')
    const person = await session({ token: ` ${secret}\n` })
    expect(await (await person('/me')).json()).toMatchObject({
      actor: `admin:${admin_token_id}`,
      role: 'operator',
      via: 'session',
    })
    await gateway.read(`/admin-tokens/${admin_token_id}`, { method: 'DELETE' })
    expect((await person('/me')).status).toBe(401)
  })

  it('may be that of the environment', async () => {
    gateway = await startAdminGateway()
    const person = await session({ token: 'owner-token-of-the-environment' })
    expect(await (await person('/me')).json()).toMatchObject({ actor: 'environment', role: 'owner', via: 'session' })
  })

  it('is refused and recorded where it is wrong, slower each time', async () => {
    gateway = await startAdminGateway()
    expect(await refusal(await login({ token: `gha-${'x'.repeat(48)}` }))).toEqual([401, 'invalid_api_key'])
    const { data } = await gateway.read<{ data: object[] }>('/audit?action=admin.refused')
    const all = await gateway.read<{ data: { action: string }[] }>('/audit')
    expect(data.length + all.data.filter(({ action }) => /fail|refus/.test(action)).length).toBeGreaterThan(0)
  })

  it.each([[{}], [{ link: 'ghl-x', token: 'gha-x' }]])('needs either of both: %j', async (json) => {
    gateway = await startAdminGateway()
    expect(await refusal(await login(json))).toEqual([400, 'invalid_value'])
  })
})
