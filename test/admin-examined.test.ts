/** Regressions found by an examination of the admin API and of the request log. */
import { afterEach, describe, expect, test } from 'bun:test'
import { idempotently } from '../src/admin/routes/idempotency.ts'
import { DEFAULT_REQUEST_LOG, DEFAULT_SERVER } from '../src/config/config.ts'
import type { Context } from '../src/http/context.ts'
import { createLog } from '../src/kit/log.ts'
import { createContentsLog } from '../src/observe/requests/contents-log.ts'
import { createRequestSinks } from '../src/observe/requests/request-sinks.ts'
import type { ChatRequest } from '../src/protocols/shared/canonical.ts'
import type { RequestRow } from '../src/store/requests/request-row.ts'
import { OWNER, refusal, startAdminGateway } from './kit/admin.ts'
import { manualClock } from './kit/clock.ts'
import { configOf } from './kit/gateway.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(...given: Parameters<typeof startAdminGateway>) {
  const gateway = await startAdminGateway(...given)
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

test('a project_admin is none any more once its project was deleted', async () => {
  const gateway = await start()
  const { project_id } = await gateway.read<{ project_id: string }>('/projects', { json: { name: 'shop' } })
  const lead = { name: 'lead', role: 'project_admin', project_id }
  const { secret } = await gateway.read<{ secret: string }>('/admin-tokens', { json: lead })
  expect((await gateway.admin('/requests', { as: secret })).status).toBe(200)
  await gateway.read(`/projects/${project_id}`, { method: 'DELETE' })
  for (const path of ['/requests', '/me', '/tokens']) {
    expect([path, ...(await refusal(await gateway.admin(path, { as: secret })))]).toEqual([
      path,
      401,
      'invalid_api_key',
    ])
  }
})

test('a stream of live events ends when its reader gets other rights', async () => {
  const secret = 'admin-declared-0123456789abcdef'
  const gateway = await start({ projects: { a: {} }, admin_tokens: { lead: { role: 'viewer', secret } } })
  const response = await gateway.admin('/events?types=request', { as: secret })
  const read = response.text()
  const lead = { role: 'project_admin' as const, project: 'a', secret }
  await gateway.instance.reload(configOf({ admin_token: OWNER, projects: { a: {} }, admin_tokens: { lead } }))
  expect((await gateway.read('/me', { as: secret })).role).toBe('project_admin')
  gateway.clock.advance(10_000)
  expect(await read).not.toContain('event: request')
})

describe('an Idempotency-Key', () => {
  test('loses no response of what was carried out where it cannot be stored', async () => {
    const clock = manualClock()
    let logged = ''
    const write = (text: string) => {
      logged += text
    }
    const log = createLog({ clock, level: 'error', pretty: false, write })
    const released: string[] = []
    const keys = {
      reserve: async () => undefined,
      answer: () => Promise.reject(new Error('the store is away')),
      release: async ({ key }: { key: string }) => void released.push(key),
    }
    const parts = { keys, clock, log, secretOf: () => 'a secret', settings: DEFAULT_SERVER }
    const handle = idempotently(() => Response.json({ secret: 'of the new token' }), parts)
    const request = new Request('http://gateway/admin/v1/tokens', {
      method: 'POST',
      headers: { 'idempotency-key': 'k' },
    })
    const context = { request, request_id: 'req_1', header: () => null, signal: new AbortController().signal }
    const response = await handle(context as unknown as Context)
    expect([response.status, await response.json()]).toEqual([200, { secret: 'of the new token' }])
    log.flush()
    expect([released, logged.includes('was not stored under its Idempotency-Key')]).toEqual([[], true])
  })
})

test('rows with the same request id in the same millisecond have ids of their own in a sink, also when they are sent again', async () => {
  const bodies: { id: string }[][] = []
  let status = 500
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      bodies.push((await request.json()) as { id: string }[])
      return new Response(null, { status })
    },
  })
  closing.push(() => server.stop(true))
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
  const url = `http://127.0.0.1:${server.port}/`
  const request_log = { ...DEFAULT_REQUEST_LOG, sinks: [{ http: { url, format: 'json' as const } }] }
  const sinks = createRequestSinks({ config: configOf({ request_log }), assignIds: async () => {}, clock, log })
  const row = { row_id: 0, at_ms: 5, request_id: 'chosen-by-a-client', tags: [], detail: {} }
  for (let count = 0; count < 2; count++) sinks.push({ ...row } as unknown as RequestRow)
  await sinks.flush()
  status = 200
  await sinks.flush()
  const [first, second] = bodies.map((sent) => sent.map(({ id }) => id))
  expect(new Set(first).size).toBe(2)
  expect(second).toEqual(first ?? [])
})

test('contents whose write took too long and was repeated are counted once', async () => {
  const clock = manualClock()
  const appends: (() => void)[] = []
  const contents = createContentsLog({
    store: { append: () => new Promise((resolve) => void appends.push(resolve)), prune: async () => false },
    async assignIds(rows) {
      for (const row of rows) row.row_id = 1
    },
    config: () =>
      configOf({ contents_key: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64') }),
    clock,
    log: createLog({ clock, level: 'silent', pretty: false, write() {} }),
  })
  const row = { row_id: 0, at_ms: 0, request_id: 'r', project_id: null, end_user: null } as unknown as RequestRow
  const messages = [{ role: 'user', content: 'x'.repeat(500) }]
  contents.add({ max_characters: 1000, is_recorded: true, request: { messages } as ChatRequest }, row)
  expect(contents.health().characters).toBeGreaterThanOrEqual(500)
  for (const ms of [600, 10_001, 2_000]) {
    clock.advance(ms)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
  expect(appends).toHaveLength(2)
  for (const end of appends) end()
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  expect(contents.health().characters).toBe(0)
})

test('an admin token that is revoked twice is revoked, and the store goes on', async () => {
  const gateway = await start()
  const made = { name: 'v', role: 'viewer' }
  const { admin_token_id } = await gateway.read<{ admin_token_id: string }>('/admin-tokens', { json: made })
  for (let count = 0; count < 2; count++) {
    const answer = await gateway.read(`/admin-tokens/${admin_token_id}`, { method: 'DELETE' })
    expect(answer).toMatchObject({ admin_token_id, disabled: true })
  }
  expect((await gateway.read<{ data: unknown[] }>('/admin-tokens')).data).toHaveLength(1)
})
