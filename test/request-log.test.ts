/** The request log: what is recorded of each request, and searched by the command line. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/requests.ts'
import { type RequestView, viewRequests } from '../src/observe/request-view.ts'
import { openStore } from '../src/store/open-store.ts'
import type { RequestFilter } from '../src/store/request-row.ts'
import { startGateway } from './kit/gateway.ts'

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
    const { gateway, recorded } = await start({ request_log: { enabled: false, keep_days: 7 } })
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

describe('gatehouse requests', () => {
  async function search(directory: string, ...args: string[]) {
    let [out, err] = ['', '']
    const terminal = {
      environment: { GATEHOUSE_DATA_DIR: directory },
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
