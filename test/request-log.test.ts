/** The request log: what is recorded of each request, and searched by the command line. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/requests.ts'
import { DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { type RequestView, viewRequests } from '../src/observe/requests/request-view.ts'
import { openStore } from '../src/store/open-store.ts'
import type { RequestFilter } from '../src/store/requests/request-row.ts'
import { OWNER, startAdminGateway } from './kit/admin.ts'
import { startGateway } from './kit/gateway.ts'
import { requestRow } from './kit/request-rows.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(settings: Parameters<typeof startGateway>[0] = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-request-log-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
  const gateway = await startGateway(settings, { store_url })
  let isOpen = true
  const stop = async () => {
    if (isOpen) await gateway[Symbol.asyncDispose]()
    isOpen = false
  }
  closing.push(stop)
  /** What is recorded once the gateway has stopped. */
  async function recorded(filter: RequestFilter = {}): Promise<RequestView[]> {
    await stop()
    const store = await openStore({ url: store_url })
    const { rows } = await store.requestLog.search({ filter, limit: 1_000 })
    const views = await viewRequests(store.requestLog, rows)
    await store.close()
    return views
  }
  return { gateway, recorded, stop, directory }
}

const chat = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }

describe('the request log', () => {
  it('records a call with what the caller says of it, and never its contents', async () => {
    const { gateway, recorded } = await start()
    const headers = {
      'x-request-id': 'mine-1',
      'x-gatehouse-user': 'ann',
      'x-gatehouse-session': 'session-1',
      'x-gatehouse-tags': 'team:blue,nightly',
    }
    const response = await gateway.chat({ ...chat, metadata: { run: '7', team: 'blue' } }, { headers })
    expect(response.status).toBe(200)
    await response.text()
    const rows = await recorded()
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({
      object: 'request',
      request_id: 'mine-1',
      end_user: 'ann',
      session: 'session-1',
      tags: ['team:blue', 'nightly', 'run:7'],
      metadata: { run: '7', team: 'blue' },
      family: 'chatcompat',
      model: 'sandbox/general',
      provider: 'sandbox',
      target: 'sandbox/general',
      status: 200,
      error: null,
      path: '/v1/chat/completions',
      outcome: 'done',
      attempts: [{ target: 'sandbox/general' }],
      feedback: null,
    })
    expect(rows[0]?.token_id).toMatch(/^tok_/)
    expect(rows[0]?.input_tokens).toBeGreaterThan(0)
    expect(JSON.stringify(rows)).not.toContain('Hello')
  })

  it('records a streamed call with the time of its first byte', async () => {
    const { gateway, recorded } = await start()
    await (await gateway.chat({ ...chat, stream: true })).text()
    const [row] = await recorded()
    expect(row).toMatchObject({ stream: true, status: 200, first_byte_ms: expect.any(Number) })
    expect(row?.output_tokens).toBeGreaterThan(0)
  })

  it('records the refused requests of known tokens, and nothing of others', async () => {
    const { gateway, recorded } = await start()
    await gateway.chat({ ...chat, model: 'nobody/none' })
    await gateway.call('/v1/nowhere')
    await gateway.call('/v1/models')
    await gateway.chat(chat, { headers: { authorization: 'Bearer gh-wrong' } })
    const rows = await recorded()
    expect(rows.map(({ status, error, path }) => [status, error, path])).toEqual([
      [404, 'model_not_found', '/v1/chat/completions'],
    ])
  })

  it('records at most 600 refused requests of a token in a minute', async () => {
    const { gateway, recorded } = await start()
    for (let count = 0; count < 610; count++) await gateway.chat({ ...chat, model: 'nobody/none' })
    await (await gateway.chat(chat)).text()
    expect(await recorded({ error: 'any' })).toHaveLength(600)
    expect(await recorded({ status: 200 })).toHaveLength(1)
  })

  it('records a repeated request id in a row of its own', async () => {
    const { gateway, recorded } = await start()
    for (let count = 0; count < 2; count++)
      await (await gateway.chat(chat, { headers: { 'x-request-id': 'same' } })).text()
    const rows = await recorded({ request_id: 'same' })
    expect(new Set(rows.map(({ id }) => id)).size).toBe(2)
  })

  it('records nothing where it is off', async () => {
    const { gateway, recorded } = await start({ request_log: { ...DEFAULT_REQUEST_LOG, enabled: false } })
    await (await gateway.chat(chat)).text()
    expect(await recorded()).toEqual([])
  })

  it('refuses a session that is no name', async () => {
    const { gateway } = await start()
    const response = await gateway.chat(chat, { headers: { 'x-gatehouse-session': 'a b' } })
    expect([response.status, (await response.json()).error.message]).toEqual([
      400,
      expect.stringContaining('x-gatehouse-session'),
    ])
  })
})

describe('the sinks of the request log', () => {
  it('gets a line for each call in its file, also where the store gets none', async () => {
    const sinks = [{ file: { path: 'log/requests.ndjson' } }, { http: { url: 'http://127.0.0.1:9/none' } }]
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-sinks-'))
    closing.push(() => rmSync(data_dir, { recursive: true, force: true }))
    const { gateway, recorded } = await start({
      data_dir,
      request_log: { ...DEFAULT_REQUEST_LOG, enabled: false, sinks },
    })
    await (await gateway.chat(chat, { headers: { 'x-request-id': 'one' } })).text()
    expect(await recorded()).toEqual([])
    const [line = '', rest] = readFileSync(join(data_dir, 'log', 'requests.ndjson'), 'utf8').split('\n')
    expect([JSON.parse(line).request_id, JSON.parse(line).status, rest]).toEqual(['one', 200, ''])
  })
})

describe('POST /v1/feedback', () => {
  const rate = (gateway: Awaited<ReturnType<typeof start>>['gateway'], json: object, token?: string) =>
    gateway.call('/v1/feedback', { json, ...(token && { headers: { authorization: `Bearer ${token}` } }) })

  it('is joined to the newest request of the id, and replaced by later feedback', async () => {
    const { gateway, recorded } = await start()
    await (await gateway.chat(chat, { headers: { 'x-request-id': 'rated' } })).text()
    const answer = await rate(gateway, { request_id: 'rated', score: 1, text: 'Good.' })
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { object: 'feedback', request_id: 'rated', score: 1, text: 'Good.', created_at: expect.any(Number) },
    ])
    await rate(gateway, { request_id: 'rated', score: -1 })
    expect((await recorded())[0]?.feedback).toMatchObject({ score: -1, text: null })
  })

  it('is refused for a request of another token, and taken from a token of the same project', async () => {
    const { gateway } = await start()
    const project = await gateway.instance.projects.create({ name: 'team' })
    const tokens = gateway.instance.tokens
    const one = await tokens.issue({ name: 'one', project_id: project.project_id })
    const two = await tokens.issue({ name: 'two', project_id: project.project_id })
    const headers = { authorization: `Bearer ${one.secret}`, 'x-request-id': 'owned' }
    await (await gateway.chat(chat, { headers })).text()
    const given = { request_id: 'owned', score: 1 }
    expect((await rate(gateway, given)).status).toBe(404)
    expect((await rate(gateway, { ...given, request_id: 'none' }, two.secret)).status).toBe(404)
    expect((await rate(gateway, given, two.secret)).status).toBe(200)
  })

  it.each([
    [{ request_id: 'x' }, 'missing_required_parameter'],
    [{ request_id: 'x', score: 101 }, 'invalid_value'],
    [{ request_id: 'x', text: 'a'.repeat(4_097) }, 'invalid_value'],
    [{ score: 1 }, 'missing_required_parameter'],
  ])('rejects %j', async (json, code) => {
    const { gateway } = await start()
    const response = await rate(gateway, json)
    expect([response.status, (await response.json()).error.code]).toEqual([400, code])
  })
})

describe('GET /admin/v1/requests', () => {
  it('shows a call at once, in pages, and by its id', async () => {
    await using gateway = await startAdminGateway()
    for (let count = 0; count < 3; count++)
      await (await gateway.chat(chat, { headers: { 'x-request-id': 'mine' } })).text()
    type Page = { data: RequestView[]; next_cursor: string | null }
    const first = await gateway.read<Page>('/requests?limit=2&request_id=mine&status=2xx')
    expect(first.data.map(({ request_id, status }) => [request_id, status])).toEqual([
      ['mine', 200],
      ['mine', 200],
    ])
    expect(first.data[0]).toMatchObject({ cost: expect.anything(), attempts: [{ target: 'sandbox/general' }] })
    const last = await gateway.read<Page>(`/requests?limit=2&request_id=mine&status=2xx&cursor=${first.next_cursor}`)
    expect([last.data.length, last.next_cursor]).toEqual([1, null])
    expect(await gateway.read<RequestView>(`/requests/${last.data[0]?.id}`)).toEqual(last.data[0] as RequestView)
    expect((await gateway.admin('/requests/999999')).status).toBe(404)
    expect((await gateway.admin('/requests?status=abc')).status).toBe(400)
    expect((await gateway.admin('/requests?from=yesterday')).status).toBe(400)
  })

  it('names the rows beside one, of those that meet the filter', async () => {
    await using gateway = await startAdminGateway()
    for (const id of ['mine', 'other', 'mine', 'mine'])
      await (await gateway.chat(chat, { headers: { 'x-request-id': id } })).text()
    const { data } = await gateway.read<{ data: RequestView[] }>('/requests')
    const [newest, third, second, oldest] = data.map(({ id }) => id)
    const beside = (id: string | undefined, filter = '') => gateway.read(`/requests/${id}/neighbors${filter}`)
    const found = { object: 'request.neighbors', is_partial: false }
    expect(await beside(third)).toEqual({ ...found, newer: newest, older: second })
    expect(await beside(third, '?request_id=mine')).toEqual({ ...found, newer: newest, older: oldest })
    expect(await beside(second, '?request_id=mine')).toEqual({ ...found, newer: third, older: oldest })
    expect(await beside(newest)).toEqual({ ...found, newer: null, older: third })
    expect(await beside(oldest, '?error=any')).toEqual({ ...found, newer: null, older: null })
    expect((await gateway.admin('/requests/999999/neighbors')).status).toBe(404)
    expect((await gateway.admin(`/requests/${third}/neighbors?status=abc`)).status).toBe(400)
  })

  it('has the start of each attempt', async () => {
    await using gateway = await startAdminGateway()
    await (await gateway.chat(chat)).text()
    const { data } = await gateway.read<{ data: RequestView[] }>('/requests')
    const [attempt] = data[0]?.attempts ?? []
    expect(attempt?.start_ms).toBeGreaterThanOrEqual(0)
    expect(attempt?.start_ms).toBeLessThanOrEqual(data[0]?.total_ms ?? 0)
  })
})

describe('gatehouse requests', () => {
  async function search(directory: string, ...args: string[]) {
    return searchIn(directory, { GATEHOUSE_DATA_DIR: directory }, args)
  }

  async function searchIn(directory: string, environment: Record<string, string>, args: string[]) {
    let [out, err] = ['', '']
    const terminal = {
      environment,
      cwd: directory,
      interactive: false,
      out(text: string) {
        out += text
      },
      err(text: string) {
        err += text
      },
    }
    const code = await run(args, terminal as unknown as Parameters<typeof run>[1])
    return { code, out, err }
  }

  it('shows what meets all conditions, in pages', async () => {
    const { gateway, stop, directory } = await start()
    for (let count = 0; count < 3; count++)
      await (await gateway.chat(chat, { headers: { 'x-gatehouse-tags': 'a' } })).text()
    await gateway.chat({ ...chat, model: 'nobody/none' })
    await stop()
    const first = JSON.parse((await search(directory, '--tag', 'a', '--limit', '2', '--json')).out)
    expect(first.data).toHaveLength(2)
    const last = JSON.parse(
      (await search(directory, '--tag', 'a', '--limit', '2', '--after', first.next_cursor, '--json')).out,
    )
    expect([last.data.length, last.next_cursor]).toEqual([1, null])
    expect((await search(directory, '--status', '4xx')).out).toContain('model_not_found')
    expect((await search(directory, '--error', 'any', '--min-ms', '99999')).out).toBe('No request matches.\n')
    const shown = await search(directory, '--limit', '1')
    expect(shown.err).toContain('--after ')
  })

  it('goes on after short pages, on the store and on a gateway, until it has as many rows as its limit', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-request-log-'))
    closing.push(() => rmSync(directory, { recursive: true, force: true }))
    const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
    const store = await openStore({ url: store_url })
    const first_ms = Date.now() - 86_400_000
    // One search examines at most 32,000 rows; only the oldest three took this long.
    for (let batch = 0; batch < 33; batch++) {
      const ids = Array.from({ length: 1_000 }, (_, at) => batch * 1_000 + at + 1)
      const total_ms = (row_id: number) => (row_id <= 3 ? 9_000 : 1)
      const rows = ids.map((row_id) => requestRow({ row_id, at_ms: first_ms + row_id, total_ms: total_ms(row_id) }))
      await store.requestLog.append(rows)
    }
    await store.close()
    await using gateway = await startAdminGateway({ store_url }, { store_url })
    const page = await gateway.read<{ data: RequestView[]; next_cursor: string | null }>('/requests?min_ms=5000')
    expect([page.data, typeof page.next_cursor]).toEqual([[], 'string'])
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => gateway.instance.fetch(request) })
    closing.push(() => server.stop(true))
    const remote = { GATEHOUSE_URL: `http://127.0.0.1:${server.port}`, GATEHOUSE_ADMIN_TOKEN: OWNER }
    for (const environment of [{ GATEHOUSE_DATA_DIR: directory }, remote]) {
      const ids = async (limit: string) => {
        const { out } = await searchIn(directory, environment, ['--min-ms', '5000', '--limit', limit, '--json'])
        const { data, next_cursor } = JSON.parse(out) as { data: RequestView[]; next_cursor: string | null }
        return [data.map(({ id }) => id), next_cursor === null]
      }
      expect(await ids('2')).toEqual([['3', '2'], false])
      expect(await ids('9')).toEqual([['3', '2', '1'], true])
    }
  })

  it.each([
    [['--status', '9xx'], '--status'],
    [['--min-cost', 'x'], '--min-cost'],
    [['--after', 'x'], '--after'],
    [['--limit', '0'], '--limit'],
    [['--user', ''], '--user'],
    [['--project', 'none'], 'no project'],
  ])('rejects %j', async (args, message) => {
    const { directory, stop } = await start()
    await stop()
    expect(search(directory, ...args)).rejects.toThrow(message)
  })
})
