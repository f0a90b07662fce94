/** The admin API: who may call it, its lists, its edits, and projects. */
import { afterEach, describe, expect, test } from 'bun:test'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import { type AdminGateway, OWNER, refusal, startAdminGateway } from './kit/admin.ts'

type Page = { data: { project_id: string; name: string }[]; next_cursor: string | null }

let gateway: AdminGateway
afterEach(() => gateway[Symbol.asyncDispose]())

describe('the admin API', () => {
  test('answers an owner token of the environment, and lets no cache keep it', async () => {
    gateway = await startAdminGateway()
    const response = await gateway.admin('/projects')
    expect([response.status, await response.json()]).toEqual([200, { data: [], next_cursor: null }])
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('refuses an API token, and says which token is needed', async () => {
    gateway = await startAdminGateway()
    const response = await gateway.admin('/projects', { as: gateway.token })
    const { error } = await response.json()
    expect([response.status, error.code]).toEqual([401, 'invalid_api_key'])
    expect(error.message).toContain('This is an API token')
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('refuses an API token of any form', async () => {
    const bootstrap_token = 'the-first-token-that-was-given'
    gateway = await startAdminGateway({ bootstrap_token })
    const { error } = await (await gateway.admin('/projects', { as: bootstrap_token })).json()
    expect(error.message).toContain('This is an API token')
  })

  test.each([OWNER, `gha-${'a'.repeat(48)}`])(
    'is for admin tokens, which the API does not accept: %s',
    async (token) => {
      gateway = await startAdminGateway()
      const response = await gateway.call('/v1/models', { headers: { authorization: `Bearer ${token}` } })
      const { error } = await response.json()
      expect([response.status, error.code]).toEqual([401, 'invalid_api_key'])
      expect(error.message).toContain('This is an admin token')
    },
  )

  test('takes no secret from the address', async () => {
    gateway = await startAdminGateway()
    const response = await gateway.call(`/admin/v1/projects?key=${OWNER}`, { headers: { authorization: '' } })
    expect(await refusal(response)).toEqual([401, 'invalid_api_key'])
  })

  test('delays the answers to an address that guesses', async () => {
    gateway = await startAdminGateway()
    const guess = () => gateway.admin('/projects', { as: 'guess-guess-guess-guess' })
    for (let n = 0; n < 10; n++) expect((await guess()).status).toBe(401)
    const began = gateway.clock.steady()
    let isAnswered = false
    const late = guess().finally(() => {
      isAnswered = true
    })
    while (!isAnswered) {
      await Bun.sleep(0)
      if (!isAnswered) gateway.clock.advance(10)
    }
    expect((await late).status).toBe(401)
    expect(gateway.clock.steady() - began).toBeGreaterThanOrEqual(250)
  })

  test('limits the requests of an administrator, apart from those of API tokens', async () => {
    gateway = await startAdminGateway({
      admin: { ...DEFAULT_ADMIN, requests_per_minute: 20 },
    })
    const statuses = []
    for (let n = 0; n < 3; n++) statuses.push((await gateway.admin('/projects')).status)
    expect(statuses).toEqual([200, 200, 429])
    expect((await gateway.call('/v1/models')).status).toBe(200)
    gateway.clock.advance(3_000)
    expect((await gateway.admin('/projects')).status).toBe(200)
  })

  test('is not there when it is off', async () => {
    gateway = await startAdminGateway({
      admin: { ...DEFAULT_ADMIN, enabled: false },
    })
    expect(await refusal(await gateway.admin('/projects'))).toEqual([404, 'unknown_url'])
  })

  test('answers HEAD and OPTIONS, and gives no other origin access', async () => {
    gateway = await startAdminGateway({ server: { cors_origins: ['*'] } })
    const head = await gateway.admin('/projects', { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    const options = await gateway.admin('/projects', {
      method: 'OPTIONS',
      headers: { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' },
    })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, POST, HEAD, OPTIONS'])
    const response = await gateway.admin('/projects', { headers: { origin: 'https://elsewhere.example' } })
    for (const { headers } of [options, response]) expect(headers.get('access-control-allow-origin')).toBeNull()
    expect(await refusal(await gateway.admin('/projects', { method: 'PUT' }))).toEqual([405, 'method_not_allowed'])
  })
})

describe('projects of the admin API', () => {
  const create = (name: string) => gateway.read<{ project_id: string }>('/projects', { json: { name } })

  test('are created, read, changed and deleted', async () => {
    gateway = await startAdminGateway()
    const created = await gateway.admin('/projects', { json: { name: 'search', models: ['a/*'] } })
    const project = await created.json()
    const etag = created.headers.get('etag') ?? ''
    expect(project).toMatchObject({ name: 'search', models: ['a/*'], budgets: [] })
    const path = `/projects/${project.project_id}`
    const found = await gateway.admin(path)
    expect([await found.json(), found.headers.get('etag')]).toEqual([project, etag])
    const same = await gateway.admin(path, { headers: { 'if-none-match': etag } })
    expect([same.status, await same.text()]).toEqual([304, ''])

    const change = { method: 'PATCH', json: { labels: { team: 'b' }, disabled: true }, headers: { 'if-match': etag } }
    expect(await gateway.read(path, change)).toEqual({ ...project, labels: { team: 'b' }, disabled: true })
    expect(await refusal(await gateway.admin(path, change))).toEqual([412, 'precondition_failed'])
    const removal = { method: 'DELETE', headers: { 'if-match': etag } }
    expect(await refusal(await gateway.admin(path, removal))).toEqual([412, 'precondition_failed'])
    expect((await gateway.admin(path, { method: 'DELETE', headers: { 'if-match': '*' } })).status).toBe(200)
    expect(await refusal(await gateway.admin(path))).toEqual([404, 'object_not_found'])
    expect(await gateway.read<Page>('/projects')).toEqual({ data: [], next_cursor: null })
  })

  test('are listed in pages, each exactly once', async () => {
    gateway = await startAdminGateway()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await create(name)
    const names: string[][] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Page = await gateway.read<Page>(`/projects?limit=2&cursor=${cursor}`)
      names.push(page.data.map(({ name }) => name))
      cursor = page.next_cursor
    }
    expect(names).toEqual([['a', 'b'], ['c', 'd'], ['e']])
  })

  test.each(['limit=0', 'limit=201', 'limit=x', 'cursor=x', 'cursor=WyJhIl0'])('refuse the page %s', async (query) => {
    gateway = await startAdminGateway()
    expect(await refusal(await gateway.admin(`/projects?${query}`))).toEqual([400, 'invalid_value'])
  })

  test.each([
    [{}, 'missing_required_parameter', 'name'],
    [{ name: 1 }, 'invalid_type', 'name'],
    [{ name: 'a', model: ['x'] }, 'invalid_value', 'model'],
    [{ name: 'a', rate_limits: { requests_per_minute: -1 } }, 'invalid_value', 'rate_limits.requests_per_minute'],
    [{ name: 'a', allowed_addresses: ['x'] }, 'invalid_value', 'allowed_addresses[0]'],
  ])('refuse the body %j', async (json, code, param) => {
    gateway = await startAdminGateway()
    const response = await gateway.admin('/projects', { json })
    expect(await response.json()).toMatchObject({ error: { code, param } })
    expect(response.status).toBe(400)
  })
})

describe('an idempotency key', () => {
  const post = (key: string, json: unknown, as = OWNER) =>
    gateway.admin('/projects', { as, json, headers: { 'idempotency-key': key } })

  test('carries a request out once, and repeats its response', async () => {
    gateway = await startAdminGateway()
    const first = await post('k1', { name: 'a' })
    const second = await post('k1', { name: 'a' })
    expect([first.headers.get('idempotent-replayed'), second.headers.get('idempotent-replayed')]).toEqual([
      null,
      'true',
    ])
    expect(await second.json()).toEqual(await first.json())
    expect((await gateway.read<Page>('/projects')).data).toHaveLength(1)
  })

  test('is refused with another body, and forgotten after a day', async () => {
    gateway = await startAdminGateway()
    await post('k1', { name: 'a' })
    expect(await refusal(await post('k1', { name: 'b' }))).toEqual([422, 'idempotency_key_reused'])
    gateway.clock.advance(86_400_000)
    expect((await post('k1', { name: 'b' })).status).toBe(200)
  })

  test('is free again after a request that was refused', async () => {
    gateway = await startAdminGateway()
    expect((await post('k1', { name: '' })).status).toBe(400)
    expect((await post('k1', { name: 'a' })).status).toBe(200)
  })

  test('of two requests at once lets one through', async () => {
    gateway = await startAdminGateway()
    const both = await Promise.all([post('k1', { name: 'a' }), post('k1', { name: 'a' })])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    expect((await gateway.read<Page>('/projects')).data).toHaveLength(1)
  })
})
