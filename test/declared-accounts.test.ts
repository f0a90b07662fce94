/** Projects and API tokens in the configuration file: created, changed and revoked with it, and by nobody else. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as check } from '../src/cli/commands/check.ts'
import type { Config } from '../src/config/config.ts'
import type { Project, Token } from '../src/spec/token.ts'
import { refusal, startAdminGateway } from './kit/admin.ts'
import { configOf } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const SECRET = 'sk-declared-0123456789abcdef'
const OTHER = 'sk-declared-another-0123456789'
const QUESTION = { model: 'sandbox/moderation', input: 'hi' }
const FILE: Pick<Config, 'projects' | 'api_tokens'> = {
  projects: { search: { labels: { team: 'blue' }, rate_limits: { requests_per_minute: 3 } } },
  api_tokens: { ci: { secret: SECRET, project: 'search', models: ['sandbox/*'] } },
}

type Settings = Parameters<typeof startAdminGateway>[0]
type Audit = { data: { action: string; object_type: string; actor: string; after: unknown }[] }

function newStore(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-declared-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  return `sqlite:${join(directory, 'gatehouse.db')}`
}

async function start(settings: Settings = FILE, store_url = newStore()) {
  const gateway = await startAdminGateway(settings, { store_url })
  let isOpen = true
  const stop = async () => {
    if (isOpen) await gateway[Symbol.asyncDispose]()
    isOpen = false
  }
  closing.push(stop)
  const call = async (secret: string) => {
    const headers = { authorization: `Bearer ${secret}` }
    const response = await gateway.call('/v1/moderations', { json: QUESTION, headers })
    await response.text()
    return response.status
  }
  return {
    gateway,
    stop,
    call,
    reload: (next: Settings) =>
      gateway.instance.reload(configOf({ admin_token: 'owner-token-of-the-environment', ...next })),
    tokens: async () => (await gateway.read<{ data: Token[] }>('/tokens')).data,
    projects: async () => (await gateway.read<{ data: Project[] }>('/projects')).data,
    changes: async () =>
      (await gateway.read<Audit>('/audit')).data.filter(({ object_type }) => /^(token|project)$/.test(object_type)),
  }
}

describe('what the file declares', () => {
  test('is there after the start, works, is shown as declared, and needs no first token', async () => {
    const { gateway, call, tokens, projects } = await start()
    expect(gateway.instance.first_token).toBeUndefined()
    expect([await call(SECRET), await call(SECRET), await call(SECRET), await call(SECRET)]).toEqual([
      200, 200, 200, 429,
    ])
    const [project] = await projects()
    expect(project).toMatchObject({ name: 'search', labels: { team: 'blue' }, declared: true })
    const { project_id } = project as Project
    expect(await tokens()).toMatchObject([{ name: 'ci', project_id, models: ['sandbox/*'], declared: true }])
    expect(JSON.stringify(await tokens())).not.toContain(SECRET)
  })

  test('is written once: a second start and a reload of the same file change and record nothing', async () => {
    const store_url = newStore()
    const first = await start(FILE, store_url)
    const before = [await first.tokens(), await first.projects(), await first.changes()]
    expect((await first.changes()).map(({ action }) => action).sort()).toEqual(['project.create', 'token.create'])
    await first.reload(FILE)
    expect([await first.tokens(), await first.projects(), await first.changes()]).toEqual(before)
    await first.stop()
    const second = await start(FILE, store_url)
    expect([await second.tokens(), await second.projects(), await second.changes()]).toEqual(before)
  })

  test('changes with a reload: settings that left the file are undone, and a new secret replaces the old one', async () => {
    const { call, reload, tokens, projects, changes } = await start()
    const [before] = await tokens()
    await reload({ projects: { search: {} }, api_tokens: { ci: { secret: OTHER, project: 'search' } } })
    expect([await call(SECRET), await call(OTHER)]).toEqual([401, 200])
    expect(await projects()).toMatchObject([{ labels: {}, rate_limits: {} }])
    expect(await tokens()).toMatchObject([{ token_id: before?.token_id, models: ['*'] }])
    expect((await changes()).map(({ action }) => action)).toEqual([
      'token.update',
      'project.update',
      'token.create',
      'project.create',
    ])
  })

  test('cannot be changed over the admin API, which says where it is declared', async () => {
    const { gateway, tokens, projects, call } = await start()
    const [token] = await tokens()
    const [project] = await projects()
    const token_path = `/tokens/${token?.token_id}`
    const project_path = `/projects/${project?.project_id}`
    const edits = [
      [token_path, 'PATCH', { models: ['*'] }],
      [`${token_path}/rotate`, 'POST', {}],
      [token_path, 'DELETE', undefined],
      [project_path, 'PATCH', { disabled: true }],
      [project_path, 'DELETE', undefined],
    ] as const
    for (const [path, method, json] of edits) {
      const response = await gateway.admin(path, { method, ...(json && { json }) })
      expect([path, method, response.status]).toEqual([path, method, 403])
      const { error } = (await response.json()) as { error: { message: string } }
      expect(error.message).toContain(path === project_path ? '(projects.search)' : '(api_tokens.ci)')
    }
    expect(await call(SECRET)).toBe(200)
  })

  test('adopts a project and a token of the same name, with their ids', async () => {
    const { gateway, reload, tokens, projects, call } = await start({})
    const post = (path: string, json: object) => gateway.admin(path, { method: 'POST', json })
    const { project_id } = await (await post('/projects', { name: 'search', models: ['no/*'] })).json()
    const { token_id, secret } = await (await post('/tokens', { name: 'ci' })).json()
    await reload(FILE)
    expect(await projects()).toMatchObject([{ project_id, models: ['*'], declared: true }])
    expect((await tokens()).find(({ name }) => name === 'ci')).toMatchObject({ token_id, project_id, declared: true })
    expect([await call(secret), await call(SECRET)]).toEqual([401, 200])
  })

  test('adopts no token of another project, and lets no earlier secret of an adopted one be used', async () => {
    const { gateway, reload, call } = await start({})
    const post = async (path: string, json: object) => (await gateway.admin(path, { method: 'POST', json })).json()
    const { project_id } = await post('/projects', { name: 'theirs' })
    const theirs = await post('/tokens', { name: 'ci', project_id })
    const ours = await post('/tokens', { name: 'other' })
    const rotated = await post(`/tokens/${ours.token_id}/rotate`, { overlap_seconds: 3600 })
    expect([await call(theirs.secret), await call(ours.secret), await call(rotated.secret)]).toEqual([200, 200, 200])
    const other = { secret: OTHER, project: 'search' }
    await reload({ ...FILE, api_tokens: { ...FILE.api_tokens, other } })
    expect(await call(theirs.secret)).toBe(200)
    expect([await call(ours.secret), await call(rotated.secret)]).toEqual([401, 401])
    const { data } = await gateway.read<{ data: Token[] }>(`/tokens?project_id=${project_id}`)
    expect(data.map(({ token_id }) => token_id)).toEqual([theirs.token_id])
  })

  test('is revoked when a token leaves the file, and valid again when it is back; a project becomes one of the API', async () => {
    const { gateway, reload, tokens, projects, call } = await start()
    const project_id = (await projects())[0]?.project_id
    await reload({})
    expect(await call(SECRET)).toBe(401)
    expect(await tokens()).toMatchObject([{ name: 'ci', disabled: true }])
    expect(await projects()).toMatchObject([{ project_id, name: 'search' }])
    expect((await projects())[0]?.declared).toBeUndefined()
    const edit = await gateway.admin(`/projects/${project_id}`, { method: 'PATCH', json: { labels: {} } })
    expect(edit.status).toBe(200)
    await reload(FILE)
    expect([await call(SECRET), (await tokens()).length]).toEqual([200, 1])
  })

  test('is refused as a whole where one of it is wrong', async () => {
    const { reload, changes, call } = await start()
    const before = await changes()
    const wrong = { ...FILE, projects: { ...FILE.projects, other: { allowed_addresses: ['nowhere'] } } }
    await expect(reload(wrong)).rejects.toThrow('projects.other.allowed_addresses')
    expect([await changes(), await call(SECRET)]).toEqual([before, 200])
  })

  test('is refused by `gatehouse check` and the admin API where a start would refuse it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-declared-check-'))
    closing.push(() => rmSync(directory, { recursive: true }))
    const text = JSON.stringify({
      projects: { other: { allowed_addresses: ['nowhere'] }, '': {}, ' search': {} },
      api_tokens: { ci: { secret: SECRET, labels: { te$m: 'a' } } },
    })
    writeFileSync(join(directory, 'gatehouse.yaml'), text)
    const { terminal, printed } = collectingTerminal({ cwd: directory, environment: {} })
    expect(await check([], terminal)).toBe(1)
    const problems = [
      /projects\.other\.allowed_addresses\[0\]: found "nowhere", must be/,
      /projects\.""\.name: must not be empty\.$/,
      /projects\." search": the name must not begin or end with white space\.$/,
      /api_tokens\.ci\.labels: "te\$m" must be 1 to 63 letters/,
    ]
    const lines = printed.err.split('\n')
    for (const [at, problem] of problems.entries()) expect(lines[at]).toMatch(problem)
    expect(lines.slice(4)).toEqual(['', 'The configuration is not valid: 4 problems.', ''])
    const { gateway } = await start()
    const found = await gateway.read<{ problems: { message: string }[] }>('/config/validate', { json: { text } })
    for (const [at, problem] of problems.entries()) expect(found.problems[at]?.message).toMatch(problem)
  })

  test('leaves the first token to the environment where that gives one', async () => {
    const bootstrap_token = 'sk-bootstrap-0123456789abcdef'
    const { gateway, call } = await start({ ...FILE, bootstrap_token })
    expect(gateway.instance.first_token?.token.name).toBe('first token')
    expect([await call(bootstrap_token), await call(SECRET)]).toEqual([200, 200])
  })

  test('may be applied by two gateways at once', async () => {
    const store_url = newStore()
    const [one, other] = [
      await start({ bootstrap_token: 'sk-bootstrap-0123456789abcdef' }, store_url),
      await start({}, store_url),
    ]
    await Promise.all([one.reload(FILE), other.reload(FILE)])
    expect([(await one.tokens()).length, (await one.projects()).length]).toEqual([2, 1])
    expect(await other.tokens()).toEqual(await one.tokens())
  })

  test('hides the rights of others: a wrong project path is not found', async () => {
    const { gateway } = await start()
    expect(await refusal(await gateway.admin('/projects/proj_none', { method: 'DELETE' }))).toEqual([
      404,
      'object_not_found',
    ])
  })
})

describe('an admin token of the file', () => {
  const LEAD = 'admin-lead-0123456789abcdef'
  const VIEWER = 'admin-viewer-0123456789abcdef'
  const WITH_ADMINS = {
    projects: FILE.projects,
    admin_tokens: {
      lead: { role: 'project_admin', project: 'search', secret: LEAD },
      dashboard: { role: 'viewer', secret: VIEWER },
    },
  } as const
  type Listed = { data: { admin_token_id: string; name: string; role: string; disabled: boolean; declared: boolean }[] }
  const listed = async ({ gateway }: Awaited<ReturnType<typeof start>>) =>
    (await gateway.read<Listed>('/admin-tokens')).data
  const events = async ({ gateway }: Awaited<ReturnType<typeof start>>) =>
    (await gateway.read<Audit>('/audit')).data
      .filter(({ object_type }) => object_type === 'admin_token')
      .map(({ action, actor }) => `${action} by ${actor}`)

  test('works with its role and in its project, and is written once', async () => {
    const store_url = newStore()
    const first = await start(WITH_ADMINS, store_url)
    const me = async (as: string) => first.gateway.read<Record<string, unknown>>('/me', { as })
    const [project] = await first.projects()
    expect(await me(LEAD)).toMatchObject({ role: 'project_admin', project_id: project?.project_id })
    expect(await me(VIEWER)).toMatchObject({ role: 'viewer', project_id: null })
    const before = await listed(first)
    expect(before.map(({ name, declared }) => [name, declared]).sort()).toEqual([
      ['dashboard', true],
      ['lead', true],
    ])
    expect(JSON.stringify(before)).not.toContain(LEAD)
    await first.reload(WITH_ADMINS)
    await first.stop()
    const second = await start(WITH_ADMINS, store_url)
    expect((await listed(second)).map(({ admin_token_id }) => admin_token_id)).toEqual(
      before.map(({ admin_token_id }) => admin_token_id),
    )
    expect(await events(second)).toEqual(['admin_token.create by gateway', 'admin_token.create by gateway'])
  })

  test('changes with the file, is revoked when it leaves it, and is valid again when it is back', async () => {
    const running = await start(WITH_ADMINS)
    const status = async (as: string) => (await running.gateway.admin('/me', { as })).status
    const { lead, dashboard } = WITH_ADMINS.admin_tokens
    await running.reload({ ...WITH_ADMINS, admin_tokens: { lead, dashboard: { ...dashboard, role: 'operator' } } })
    expect((await running.gateway.read('/me', { as: VIEWER })).role).toBe('operator')
    await running.reload({ ...WITH_ADMINS, admin_tokens: { lead } })
    expect([await status(VIEWER), await status(LEAD)]).toEqual([401, 200])
    await running.reload(WITH_ADMINS)
    expect([await status(VIEWER), (await listed(running)).length]).toEqual([200, 2])
    expect((await events(running)).slice(0, 3)).toEqual([
      'admin_token.update by gateway',
      'admin_token.revoke by gateway',
      'admin_token.update by gateway',
    ])
  })

  test('is revoked by nobody else', async () => {
    const running = await start(WITH_ADMINS)
    for (const { admin_token_id, name } of await listed(running)) {
      const response = await running.gateway.admin(`/admin-tokens/${admin_token_id}`, { method: 'DELETE' })
      expect(response.status).toBe(403)
      expect((await response.json()).error.message).toContain(`(admin_tokens.${name})`)
    }
  })

  test('may be declared by two gateways at once', async () => {
    const store_url = newStore()
    const [one, other] = [await start({}, store_url), await start({}, store_url)]
    await Promise.all([one.reload(WITH_ADMINS), other.reload(WITH_ADMINS)])
    expect((await listed(one)).length).toBe(2)
    expect(await listed(other)).toEqual(await listed(one))
  })
})
