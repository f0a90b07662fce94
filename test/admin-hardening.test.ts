/** Attacks and races on the admin API: preconditions, cookies, filters, guesses, and long checks. */
import { afterEach, describe, expect, test } from 'bun:test'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { ENGINES } from './kit/engines.ts'

let gateway: AdminGateway
afterEach(async () => {
  await gateway[Symbol.asyncDispose]()
  for (const engine of ENGINES) await engine.cleanup()
})

const create = (path: string, json: object) => gateway.read<Record<string, string>>(path, { json })

describe('a precondition', () => {
  test.each([
    { path: '/tokens', change: '/rotate', method: 'POST' },
    { path: '/tokens', change: '', method: 'DELETE' },
  ])('holds for one of two changes at once: $method $path$change', async ({ path, change, method }) => {
    gateway = await startAdminGateway()
    const { token_id } = await create(path, { name: 'one' })
    const etag = (await gateway.admin(`${path}/${token_id}`)).headers.get('etag') ?? ''
    const request = { method, headers: { 'if-match': etag } }
    const both = await Promise.all([1, 2].map(() => gateway.admin(`${path}/${token_id}${change}`, request)))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  })

  test('of a deletion fails where the project was changed at the same time', async () => {
    gateway = await startAdminGateway()
    const { project_id } = await create('/projects', { name: 'one' })
    const etag = (await gateway.admin(`/projects/${project_id}`)).headers.get('etag') ?? ''
    const headers = { 'if-match': etag }
    const both = await Promise.all([
      gateway.admin(`/projects/${project_id}`, { method: 'PATCH', json: { labels: { a: 'b' } }, headers }),
      gateway.admin(`/projects/${project_id}`, { method: 'DELETE', headers }),
    ])
    const statuses = both.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  })

  test('of an override holds for one of two changes at once', async () => {
    gateway = await startAdminGateway({ sandbox: true })
    const path = '/overrides/provider/sandbox'
    await gateway.read(path, { method: 'PATCH', json: { weight: 2 } })
    const etag = (await gateway.admin(path)).headers.get('etag') ?? ''
    const change = (weight: number) =>
      gateway.admin(path, { method: 'PATCH', json: { weight }, headers: { 'if-match': etag } })
    const both = await Promise.all([change(3), change(4)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  })
})

describe.each(ENGINES)('filters on $name', (engine) => {
  test.each([
    '/tasks?token_id=a%00',
    '/tokens?project_id=%00',
    '/usage?token_id=a%00b',
    '/tasks?project_id=%00x',
    '/tasks?model=%00',
  ])('with a NUL character are refused: %s', async (path) => {
    await engine.open()
    const store_url = engine.url?.()
    gateway = await startAdminGateway({}, store_url === undefined ? {} : { store_url })
    expect(await refusal(await gateway.admin(path))).toEqual([400, 'invalid_value'])
    expect(await refusal(await gateway.admin('/tokens/a%00b'))).toEqual([404, 'object_not_found'])
    expect(await refusal(await gateway.admin('/tasks/a%00b'))).toEqual([404, 'object_not_found'])
  })
})

test('two cookies of a session are refused, whichever is right', async () => {
  gateway = await startAdminGateway()
  const json = { link: gateway.instance.first_login ?? '' }
  const headers = { authorization: '', 'x-gatehouse-csrf': '1' }
  const response = await gateway.call('/admin/v1/login', { json, headers })
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
  const as = (cookies: string) => gateway.call('/admin/v1/me', { headers: { authorization: '', cookie: cookies } })
  expect((await as(cookie)).status).toBe(200)
  for (const cookies of [`${cookie}; gatehouse_session=ghs-other`, `gatehouse_session=; ${cookie}`]) {
    expect(await refusal(await as(cookies))).toEqual([401, 'invalid_api_key'])
  }
})

test('the audit log is checked by one request at a time', async () => {
  gateway = await startAdminGateway()
  const answers = await Promise.all([1, 2, 3].map(() => gateway.admin('/audit/verify')))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 429, 429])
  expect((await gateway.admin('/audit/verify')).status).toBe(200)
})

test('wrong admin tokens and wrong links leave one row for their address', async () => {
  gateway = await startAdminGateway()
  for (let n = 0; n < 3; n++)
    expect((await gateway.admin('/projects', { as: `gha-${'x'.repeat(48)}` })).status).toBe(401)
  const headers = { authorization: '', 'x-gatehouse-csrf': '1' }
  const wrong = await gateway.call('/admin/v1/login', { json: { link: `ghl-${'a'.repeat(48)}` }, headers })
  expect(wrong.status).toBe(401)
  const { data } = await gateway.read<{ data: object[] }>('/audit?action=login.failed')
  expect(data).toMatchObject([{ actor: 'unknown', object_type: 'address', after: { failures: 1 } }])
  expect(JSON.stringify(data)).not.toContain('xxxx')
})

test.each([
  ['/requests?token_id=a', 'token_id', 'Did you mean "token"?'],
  ['/requests?modle=a', 'modle', 'Did you mean "model"?'],
  ['/tokens?project=a', 'project', 'it has limit, cursor'],
  ['/me?constructor=1', 'constructor', 'it has none'],
])('an unknown query parameter is refused: %s', async (path, param, message) => {
  gateway = await startAdminGateway()
  const response = await gateway.admin(path)
  const { error } = await response.json()
  expect([response.status, error.code, error.param]).toEqual([400, 'unsupported_parameter', param])
  expect(error.message).toContain(message)
})

test('problems of a configuration are listed up to a bound', async () => {
  gateway = await startAdminGateway()
  const models = Array.from({ length: 300 }, (_, n) => `  "team/m${n}": { targets: [{ provider: none, model: x }] }`)
  const text = `models:\n${models.join('\n')}\n`
  const { valid, problems } = await gateway.read<{ valid: boolean; problems: object[] }>('/config/validate', {
    json: { text },
  })
  expect([valid, problems.length]).toEqual([false, 100])
})
