/** The playground: calls of a person with a session, without an API key, through the pipeline of every call. */
import { afterEach, describe, expect, it } from 'bun:test'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { ENGINES } from './kit/engines.ts'

const CSRF = { 'x-gatehouse-csrf': '1' }
const CHAT = { model: 'sandbox/general', messages: [{ role: 'user' as const, content: 'Hello' }] }
const NO_HEADERS = {}
let gateway: AdminGateway
/** The database is another test's next: its gateway writes to it until it is closed. */
let cleanup: (() => Promise<void>) | undefined
afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await cleanup?.()
  cleanup = undefined
})

type Options = { json?: unknown; method?: string; headers?: Record<string, string> }
type Person = (path: string, options?: Options) => Promise<Response>

/** Logs in as owner by the first link. */
async function owner(): Promise<Person> {
  const json = { link: gateway.instance.first_login ?? '' }
  const response = await gateway.call('/admin/v1/login', { json, headers: { authorization: '', ...CSRF } })
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
  return (path, { headers, ...options } = {}) =>
    gateway.call(`/admin/v1/playground${path}`, {
      ...options,
      headers:
        headers === NO_HEADERS ? { authorization: '', cookie } : { authorization: '', cookie, ...CSRF, ...headers },
    })
}

const project = (order: object = {}) =>
  gateway.read<{ project_id: string }>('/projects', { json: { name: 'team', ...order } })

/** An administrator with a token, which the playground accepts too. */
async function withRole(role: string, project_id?: string): Promise<Person> {
  const { secret } = await gateway.read<{ secret: string }>('/admin-tokens', { json: { name: role, role, project_id } })
  return (path, { headers, ...options } = {}) =>
    gateway.call(`/admin/v1/playground${path}`, {
      ...options,
      headers: { authorization: `Bearer ${secret}`, ...headers },
    })
}

async function recorded(): Promise<Record<string, unknown>[]> {
  gateway.instance.flushRequests()
  for (;;) {
    const { data } = await gateway.read<{ data: Record<string, unknown>[] }>('/requests?tag=playground')
    if (data.length > 0) return data
    gateway.clock.advance(1_000)
    await Bun.sleep(0)
  }
}

describe('a session of the console', () => {
  it.each([
    ['chat completions', '/v1/chat/completions', CHAT],
    ['responses', '/v1/responses', { model: 'sandbox/general', input: 'Hello' }],
    ['messages', '/v1/messages', { ...CHAT, max_tokens: 100 }],
    [
      'generateContent',
      '/v1beta/models/sandbox/general:generateContent',
      { contents: [{ parts: [{ text: 'Hello' }] }] },
    ],
    ['embeddings', '/v1/embeddings', { model: 'sandbox/embedding', input: 'Hello' }],
    ['rerank', '/v1/rerank', { model: 'sandbox/rerank', query: 'a', documents: ['a', 'b'] }],
    ['moderations', '/v1/moderations', { model: 'sandbox/moderation', input: 'Hello' }],
    [
      'images',
      '/v1/images/generations',
      { model: 'sandbox/image', prompt: 'A lighthouse', response_format: 'b64_json' },
    ],
  ])('calls %s', async (_, path, json) => {
    gateway = await startAdminGateway()
    const response = await (await owner())(path, { json })
    const body = await response.json()
    expect([response.status, body.error ?? undefined]).toEqual([200, undefined])
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  it.each([
    ['/v1/chat/completions', { ...CHAT, stream: true }],
    ['/v1/responses', { model: 'sandbox/general', input: 'Hello', stream: true }],
    ['/v1/messages', { ...CHAT, max_tokens: 100, stream: true }],
    ['/v1beta/models/sandbox/general:streamGenerateContent?alt=sse', { contents: [{ parts: [{ text: 'Hello' }] }] }],
    ['/v1/images/generations', { model: 'sandbox/image', prompt: 'A lighthouse', stream: true }],
  ])('reads a stream of %s', async (path, json) => {
    gateway = await startAdminGateway()
    const response = await (await owner())(path, { json })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(await response.text()).toContain('data: ')
  })

  it('is billed to the project that it names, and the request log says who called', async () => {
    gateway = await startAdminGateway()
    const { project_id } = await project()
    const call = await owner()
    const response = await call('/v1/chat/completions', { json: CHAT, headers: { 'x-gatehouse-project': project_id } })
    expect(response.status).toBe(200)
    expect(await recorded()).toMatchObject([
      { project_id, playground: 'login', tags: ['playground'], model: 'sandbox/general', status: 200 },
    ])
    const { data } = await gateway.read<{ data: { token_id: string; playground?: string }[] }>(
      `/tokens?project_id=${project_id}`,
    )
    expect(data).toMatchObject([{ project_id, playground: 'login', prefix: 'playground' }])
    expect((await gateway.read<{ data: object[] }>('/audit?action=token.create')).data).toMatchObject([
      { actor: expect.stringMatching(/^login:/), object_id: data[0]?.token_id },
      {},
    ])
  })

  it('needs the header that a page of another site cannot send', async () => {
    gateway = await startAdminGateway()
    const call = await owner()
    const without = await call('/v1/chat/completions', {
      json: CHAT,
      headers: NO_HEADERS,
    })
    const elsewhere = await call('/v1/chat/completions', { json: CHAT, headers: { origin: 'https://evil.example' } })
    for (const response of [without, elsewhere]) expect(await refusal(response)).toEqual([403, 'permission_denied'])
  })

  it('gets the error of the path in its own form', async () => {
    gateway = await startAdminGateway()
    const response = await (await owner())('/v1/messages', { json: { ...CHAT, model: 'none', max_tokens: 5 } })
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })

  it('edits an image', async () => {
    gateway = await startAdminGateway()
    const call = await owner()
    const made = await (
      await call('/v1/images/generations', {
        json: { model: 'sandbox/image', prompt: 'a', response_format: 'b64_json' },
      })
    ).json()
    const image = `data:image/png;base64,${made.data[0].b64_json}`
    const response = await call('/v1/images/edits', {
      json: { model: 'sandbox/image', prompt: 'b', image, response_format: 'b64_json' },
    })
    expect([response.status, (await response.json()).data.length]).toEqual([200, 1])
  })

  it('names the paths that there are for one that there is not', async () => {
    gateway = await startAdminGateway()
    expect(await refusal(await (await owner())('/v1/none', { json: {} }))).toEqual([404, 'unknown_url'])
  })
})

describe('a task of the playground', () => {
  it.each([
    ['/v1/videos', { model: 'sandbox/text-to-video', prompt: 'A lighthouse' }, 'id'],
    ['/v1/3d/generations', { model: 'sandbox/text-to-3d', prompt: 'A chair' }, 'task'],
  ])('of %s is read by its person, and by nobody else of the project', async (path, json, kind) => {
    gateway = await startAdminGateway()
    const { project_id } = await project()
    const call = await owner()
    const headers = { 'x-gatehouse-project': project_id }
    const made = await (await call(path, { json, headers })).json()
    const id = kind === 'id' ? made.id : made.data.task_id
    const read = await call(`${path}/${id}?project=${project_id}`)
    expect([read.status, (await call(`${path}/${id}`)).status]).toEqual([200, 404])
    const { steps } = await gateway.read<{ steps: { status: string }[] }>(`/tasks/${id}`)
    expect(steps[0]?.status).toBe('NOT_START')
    const other = await withRole('project_admin', project_id)
    expect((await other(`${path}/${id}`)).status).toBe(404)
  })
})

describe('the role', () => {
  it('viewer calls nothing', async () => {
    gateway = await startAdminGateway()
    const call = await withRole('viewer')
    expect(await refusal(await call('/v1/chat/completions', { json: CHAT }))).toEqual([403, 'permission_denied'])
  })

  it('project_admin calls in its project only', async () => {
    gateway = await startAdminGateway()
    const ours = await project()
    const theirs = await project({ name: 'theirs' })
    const call = await withRole('project_admin', ours.project_id)
    expect((await call('/v1/chat/completions', { json: CHAT })).status).toBe(200)
    expect(await recorded()).toMatchObject([
      { project_id: ours.project_id, playground: expect.stringMatching(/^admin:adm_/) },
    ])
    const headers = { 'x-gatehouse-project': theirs.project_id }
    expect(await refusal(await call('/v1/chat/completions', { json: CHAT, headers }))).toEqual([
      404,
      'object_not_found',
    ])
  })
})

describe('what limits a project limits its playground:', () => {
  it.each([
    ['models', { models: ['other/*'] }, 403],
    ['rate limits', { rate_limits: { requests_per_minute: 1 } }, 429],
    ['families', { families: ['embeddings'] }, 403],
    ['addresses', { allowed_addresses: ['10.0.0.0/8'] }, 403],
  ] as const)('%s', async (_, order, status) => {
    gateway = await startAdminGateway()
    const { project_id } = await project(order)
    const call = await owner()
    const headers = { 'x-gatehouse-project': project_id }
    const first = await call('/v1/chat/completions', { json: CHAT, headers })
    const last = status === 429 ? await call('/v1/chat/completions', { json: CHAT, headers }) : first
    expect(last.status).toBe(status)
  })

  it('a project that is not there is named in the error', async () => {
    gateway = await startAdminGateway()
    const headers = { 'x-gatehouse-project': 'proj_none' }
    const response = await (await owner())('/v1/chat/completions', { json: CHAT, headers })
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_value', param: 'project_id' } })
  })
})

describe.each(ENGINES)('the token of the playground, on $name', (engine) => {
  it('is one for each person and project, has no secret, and is revoked for good', async () => {
    cleanup = engine.cleanup
    await engine.open()
    gateway = await startAdminGateway({}, { store_url: engine.url?.() ?? 'sqlite::memory:' })
    const { project_id } = await project()
    const call = await withRole('project_admin', project_id)
    const statuses = await Promise.all(
      [1, 2, 3].map(async () => (await call('/v1/chat/completions', { json: CHAT })).status),
    )
    expect(statuses).toEqual([200, 200, 200])
    const { data } = await gateway.read<{ data: { token_id: string; playground: string }[] }>(
      `/tokens?project_id=${project_id}`,
    )
    expect(data).toHaveLength(1)
    const { token_id = '', playground = '' } = data[0] ?? {}
    expect(await refusal(await gateway.admin(`/tokens/${token_id}/rotate`, { method: 'POST' }))).toEqual([
      403,
      'permission_denied',
    ])
    const moved = await gateway.admin(`/tokens/${token_id}`, { method: 'PATCH', json: { project_id: null } })
    expect(await refusal(moved)).toEqual([403, 'permission_denied'])
    const key = await gateway.call('/v1/models', {
      headers: { authorization: `Bearer playground:${project_id}:${playground}` },
    })
    expect(key.status).toBe(401)
    await gateway.read(`/tokens/${token_id}`, { method: 'DELETE' })
    expect(await refusal(await call('/v1/chat/completions', { json: CHAT }))).toEqual([403, 'permission_denied'])
  })
})
