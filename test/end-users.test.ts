/** Every API records for whom a call was, as its header or its body names the end user, and sends the field on as before. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../src/store/open-store.ts'
import type { Store } from '../src/store/store.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunks, startVendor, stream } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(settings: Parameters<typeof startGateway>[0] = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-end-users-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
  const gateway = await startGateway(settings, { store_url })
  let isOpen = true
  const stop = async () => {
    if (isOpen) await gateway[Symbol.asyncDispose]()
    isOpen = false
  }
  closing.push(stop)
  /** What is in the store after the gateway has stopped. */
  async function read<Result>(work: (store: Store) => Promise<Result>): Promise<Result> {
    await stop()
    const store = await openStore({ url: store_url })
    const found = await work(store)
    await store.close()
    return found
  }
  /** Whom the ledger names for this call. */
  const endUserOf = (call_id: string) =>
    read(async ({ ledger }) => (await ledger.ofCall(call_id)).map(({ end_user }) => end_user))
  return { gateway, read, endUserOf }
}

const chat = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }
const PNG = { model: 'sandbox/image', prompt: 'A kite' }
const cases: [path: string, json: object, expected: string | null][] = [
  ['/v1/chat/completions', { ...chat, user: 'ann' }, 'ann'],
  ['/v1/chat/completions', { ...chat, safety_identifier: 'ann' }, 'ann'],
  ['/v1/chat/completions', chat, null],
  ['/v1/chat/completions', { ...chat, stream: true, user: 'ann' }, 'ann'],
  ['/v1/completions', { model: 'sandbox/general', prompt: 'Hello', user: 'ann' }, 'ann'],
  ['/v1/responses', { model: 'sandbox/general', input: 'Hello', safety_identifier: 'ann' }, 'ann'],
  ['/v1/messages', { ...chat, max_tokens: 9, metadata: { user_id: 'ann' } }, 'ann'],
  ['/v1/embeddings', { model: 'sandbox/embedding', input: 'Hello', user: 'ann' }, 'ann'],
  ['/v1/images/generations', { ...PNG, user: 'ann' }, 'ann'],
]

test.each(cases)('%s with %j is for %s', async (path, json, expected) => {
  const { gateway, endUserOf } = await start()
  const response = await gateway.call(path, { json, headers: { 'x-request-id': 'call-1' } })
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)])
  expect(await endUserOf('call-1')).toEqual([expected])
})

test.each(cases.filter(([, , expected]) => expected))('%s with %j is for whom the header names', async (path, json) => {
  const { gateway, endUserOf } = await start()
  const headers = { 'x-request-id': 'call-1', 'x-gatehouse-user': 'ben' }
  await (await gateway.call(path, { json, headers })).text()
  expect(await endUserOf('call-1')).toEqual(['ben'])
})

test('a form names its end user by its field', async () => {
  const { gateway, endUserOf } = await start()
  const form = new FormData()
  for (const [name, value] of Object.entries({ ...PNG, user: 'ann' })) form.set(name, value)
  const request = new Request('http://gateway/v1/images/generations', {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${gateway.token}`, 'x-request-id': 'call-1' },
  })
  const response = await gateway.instance.fetch(request)
  await response.text()
  expect(await endUserOf('call-1')).toEqual(response.status === 200 ? ['ann'] : ['unexpected status'])
})

test('the header is refused with control characters, and is not sent on; the field of the body is', async () => {
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  const { gateway } = await start({
    providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
    models: { 'v/m': {} },
  })
  const refused = await gateway.chat(chat, { headers: { 'x-gatehouse-user': 'a\tb' } })
  expect([refused.status, (await refused.json()).error]).toEqual([
    400,
    expect.objectContaining({ code: 'invalid_value', message: expect.stringContaining('x-gatehouse-user') }),
  ])
  vendor.answer(stream(chunks('Hi')))
  const json = { ...chat, model: 'v/m', stream: true, user: 'ann' }
  await (await gateway.chat(json, { headers: { 'x-gatehouse-user': 'ben' } })).text()
  const { headers, body } = await vendor.request(1)
  expect(JSON.stringify(headers)).not.toContain('ben')
  expect(JSON.parse(body).user).toBe('ann')
})

async function until(gateway: TestGateway, path: string, done: (body: { status: string }) => boolean) {
  for (;;) {
    const body = await (await gateway.call(path)).json()
    if (done(body)) return body
    gateway.clock.advance(500)
    await new Promise((resolve) => setTimeout(resolve, 1)) // the disk takes a moment
  }
}

test('a background response is generated for the end user of its request', async () => {
  const { gateway, endUserOf } = await start()
  const json = { model: 'sandbox/general', input: 'Hello', background: true, user: 'ann' }
  const { id } = await (await gateway.call('/v1/responses', { json, headers: { 'x-gatehouse-user': 'ben' } })).json()
  await until(gateway, `/v1/responses/${id}`, ({ status }) => status === 'completed')
  expect(await endUserOf(id)).toEqual(['ben'])
})

test('a task keeps the end user of its order', async () => {
  const { gateway, read } = await start()
  const json = { model: 'sandbox/text-to-video', prompt: 'A kite', user: 'ann' }
  const { id } = await (await gateway.call('/v1/videos', { json })).json()
  expect(await read(async ({ tasks }) => (await tasks.find(id))?.end_user)).toBe('ann')
})
