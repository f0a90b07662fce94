/** Control over the admin API: models, providers, overrides, test calls, explanation and configuration. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { failure, startVendor, type Vendor } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function vendor(): Vendor {
  const started = startVendor()
  closing.push(() => started.stop())
  return started
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-control-'))
  closing.push(() => rmSync(path, { recursive: true }))
  return path
}

type Settings = Parameters<typeof startAdminGateway>[0]

async function start(
  settings: Settings = {},
  parts: Parameters<typeof startAdminGateway>[1] = {},
): Promise<AdminGateway> {
  const gateway = await startAdminGateway(settings, parts)
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const KEYS = [
  { key: 'first-key-0001', name: 'main' },
  { key: 'second-key-0002', name: 'spare', weight: 3 },
]
const QUESTION = { model: 'team/fast', messages: [{ role: 'user', content: 'hi' }] }

/** Two providers for one model, the first with two keys. */
function twoProviders(): { one: Vendor; other: Vendor; settings: Settings } {
  const [one, other] = [vendor(), vendor()]
  return {
    one,
    other,
    settings: {
      providers: { one: { base_url: one.url, keys: KEYS }, other: { base_url: other.url, key: 'third-key-0003' } },
      models: {
        'team/fast': {
          targets: [
            { provider: 'one', model: 'fast' },
            { provider: 'other', model: 'fast' },
          ],
        },
      },
    },
  }
}

const set = (gateway: AdminGateway, path: string, json: unknown) =>
  gateway.admin(`/overrides/${path}`, { method: 'PATCH', json })

describe('runtime overrides over the admin API', () => {
  test('drain a provider from the next call on, until they are removed', async () => {
    const { one, other, settings } = twoProviders()
    const gateway = await start(settings)
    await gateway.chat(QUESTION)
    expect(await (await set(gateway, 'provider/one', { state: 'drained' })).json()).toMatchObject({
      kind: 'provider',
      name: 'one',
      state: 'drained',
      weight: null,
      set_by: 'environment',
    })
    await gateway.chat(QUESTION)
    expect([one.requests.length, other.requests.length]).toEqual([1, 1])
    const { data } = await gateway.read<{ data: unknown[] }>('/overrides')
    expect(data).toHaveLength(1)
    expect((await gateway.admin('/overrides/provider/one', { method: 'DELETE' })).status).toBe(200)
    const audit = await gateway.read<{ data: { action: string; object_id: string; actor: string }[] }>('/audit')
    expect(audit.data.slice(0, 2).map(({ action, object_id, actor }) => [action, object_id, actor])).toEqual([
      ['override.remove', 'one', 'environment'],
      ['override.set', 'one', 'environment'],
    ])
    await gateway.chat(QUESTION)
    expect([one.requests.length, other.requests.length]).toEqual([2, 1])
    expect(await refusal(await gateway.admin('/overrides/provider/one', { method: 'DELETE' }))).toEqual([
      404,
      'object_not_found',
    ])
  })

  test('disable a model, whose fallbacks serve it then', async () => {
    const { settings, other } = twoProviders()
    const gateway = await start({
      ...settings,
      models: {
        'team/fast': { targets: [{ provider: 'one', model: 'fast' }], fallbacks: ['team/other'] },
        'team/other': { targets: [{ provider: 'other', model: 'fast' }] },
      },
    })
    expect((await set(gateway, 'model/team/fast', { state: 'disabled' })).status).toBe(200)
    const response = await gateway.chat(QUESTION)
    expect([response.status, other.requests.length]).toEqual([200, 1])
    expect(await gateway.read('/models/team/fast')).toMatchObject({ is_disabled: true })
    await set(gateway, 'model/team/other', { state: 'disabled' })
    expect(await refusal(await gateway.chat(QUESTION))).toEqual([503, 'no_available_channel'])
  })

  test('name one key, and one target with one key', async () => {
    const { one, settings } = twoProviders()
    const gateway = await start(settings)
    await set(gateway, 'key/one%23spare', { state: 'drained' })
    for (let calls = 0; calls < 3; calls++) await gateway.chat(QUESTION)
    expect(new Set(one.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer first-key-0001']),
    )
    expect((await set(gateway, 'target/one/fast%23main', { weight: 2 })).status).toBe(200)
    const model = await gateway.read<{ targets: { id: string; weight: number; weight_from: string }[] }>(
      '/models/team/fast',
    )
    expect(model.targets.map(({ id, weight, weight_from }) => [id, weight, weight_from])).toEqual([
      ['one/fast#main', 2, 'override'],
      ['one/fast#spare', 0, 'override'],
      ['other/fast', 1, 'configuration'],
    ])
  })

  test('refuse what is not there, and what cannot be set', async () => {
    const { settings } = twoProviders()
    const gateway = await start(settings)
    for (const path of ['provider/none', 'key/one%23none', 'target/one/slow', 'model/team/none', 'planet/x']) {
      expect(await refusal(await set(gateway, path, { state: 'drained' }))).toEqual([404, 'object_not_found'])
    }
    expect(await refusal(await set(gateway, 'model/team/fast', { state: 'drained' }))).toEqual([400, 'invalid_value'])
    expect(await refusal(await set(gateway, 'model/team/fast', { weight: 1 }))).toEqual([400, 'invalid_value'])
    expect((await set(gateway, 'provider/one', { weight: -1 })).status).toBe(400)
    expect((await set(gateway, 'provider/one', { weigth: 1 })).status).toBe(400)
  })

  test('honour If-Match', async () => {
    const { settings } = twoProviders()
    const gateway = await start(settings)
    const etag = (await set(gateway, 'provider/one', { weight: 2 })).headers.get('etag') ?? ''
    await set(gateway, 'provider/one', { weight: 3 })
    const headers = { 'if-match': etag }
    const late = await gateway.admin('/overrides/provider/one', { method: 'PATCH', json: { weight: 4 }, headers })
    expect(await refusal(late)).toEqual([412, 'precondition_failed'])
  })

  test('survive a restart, and take effect in another process within a second', async () => {
    const { settings, one, other } = twoProviders()
    const store_url = `sqlite:${join(directory(), 'gatehouse.db')}`
    const first = await start(settings, { store_url })
    await set(first, 'provider/one', { state: 'drained' })
    const bootstrap = { ...settings, bootstrap_token: 'a-token-for-both-gateways' }
    const second = await start(bootstrap, { store_url })
    await second.chat(QUESTION, { headers: { authorization: `Bearer ${first.token}` } })
    expect([one.requests.length, other.requests.length]).toEqual([0, 1])
    await set(first, 'provider/one', { state: null })
    second.clock.advance(999)
    for (let turns = 0; turns < 50; turns++) await Bun.sleep(0)
    await second.chat(QUESTION, { headers: { authorization: `Bearer ${first.token}` } })
    expect([one.requests.length, other.requests.length]).toEqual([1, 1])
  })
})

describe('models and providers of the admin API', () => {
  test('show targets with their health, and the reset of a breaker', async () => {
    const { one, settings } = twoProviders()
    const gateway = await start(settings)
    for (let calls = 0; calls < 2; calls++) one.answer(failure(401, { message: 'Bad key first-key-0001' }))
    await gateway.chat(QUESTION)
    const shown = async () => {
      const { targets } = await gateway.read<{ targets: { health: Record<string, unknown> }[] }>('/models/team/fast')
      return targets.map(({ health }) => health.state)
    }
    expect(await shown()).toEqual(['key refused', 'key refused', 'available'])
    const model = await gateway.read('/models/team/fast')
    expect(JSON.stringify(model)).not.toContain('first-key-0001')
    expect(model).toMatchObject({
      targets: [{ health: { last_error: { code: 'upstream_auth', upstream_status: 401 }, open_calls: 0 } }, {}, {}],
    })
    const reset = (json: unknown) => gateway.read('/providers/one/reset', { json })
    expect(await reset({ target: 'one/fast#main' })).toEqual({ reset: 1 })
    expect(await shown()).toEqual(['available', 'key refused', 'available'])
    expect(await reset({})).toEqual({ reset: 2 })
    expect(await shown()).toEqual(['available', 'available', 'available'])
    const wrong = await gateway.admin('/providers/one/reset', { json: { target: 'other/fast' } })
    expect(await refusal(wrong)).toEqual([404, 'object_not_found'])
  })

  test('are listed in pages, without secrets', async () => {
    const { settings } = twoProviders()
    const gateway = await start({ ...settings, sandbox: false })
    const { data, next_cursor } = await gateway.read<{ data: { id: string }[]; next_cursor: string }>(
      '/providers?limit=1',
    )
    expect(data.map(({ id }) => id)).toEqual(['one'])
    const rest = await gateway.read<{ data: { id: string }[]; next_cursor: null }>(`/providers?cursor=${next_cursor}`)
    expect([rest.data.map(({ id }) => id), rest.next_cursor]).toEqual([['other'], null])
    expect(data[0]).toMatchObject({
      kind: 'chatcompat',
      found_by: 'file',
      models: 1,
      state: null,
      keys: [
        { name: 'main', weight: 1, models: null, state: null },
        { name: 'spare', weight: 3 },
      ],
    })
    const models = await gateway.read<{ data: { id: string }[] }>('/models?provider=other')
    expect(models.data.map(({ id }) => id)).toEqual(['team/fast'])
    for (const path of ['/providers', '/providers/one', '/models', '/models/team/fast', '/config']) {
      expect(JSON.stringify(await gateway.read(path))).not.toMatch(/key-000/)
    }
    expect(await refusal(await gateway.admin('/providers/none'))).toEqual([404, 'object_not_found'])
    expect(await refusal(await gateway.admin('/models/none'))).toEqual([404, 'object_not_found'])
  })

  test('test a provider with each of its keys', async () => {
    const { one, settings } = twoProviders()
    const gateway = await start(settings)
    const ask = (json: unknown) => gateway.read('/providers/one/test', { json })
    expect(await ask({})).toMatchObject({ provider: 'one', result: 'ok', models: 1, upstream_status: 200 })
    expect(await ask({ key: 'spare' })).toMatchObject({ result: 'ok' })
    expect(one.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first-key-0001',
      'Bearer second-key-0002',
    ])
    one.answer(failure(401, { message: 'Bad key' }))
    expect(await ask({})).toMatchObject({ result: 'failed', upstream_status: 401 })
    expect(await refusal(await gateway.admin('/providers/one/test', { json: { key: 'none' } }))).toEqual([
      404,
      'object_not_found',
    ])
  })

  test('explain how a request would be routed', async () => {
    const { settings } = twoProviders()
    const gateway = await start(settings)
    await set(gateway, 'provider/one', { state: 'drained' })
    const explained = await gateway.read<{ targets: { target: string; order: number | null; reason?: string }[] }>(
      '/routing/explain',
      { json: { model: 'team/fast' } },
    )
    expect(explained.targets.map(({ target, order, reason }) => [target, order, reason])).toEqual([
      ['one/fast', null, 'drained'],
      ['one/fast', null, 'drained'],
      ['other/fast', 1, undefined],
    ])
    expect(await refusal(await gateway.admin('/routing/explain', { json: { model: 'none' } }))).toEqual([
      404,
      'model_not_found',
    ])
  })
})

test('budgets are listed once a call has counted towards them, in pages', async () => {
  const { settings } = twoProviders()
  const prices = { input: 1, output: 1 }
  const targets = [{ provider: 'one', model: 'fast' }]
  const budgets = [
    { amount: 5, window: 'month' as const },
    { amount: 9, window: 'total' as const },
  ]
  const gateway = await start({ ...settings, budgets, models: { 'team/fast': { targets, prices } } })
  expect(await gateway.read('/budgets')).toEqual({ data: [], next_cursor: null })
  expect((await gateway.chat(QUESTION)).status).toBe(200)
  const first = await gateway.read<{ data: object[]; next_cursor: string }>('/budgets?limit=1')
  const second = await gateway.read<{ data: object[]; next_cursor: null }>(`/budgets?cursor=${first.next_cursor}`)
  expect([first.data, second.data]).toMatchObject([
    [{ scope: 'installation', owner: 'the installation', window: 'month', amount: 5 }],
    [{ scope: 'installation', amount: 9, window_end: null }],
  ])
  expect(second.next_cursor).toBeNull()
})

test('budgets of a project are those of itself and of its tokens, and all that its admin sees', async () => {
  const { settings } = twoProviders()
  const models = { 'team/fast': { targets: [{ provider: 'one', model: 'fast' }], prices: { input: 1, output: 1 } } }
  const gateway = await start({ ...settings, models })
  const made = async (name: string) => {
    const budgets = [{ amount: 5, window: 'month', soft: true }]
    const { project_id } = await gateway.read<{ project_id: string }>('/projects', { json: { name, budgets } })
    const token = await gateway.read<{ secret: string }>('/tokens', { json: { name, project_id, budgets } })
    const headers = { authorization: `Bearer ${token.secret}` }
    expect((await gateway.call('/v1/chat/completions', { headers, json: QUESTION })).status).toBe(200)
    return project_id
  }
  const [shop] = [await made('shop'), await made('blog')]
  const lead = { name: 'lead', role: 'project_admin', project_id: shop }
  const { secret } = await gateway.read<{ secret: string }>('/admin-tokens', { json: lead })
  type Listed = { data: { owner: string; project_id: string; amount: number; soft: boolean }[] }
  const owned = await gateway.read<Listed>(`/budgets?project_id=${shop}`)
  expect(owned.data.map(({ owner, project_id, amount, soft }) => [owner, project_id, amount, soft])).toEqual([
    ['the project "shop"', shop, 5, true],
    ['the token "shop"', shop, 5, true],
  ])
  expect(await gateway.read('/budgets', { as: secret })).toEqual(owned)
  expect((await gateway.read<Listed>('/budgets?project_id=proj_other', { as: secret })).data).toEqual([])
  expect((await gateway.read<Listed>('/budgets')).data).toHaveLength(4)
})

describe('the configuration of the admin API', () => {
  const TEXT = 'sandbox: true\nserver:\n  port: 9000\n'

  async function withFile() {
    const file = join(directory(), 'gatehouse.yaml')
    writeFileSync(file, TEXT)
    const gateway = await start({ file, server: { port: 9000 } })
    return { gateway, file }
  }

  test('is shown with origins, and filtered', async () => {
    const { gateway, file } = await withFile()
    const { data } = await gateway.read<{ data: unknown[] }>('/config?path=server.&from=file')
    expect(data).toEqual([{ path: 'server.port', value: 9000, source: { from: 'file', file, line: 3 } }])
    const page = await gateway.read<{ data: unknown[]; next_cursor: string }>('/config?limit=5')
    expect(page.data).toHaveLength(5)
    const next = await gateway.read<{ data: unknown[] }>(`/config?limit=5&cursor=${page.next_cursor}`)
    expect(next.data[0]).not.toEqual(page.data[4])
  })

  test('is validated, compared and applied', async () => {
    const { gateway, file } = await withFile()
    const next = TEXT.replace('9000', '9001')
    const post = (path: string, text: string) => gateway.admin(`/config/${path}`, { json: { text } })
    expect(await (await post('validate', next)).json()).toEqual({ valid: true, problems: [] })
    expect(await (await post('validate', 'server: { port: many }')).json()).toMatchObject({
      valid: false,
      problems: [{ line: 1, path: 'server.port' }],
    })
    const changes = [{ path: 'server.port', kind: 'changed', before: 9000, after: 9001 }]
    expect(await (await post('diff', next)).json()).toEqual({ changes, needs_restart: ['server.port'], emptied: [] })
    const wrong = await post('apply', 'server: { port: many }')
    expect(await refusal(wrong)).toEqual([400, 'invalid_value'])
    expect(readFileSync(file, 'utf8')).toBe(TEXT)
    expect(await (await post('apply', next)).json()).toMatchObject({
      written: true,
      file,
      backup: `${file}.bak`,
      changes,
    })
    expect(readFileSync(file, 'utf8')).toBe(next)
    expect(await (await post('apply', next)).json()).toMatchObject({ written: false, changes: [] })
  })
})

describe('usage and tasks', () => {
  test('usage is grouped as asked, as JSON and as CSV, and a project_admin sees its own', async () => {
    const one = vendor()
    const gateway = await start({
      providers: { one: { base_url: one.url, key: 'first-key-0001' } },
      models: { 'team/fast': { prices: { input: 1, output: 2 }, targets: [{ provider: 'one', model: 'fast' }] } },
    })
    const created = await (await gateway.admin('/projects', { json: { name: 'team' } })).json()
    const issued = await (
      await gateway.admin('/tokens', { json: { name: 'a', project_id: created.project_id } })
    ).json()
    for (const token of [gateway.token, issued.secret, issued.secret]) {
      await gateway.call('/v1/chat/completions', { json: QUESTION, headers: { authorization: `Bearer ${token}` } })
    }
    gateway.clock.advance(1_000)
    type Usage = { data: Record<string, unknown>[] }
    const until = async (path: string, as?: string): Promise<Usage> => {
      for (;;) {
        const found = await gateway.read<Usage>(path, as === undefined ? {} : { as })
        if (found.data.length > 0) return found
        gateway.clock.advance(50)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const { data } = await until('/usage?by=project,model')
    expect(data.map(({ project_id, model, requests }) => [project_id, model, requests])).toEqual([
      ['', 'team/fast', 1],
      [created.project_id, 'team/fast', 2],
    ])
    const admin = await (
      await gateway.admin('/admin-tokens', {
        json: { name: 'p', role: 'project_admin', project_id: created.project_id },
      })
    ).json()
    const own = await until('/usage?by=model', admin.secret)
    expect(own.data).toMatchObject([{ model: 'team/fast', requests: 2, currency: 'USD', unknown_amounts: 0 }])
    const csv = await (await gateway.admin('/usage?by=model&format=csv')).text()
    expect(csv.split('\r\n')[0]).toStartWith('model,requests,errors,')
    expect(csv).toContain('team/fast,')
    expect(await refusal(await gateway.admin('/usage?by=colour'))).toEqual([400, 'invalid_value'])
    expect(await refusal(await gateway.admin('/usage?format=xml'))).toEqual([400, 'invalid_value'])
    expect(await refusal(await gateway.admin('/usage?from=2026-02-01&to=2026-01-01'))).toEqual([400, 'invalid_value'])
  })

  test('tasks are listed in pages, looked at without their request, and canceled once', async () => {
    const gateway = await start({ sandbox: true })
    const order = { model: 'sandbox/text-to-video', prompt: 'a secret prompt', aspect_ratio: '16:9', duration: 4 }
    const ids: string[] = []
    for (let at = 0; at < 3; at++) {
      const response = await gateway.call('/v1/video/generations', { json: order })
      ids.push((await response.json()).data.task_id)
    }
    type Page = { data: { task_id: string; status: string }[]; next_cursor: string | null }
    const first = await gateway.read<Page>('/tasks?limit=2')
    const second = await gateway.read<Page>(`/tasks?limit=2&cursor=${first.next_cursor}`)
    expect([first.data.length, second.data.length, second.next_cursor]).toEqual([2, 1, null])
    expect([...first.data, ...second.data].map(({ task_id }) => task_id).sort()).toEqual([...ids].sort())
    const videos = await gateway.read<Page>('/tasks?kind=video&model=sandbox/text-to-video&limit=2')
    expect([videos.data.length, typeof videos.next_cursor]).toEqual([2, 'string'])
    for (const filter of ['kind=3d', 'kind=image', 'model=sandbox/other'])
      expect((await gateway.read<Page>(`/tasks?${filter}`)).data).toEqual([])
    const one = await gateway.read<object>(`/tasks/${ids[0]}`)
    expect(JSON.stringify(one)).not.toContain('secret prompt')
    expect((await gateway.admin(`/tasks/${ids[0]}/cancel`, { method: 'POST' })).status).toBe(200)
    expect(await refusal(await gateway.admin('/tasks/task_none'))).toEqual([404, 'object_not_found'])
    expect(await refusal(await gateway.admin('/tasks?kind=text'))).toEqual([400, 'invalid_value'])
    expect(await refusal(await gateway.admin('/tasks?status=DONE'))).toEqual([400, 'invalid_value'])
    const audit = await gateway.read<{ data: { action: string }[] }>('/audit')
    expect(audit.data.map(({ action }) => action)).toContain('task.cancel')
  })
})

describe('who is bound to a project', () => {
  test('sees the models that the project may use, and nothing of what lies behind them', async () => {
    const { settings } = twoProviders()
    const gateway = await start(settings)
    const order = { name: 'team', models: ['team/*', 'sandbox/embedding'], families: ['chatcompat'] }
    const { project_id } = await gateway.read<{ project_id: string }>('/projects', { json: order })
    const role = { name: 'member', role: 'project_member', project_id }
    const { secret: as } = await gateway.read<{ secret: string }>('/admin-tokens', { json: role })
    const { data } = await gateway.read<{ data: { id: string }[] }>('/models?limit=200', { as })
    expect(data).toMatchObject([{ id: 'team/fast', families: ['chatcompat'], targets: [] }])
    const model = await gateway.read('/models/team/fast', { as })
    expect(model).toMatchObject({ id: 'team/fast', targets: [], settings: [], fallbacks: {} })
    expect(JSON.stringify([data, model])).not.toMatch(/first-key|"one"|other|127\.0\.0\.1/)
    expect(await refusal(await gateway.admin('/models/sandbox/general', { as }))).toEqual([404, 'object_not_found'])
    expect(await gateway.read('/models/team/fast')).toMatchObject({ targets: [{}, {}, {}] })
  })
})
