/** Every role against every route of the admin API: allowed, refused, and what who is bound to a project cannot see. */
import { afterAll, describe, expect, test } from 'bun:test'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import { OWNER, startAdminGateway } from './kit/admin.ts'
import { readDocument } from './kit/document.ts'

/** The right that a route needs, and where: `own`: also who is bound to a project, for what is of its project. */
type Access = `${'read' | 'operate' | 'manage' | 'own' | 'contents' | 'call'} ${'own' | 'installation'}`

/** A route that is missing here fails the first test. */
const ACCESS: Record<string, Access> = {
  'GET /admin/v1/me': 'read own',
  'GET /admin/v1/projects': 'read own',
  'POST /admin/v1/projects': 'manage installation',
  'GET /admin/v1/projects/{project_id}': 'read own',
  'PATCH /admin/v1/projects/{project_id}': 'manage own',
  'DELETE /admin/v1/projects/{project_id}': 'manage installation',
  'GET /admin/v1/events': 'read own',
  'GET /admin/v1/requests': 'read own',
  'GET /admin/v1/requests/facets': 'read own',
  'GET /admin/v1/summary': 'read own',
  'GET /admin/v1/requests/{request_row}': 'read own',
  'GET /admin/v1/requests/{request_row}/contents': 'contents own',
  'GET /admin/v1/requests/{request_row}/neighbors': 'read own',
  'GET /admin/v1/tokens': 'read own',
  'POST /admin/v1/tokens': 'manage own',
  'GET /admin/v1/tokens/{token_id}': 'read own',
  'GET /admin/v1/tokens/{token_id}/limits': 'read own',
  'GET /admin/v1/readiness': 'read installation',
  'PATCH /admin/v1/tokens/{token_id}': 'manage own',
  'POST /admin/v1/tokens/{token_id}/rotate': 'manage own',
  'DELETE /admin/v1/tokens/{token_id}': 'manage own',
  'GET /admin/v1/admin-tokens': 'own installation',
  'POST /admin/v1/admin-tokens': 'own installation',
  'GET /admin/v1/admin-tokens/{admin_token_id}': 'own installation',
  'DELETE /admin/v1/admin-tokens/{admin_token_id}': 'own installation',
  'POST /admin/v1/logout': 'read own',
  'POST /admin/v1/login-links': 'manage own',
  'GET /admin/v1/sessions': 'own installation',
  'DELETE /admin/v1/sessions': 'own installation',
  'DELETE /admin/v1/sessions/{session_id}': 'own installation',
  'GET /admin/v1/audit': 'read own',
  'GET /admin/v1/models': 'read own',
  'GET /admin/v1/models/{model}': 'read own',
  'GET /admin/v1/providers': 'read installation',
  'GET /admin/v1/providers/{provider}': 'read installation',
  'POST /admin/v1/providers/{provider}/test': 'operate installation',
  'POST /admin/v1/providers/{provider}/reset': 'operate installation',
  'GET /admin/v1/provider-presets': 'read installation',
  'POST /admin/v1/provider-drafts/test': 'own installation',
  'POST /admin/v1/provider-drafts/diff': 'own installation',
  'POST /admin/v1/provider-drafts/apply': 'own installation',
  'GET /admin/v1/overrides': 'read installation',
  'GET /admin/v1/overrides/{kind}/{name}': 'read installation',
  'PATCH /admin/v1/overrides/{kind}/{name}': 'operate installation',
  'DELETE /admin/v1/overrides/{kind}/{name}': 'operate installation',
  'POST /admin/v1/routing/explain': 'read installation',
  'GET /admin/v1/budgets': 'read own',
  'POST /admin/v1/budgets/credit': 'manage installation',
  'GET /admin/v1/cache': 'read installation',
  'POST /admin/v1/cache/purge': 'operate installation',
  'GET /admin/v1/diagnostics': 'operate installation',
  'GET /admin/v1/usage': 'read own',
  'GET /admin/v1/files': 'read own',
  'GET /admin/v1/files/{file_id}': 'read own',
  'GET /admin/v1/files/{file_id}/content': 'contents own',
  'DELETE /admin/v1/files/{file_id}': 'manage own',
  'GET /admin/v1/batches': 'read own',
  'GET /admin/v1/batches/{batch_id}': 'read own',
  'POST /admin/v1/batches/{batch_id}/cancel': 'operate installation',
  'GET /admin/v1/guards': 'read installation',
  'POST /admin/v1/guards/test': 'operate installation',
  'GET /admin/v1/mcp/servers': 'read installation',
  'POST /admin/v1/mcp/servers/{server}/connect': 'operate installation',
  'GET /admin/v1/mcp/connections': 'call own',
  'POST /admin/v1/mcp/connections': 'call own',
  'POST /admin/v1/mcp/connections/{server}': 'call own',
  'DELETE /admin/v1/mcp/connections/{server}': 'call own',
  'GET /admin/v1/mcp/people': 'read installation',
  'DELETE /admin/v1/mcp/people/{connection_id}': 'operate installation',
  'GET /admin/v1/mcp/tools': 'read installation',
  'POST /admin/v1/mcp/tools/approve': 'operate installation',
  'GET /admin/v1/ledger/reconcile': 'read installation',
  'GET /admin/v1/tasks': 'read own',
  'GET /admin/v1/tasks/{task_id}': 'read own',
  'GET /admin/v1/tasks/{task_id}/outputs': 'contents own',
  'POST /admin/v1/tasks/{task_id}/cancel': 'operate installation',
  'POST /admin/v1/tasks/{task_id}/resume': 'operate installation',
  'POST /admin/v1/tasks/{task_id}/retry-delivery': 'operate installation',
  'GET /admin/v1/config': 'read installation',
  'POST /admin/v1/config/validate': 'own installation',
  'POST /admin/v1/config/diff': 'own installation',
  'POST /admin/v1/config/apply': 'own installation',
  'GET /admin/v1/webhooks': 'read own',
  'GET /admin/v1/webhooks/{webhook_id}': 'read own',
  'POST /admin/v1/webhooks/{webhook_id}/redeliver': 'operate installation',
  'GET /admin/v1/config/schema': 'read installation',
  'GET /admin/v1/config/text': 'own installation',
  'POST /admin/v1/config/text': 'own installation',
  'GET /admin/v1/config/history': 'read installation',
  'GET /admin/v1/config/history/{version_id}': 'own installation',
  'GET /admin/v1/request-sessions': 'read own',
  'GET /admin/v1/alerts': 'read installation',
  'POST /admin/v1/alerts/{alert_id}/close': 'operate installation',
  'GET /admin/v1/audit/{sequence}': 'read own',
  'GET /admin/v1/audit/verify': 'read installation',
  'POST /admin/v1/playground/{path}': 'call own',
  'GET /admin/v1/playground/{path}': 'call own',
  'DELETE /admin/v1/playground/{path}': 'call own',
}

const RIGHTS: Record<string, string[]> = {
  owner: ['read', 'operate', 'manage', 'own', 'contents', 'call'],
  operator: ['read', 'operate', 'manage', 'call'],
  viewer: ['read'],
  project_admin: ['read', 'manage', 'contents', 'call'],
  project_member: ['read', 'call'],
}

const gateway = await startAdminGateway({
  admin: { ...DEFAULT_ADMIN, requests_per_minute: 1_000_000 },
})
afterAll(() => gateway[Symbol.asyncDispose]())
const { operations } = await readDocument(gateway)
const routes = operations.filter(
  ({ path, operation }) => path.startsWith('/admin/') && operation.security?.length !== 0,
)

let counter = 0
const fresh = (what: string) => `${what} ${counter++}`
const create = async (path: string, json: object, as = OWNER) =>
  gateway.read<Record<string, string>>(path, { json, as })

const ours = await create('/projects', { name: 'ours' })
const theirs = await create('/projects', { name: 'theirs' })
const secrets: Record<string, string> = {}
for (const role of Object.keys(RIGHTS)) {
  const project = role.startsWith('project_') ? { project_id: ours.project_id } : {}
  secrets[role] = (await create('/admin-tokens', { name: role, role, ...project })).secret ?? ''
}

/** A request of a route on new objects of a project. A precondition that fails shows that the right is there. */
async function call(name: string, role: string, project_id: string | undefined): Promise<[number, string | undefined]> {
  const [method = '', path = ''] = name.split(' ')
  const token = await create('/tokens', { name: fresh('token'), project_id })
  const admin = await create('/admin-tokens', { name: fresh('admin'), role: 'viewer' })
  const url = path
    .replace('/admin/v1', '')
    .replace('{project_id}', project_id ?? '')
    .replace('{token_id}', token.token_id ?? '')
    .replace('{admin_token_id}', admin.admin_token_id ?? '')
    .replaceAll(/\{\w+\}/g, 'none')
  const changes = method === 'POST' || method === 'PATCH' || method === 'PUT'
  const options = { method, as: secrets[role] ?? '', headers: { 'if-match': '"none"' }, ...(changes && { json: {} }) }
  const response = await gateway.admin(url, options)
  // A stream that does not end.
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    await response.body?.cancel()
    return [response.status, undefined]
  }
  const body = await response.json()
  return [response.status, body.error?.code]
}

test('every route of the admin API has a row, and every row a route', () => {
  expect(routes.map(({ name }) => name).sort()).toEqual(Object.keys(ACCESS).sort())
})

describe.each(Object.keys(RIGHTS))('%s', (role) => {
  test.each(Object.entries(ACCESS))('%s needs %s', async (name, access) => {
    const [right = '', scope] = access.split(' ')
    const isAllowed = RIGHTS[role]?.includes(right) && (!role.startsWith('project_') || scope === 'own')
    const [status, code] = await call(name, role, ours.project_id)
    if (isAllowed) expect([name, [401, 403].includes(status), status >= 500]).toEqual([name, false, false])
    else expect([name, status, code]).toEqual([name, 403, 'permission_denied'])
  })
})

describe('a project_admin', () => {
  const as = secrets.project_admin ?? ''
  const PLACES = /\{(project|token)_id\}/

  test.each(Object.entries(ACCESS).filter(([name, access]) => PLACES.test(name) && access.endsWith(' own')))(
    '%s is not found for what is of another project',
    async (name) => {
      expect(await call(name, 'project_admin', theirs.project_id)).toEqual([404, 'object_not_found'])
    },
  )

  test('gets the same response for what is of another project and for what does not exist', async () => {
    const token = await create('/tokens', { name: fresh('token'), project_id: theirs.project_id })
    for (const [other, none] of [
      [`/tokens/${token.token_id}`, '/tokens/tok_none'],
      [`/projects/${theirs.project_id}`, '/projects/proj_none'],
    ] as const) {
      const [one, two] = [await gateway.admin(other, { as }), await gateway.admin(none, { as })]
      expect([one.status, await one.json()]).toEqual([two.status, await two.json()])
    }
  })

  test('lists only what is of its project', async () => {
    await create('/tokens', { name: fresh('token'), project_id: theirs.project_id })
    await create('/tokens', { name: fresh('token') })
    for (const path of ['/tokens', '/projects', '/audit', `/tokens?project_id=${ours.project_id}`]) {
      const { data } = await gateway.read<{ data: { project_id: string }[] }>(path, { as })
      expect([path, data.length > 0, data.every(({ project_id }) => project_id === ours.project_id)]).toEqual([
        path,
        true,
        true,
      ])
    }
    for (const path of [`/tokens?project_id=${theirs.project_id}`, `/audit?project_id=${theirs.project_id}`]) {
      expect(await gateway.read<object>(path, { as })).toEqual({ data: [], next_cursor: null })
    }
  })

  test('creates tokens in its project and moves none out of it or into it', async () => {
    const made = await create('/tokens', { name: 'made' }, as)
    expect(made.project_id).toBe(ours.project_id ?? '')
    for (const project_id of [theirs.project_id, null, 'proj_none']) {
      const order = await gateway.admin('/tokens', { as, json: { name: 'x', project_id } })
      const move = await gateway.admin(`/tokens/${made.token_id}`, { as, method: 'PATCH', json: { project_id } })
      for (const response of [order, move]) {
        expect([response.status, (await response.json()).error.code]).toEqual([404, 'object_not_found'])
      }
    }
  })

  test.each([
    { rate_limits: { requests_per_minute: 9 } },
    { budgets: [] },
    { models: ['*'] },
    { families: null },
    { end_users: {} },
    { allowed_addresses: null },
    { guards: [] },
    { expires_at: null },
    { disabled: false },
    { log_contents: 'off' },
    // By its name the configuration file would adopt it.
    { name: 'ours, renamed' },
  ])('does not change what its project was given: %j', async (json) => {
    const response = await gateway.admin(`/projects/${ours.project_id}`, { as, method: 'PATCH', json })
    expect([response.status, (await response.json()).error.code]).toEqual([403, 'permission_denied'])
  })

  test('changes the labels of its project', async () => {
    const json = { labels: { team: 'x' } }
    expect(await gateway.read<object>(`/projects/${ours.project_id}`, { as, method: 'PATCH', json })).toMatchObject(
      json,
    )
  })
})
