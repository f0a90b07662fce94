/** `gatehouse target` on a running gateway and on its store, and the requests of the admin API that need no body. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/target.ts'
import { openStore } from '../src/store/open-store.ts'
import { type AdminGateway, OWNER, startAdminGateway } from './kit/admin.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { failure, startVendor, type Vendor, whole } from './kit/vendor.ts'

const LIST = whole({ object: 'list', data: [{ id: 'large', object: 'model' }] })

let directory: string
let vendor: Vendor
let gateway: AdminGateway
let server: ReturnType<typeof Bun.serve>

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-cli-target-'))
  vendor = startVendor()
  const keys = [{ key: 'first-key-0001' }, { key: 'second-key-0002', name: 'spare' }]
  gateway = await startAdminGateway({
    providers: { acme: { base_url: vendor.url, keys } },
    models: { 'team/default': { targets: [{ provider: 'acme', model: 'large' }] } },
  })
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => gateway.instance.fetch(request) })
})
afterEach(async () => {
  await server.stop(true)
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
  await rm(directory, { recursive: true, force: true })
})

async function target(line: string, environment: Record<string, string> = onGateway()) {
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const code = await run(line.split(' '), terminal).catch((error: Error) => error.message)
  return { code, out: printed.out }
}
const onGateway = () => ({ GATEHOUSE_URL: `http://127.0.0.1:${server.port}`, GATEHOUSE_ADMIN_TOKEN: OWNER })

const QUESTION = { model: 'team/default', messages: [{ role: 'user', content: 'hi' }] }
/** The status of a call, and the keys that the vendor got. */
async function call() {
  const before = vendor.requests.length
  const { status } = await gateway.chat(QUESTION)
  return [status, ...vendor.requests.slice(before).map(({ headers }) => headers.authorization)]
}

describe('gatehouse target', () => {
  it('takes a target out of service and puts it back', async () => {
    expect(await target('drain acme/large')).toEqual({ code: 0, out: 'acme/large is drained: it gets no new calls.\n' })
    expect(await call()).toEqual([503])
    const { out } = await target('list')
    expect(out.split('\n')[1]).toMatch(/^target {2}acme\/large {2}drained {2}- {7}environment {2}2026-/)
    expect(await target('restore acme/large')).toEqual({ code: 0, out: 'acme/large is in service, as configured.\n' })
    expect((await call())[0]).toBe(200)
    expect(await target('list')).toEqual({ code: 0, out: 'Everything is in service, as configured.\n' })
    const { data } = await gateway.read<{ data: { action: string; object_id: string }[] }>('/audit?limit=2')
    expect(data.map(({ action, object_id }) => [action, object_id])).toEqual([
      ['override.remove', 'acme/large'],
      ['override.set', 'acme/large'],
    ])
  })

  it('takes a key, a provider or a target with one key out of service', async () => {
    expect((await target('disable acme#1')).out).toStartWith('acme#1 is disabled')
    expect(await call()).toEqual([200, 'Bearer second-key-0002'])
    expect((await target('disable acme/large#spare')).code).toBe(0)
    expect(await call()).toEqual([503])
    expect((await target('restore acme#1')).code).toBe(0)
    expect(await call()).toEqual([200, 'Bearer first-key-0001'])
    expect((await target('drain acme')).code).toBe(0)
    expect(await call()).toEqual([503])
    const { overrides } = JSON.parse((await target('list --json')).out)
    expect(overrides.map(({ kind, name, state }: Record<string, string>) => [kind, name, state])).toEqual([
      ['provider', 'acme', 'drained'],
      ['target', 'acme/large#spare', 'disabled'],
    ])
  })

  it('keeps a weight that was set', async () => {
    await gateway.admin('/overrides/provider/acme', { method: 'PATCH', json: { weight: 5, state: 'drained' } })
    expect(JSON.parse((await target('restore acme --json')).out)).toMatchObject({ weight: 5, state: null })
  })

  it.each([
    ['drain acme/none', 'There is no target "acme/none".'],
    ['drain none', 'There is no provider "none".'],
    ['restore acme', 'Nothing is set for "acme". See: gatehouse target list'],
    ['test none', 'There is no provider "none".'],
    ['test acme#none', 'There is no key of acme "none".'],
    ['reset acme/none', 'There is no target of acme "acme/none".'],
    ['reset acme#1', 'needs a provider or a target, not a key: acme#1'],
  ])('explains what is wrong with: %s', async (line, message) => {
    expect((await target(line)).code).toBe(message)
  })

  it('tests a provider, or one of its keys', async () => {
    vendor.otherwise((wire) => (wire.request.headers.authorization?.endsWith('0002') ? failure(401) : LIST)(wire))
    const tested = await target('test acme')
    expect([tested.code, tested.out.split('\n')[1]]).toEqual([0, expect.stringContaining('acme#1    chatcompat  ok')])
    const refused = await target('test acme#spare --json')
    expect([refused.code, JSON.parse(refused.out)]).toMatchObject([1, { key: 'spare', upstream_status: 401 }])
  })

  it('resets the breakers of a provider, or of one target', async () => {
    await call()
    expect((await target('reset acme/large#1')).out).toBe('1 target of acme had a state, which is forgotten.\n')
    await call()
    await call()
    expect((await target('reset acme --json')).out).toBe('{"reset":2}\n')
  })

  it('works on the store, but for what only a running gateway can do', async () => {
    const environment = { GATEHOUSE_DATA_DIR: directory }
    const url = `sqlite:${directory}/gatehouse.db`
    await (await openStore({ url })).close()
    expect((await target('drain acme/large', environment)).out).toContain('see it within a second')
    expect((await target('list', environment)).out).toContain('acme/large')
    expect((await target('restore acme', environment)).code).toContain('Nothing is set')
    expect((await target('restore acme/large', environment)).code).toBe(0)
    const store = await openStore({ url })
    const { rows } = await store.audit.page({ limit: 10 })
    await store.close()
    expect(rows.map(({ action }) => action)).toEqual(['override.remove', 'override.set'])
    expect((await target('test acme', environment)).code).toContain('needs a running gateway: --url')
    expect((await target('reset acme', environment)).code).toContain('needs a running gateway: --url')
  })
})

describe('a request of the admin API whose members are all optional', () => {
  const PATHS = ['/providers/acme/test', '/providers/acme/reset', '/cache/purge'] as const
  const post = (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${OWNER}`, ...init.headers }
    return fetch(`${onGateway().GATEHOUSE_URL}/admin/v1${path}`, { method: 'POST', ...init, headers })
  }

  it.each([...PATHS])('%s needs no body', async (path) => {
    expect((await post(path)).status).toBe(200)
    expect((await post(path, { headers: { 'content-type': 'application/json' } })).status).toBe(200)
  })

  it.each([...PATHS])('%s refuses a body of another type', async (path) => {
    expect((await post(path, { body: 'key=1', headers: { 'content-type': 'text/plain' } })).status).toBe(415)
  })

  it('needs no body for a task to be resumed', async () => {
    expect((await post('/tasks/task_none/resume')).status).toBe(404)
  })
})
