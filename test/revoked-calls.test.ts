/** Open calls of a revoked, replaced or expired token end within a second, with an error in their own protocol. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unixSeconds } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, hang, startVendor, stream, type Vendor } from './kit/vendor.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

type Scene = {
  gateway: TestGateway
  operator: TestGateway
  vendor: Vendor
  token: { token_id: string; secret: string }
}

/** A gateway, and a second one on its store: that of the operator, who revokes tokens. */
async function setUp(server: { end_revoked_calls?: boolean } = {}): Promise<Scene> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-revoked-'))
  open.push(() => rmSync(directory, { recursive: true, force: true }))
  const vendor = startVendor()
  open.push(vendor.stop)
  const settings = { providers: { v: { base_url: vendor.url, key: 'vendor-key' } }, models: { 'v/m': {} }, server }
  const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
  const gateway = await startGateway(settings, { store_url })
  open.push(() => gateway[Symbol.asyncDispose]())
  const operator = await startGateway(settings, { store_url })
  open.push(() => operator[Symbol.asyncDispose]())
  const issued = await gateway.instance.tokens.issue({ name: 'leaked' })
  return { gateway, operator, vendor, token: { token_id: issued.token.token_id, secret: issued.secret } }
}

/** The time in which a change of the store must have had its effect. */
const SECOND_MILLISECONDS = 1_000

async function passSecond({ clock }: TestGateway): Promise<void> {
  for (let ms = 0; ms < SECOND_MILLISECONDS; ms += 100) {
    clock.advance(100)
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

const messages = [{ role: 'user', content: 'Hello' }]
const STREAMS = {
  'chat completions': ['/v1/chat/completions', { model: 'v/m', messages, stream: true }],
  responses: ['/v1/responses', { model: 'v/m', input: 'Hello', stream: true }],
  messages: ['/v1/messages', { model: 'v/m', messages, max_tokens: 10, stream: true }],
  contentgen: [
    '/v1beta/models/v/m:streamGenerateContent?alt=sse',
    { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] },
  ],
} as const
type Dialect = keyof typeof STREAMS

/** How each protocol reports an error within a stream. */
const ERROR_EVENTS: Record<Dialect, RegExp> = {
  'chat completions': /data: \{"error":\{"message":"The API key[^\n]*"code":"invalid_api_key"\}\}\n\n/,
  responses: /event: error\ndata: \{"type":"error"[^\n]*"code":"invalid_api_key"[\s\S]*event: response\.failed\n/,
  messages: /event: error\ndata: \{"type":"error","error":\{"type":"authentication_error","message":"The API key/,
  contentgen: /data: \{"error":\{"code":401,"message":"The API key[^\n]*"status":"UNAUTHENTICATED"/,
}

/** A stream of which the first part has arrived. */
async function openStream({ gateway, vendor }: Scene, dialect: Dialect, secret: string) {
  vendor.answer(stream([chunk({ content: 'Begun' })], { hangAfter: 1 }))
  const [path, json] = STREAMS[dialect]
  const response = await gateway.call(path, { json, headers: { authorization: `Bearer ${secret}` } })
  expect(response.status).toBe(200)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('Begun')) text += decoder.decode((await reader.read()).value, { stream: true })
  let hasEnded = false
  const rest = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value)
    hasEnded = true
    return text
  })()
  open.push(() => reader.cancel())
  return { rest, hasEnded: () => hasEnded }
}

const requestLines = (gateway: TestGateway) =>
  gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
    .map((line) => JSON.parse(line))

describe('a stream whose token is revoked by another process', () => {
  test.each(Object.keys(STREAMS) as Dialect[])('ends within a second with an error event: %s', async (dialect) => {
    const set = await setUp()
    const { gateway, operator, token, vendor } = set
    const { rest } = await openStream(set, dialect, token.secret)
    await operator.instance.tokens.revoke(token.token_id)
    await passSecond(gateway)
    expect(await rest).toMatch(ERROR_EVENTS[dialect])
    await vendor.aborted
    await gateway.instance.drain({ deadline_ms: 0 })
    const [line] = requestLines(gateway)
    expect(line).toMatchObject({ outcome: 'cut', error: 'invalid_api_key', token_id: token.token_id })
    // What the provider has generated until then is counted.
    expect(line.output_tokens).toBeGreaterThan(0)
  })

  test('does not disturb the streams of other tokens', async () => {
    const set = await setUp()
    const { gateway, operator, token } = set
    const revoked = await openStream(set, 'chat completions', token.secret)
    const other = await openStream(set, 'chat completions', gateway.token)
    await operator.instance.tokens.revoke(token.token_id)
    await passSecond(gateway)
    await revoked.rest
    expect(other.hasEnded()).toBe(false)
  })

  test('runs on where the operator has chosen so', async () => {
    const set = await setUp({ end_revoked_calls: false })
    const { gateway, operator, token } = set
    const running = await openStream(set, 'chat completions', token.secret)
    await operator.instance.tokens.revoke(token.token_id)
    await passSecond(gateway)
    expect(running.hasEnded()).toBe(false)
  })
})

test('a stream ends when its token expires, and not a moment before', async () => {
  const set = await setUp()
  const { gateway } = set
  const expires_at = unixSeconds(gateway.clock) + 10
  const { secret } = await gateway.instance.tokens.issue({ name: 'short', expires_at })
  const running = await openStream(set, 'chat completions', secret)
  gateway.clock.advance(9_000)
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(running.hasEnded()).toBe(false)
  await passSecond(gateway)
  await passSecond(gateway)
  expect(await running.rest).toMatch(ERROR_EVENTS['chat completions'])
})

test('a stream ends when the secret that opened it is replaced; one that the new secret opened goes on', async () => {
  const set = await setUp()
  const { gateway, operator, token } = set
  const old = await openStream(set, 'chat completions', token.secret)
  const { secret } = await operator.instance.tokens.rotate(token.token_id)
  await passSecond(gateway)
  expect(await old.rest).toMatch(ERROR_EVENTS['chat completions'])
  const current = await openStream(set, 'chat completions', secret)
  await passSecond(gateway)
  expect(current.hasEnded()).toBe(false)
})

test('a call that waits for a whole answer gets 401 when its token is revoked', async () => {
  const { gateway, vendor, token } = await setUp()
  vendor.answer(hang())
  const json = { model: 'v/m', messages }
  const answer = gateway.call('/v1/chat/completions', { json, headers: { authorization: `Bearer ${token.secret}` } })
  await vendor.request()
  await gateway.instance.tokens.revoke(token.token_id)
  const response = await answer
  expect([response.status, (await response.json()).error.code]).toEqual([401, 'invalid_api_key'])
  await vendor.aborted
})

test('a stream of the events of a background response ends with an error event', async () => {
  const { gateway, operator, vendor, token } = await setUp()
  vendor.answer(stream([chunk({ content: 'Begun' })], { hangAfter: 1 }))
  const headers = { authorization: `Bearer ${token.secret}` }
  const json = { model: 'v/m', input: 'Hello', background: true, stream: true }
  const response = await gateway.call('/v1/responses', { json, headers })
  const text = response.text()
  await operator.instance.tokens.revoke(token.token_id)
  await passSecond(gateway)
  expect(await text).toMatch(/event: error\ndata: \{"type":"error","sequence_number":\d+,"code":"invalid_api_key"/)
})

test('a background response that runs fails within ten seconds', async () => {
  const { gateway, operator, vendor, token } = await setUp()
  vendor.answer(hang())
  const headers = { authorization: `Bearer ${token.secret}` }
  const queued = await gateway.call('/v1/responses', {
    json: { model: 'v/m', input: 'Hello', background: true },
    headers,
  })
  expect(queued.status).toBe(200)
  await vendor.request()
  await operator.instance.tokens.revoke(token.token_id)
  gateway.clock.advance(10_000)
  await vendor.aborted
  // Once it is on the disk.
  while (!gateway.logged().includes('response ended')) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  expect(gateway.logged()).toMatch(/"event":"response ended"[^\n]*"status":"failed"[^\n]*"error":"invalid_api_key"/)
})
