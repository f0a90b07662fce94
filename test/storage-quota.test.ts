/** Storage quotas of a token over HTTP: both sides of each, and what frees space. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'bun:test'
import { jsonSize } from '../src/kit/json-size.ts'
import { configOf, startGateway, type TestGateway } from './kit/gateway.ts'
import { failure, startVendor, type Vendor } from './kit/vendor.ts'

type Json = Record<string, unknown>

let vendor: Vendor
beforeAll(() => {
  vendor = startVendor()
})
beforeEach(() => {
  vendor.requests.length = 0
})
afterAll(() => vendor.stop())

const settings = () => ({
  providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
  models: { 'v/m': {} },
})
const gatewayWith = (storage: Record<string, number>) =>
  startGateway({ ...settings(), tokens: { models: ['*'], storage } })

/** Another token of the same gateway. */
async function otherToken(gateway: TestGateway): Promise<Record<string, string>> {
  const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
  return { authorization: `Bearer ${secret}` }
}
const respond = (gateway: TestGateway, body: Json = {}, headers: Record<string, string> = {}) =>
  gateway.call('/v1/responses', { json: { model: 'v/m', input: 'hello', ...body }, headers })
const order = (gateway: TestGateway, body: Json = {}, headers: Record<string, string> = {}) =>
  gateway.call('/v1/video/generations', {
    json: { model: 'sandbox/text-to-video', prompt: 'a boat', ...body },
    headers,
  })
const bodyOf = async (response: Response): Promise<Json> => (await response.json()) as Json
/** The status, and the code and message of an error. */
async function outcomeOf(response: Response): Promise<{ status: number; code: unknown; message: string }> {
  const body = await bodyOf(response)
  const { code, message } = (body.error ?? body) as Json
  return { status: response.status, code, message: String(message) }
}
const REFUSED = { status: 429, code: 'storage_quota_exceeded' }

describe('the quota of stored responses', () => {
  it('refuses one row more for requests that need storage, before the provider is called', async () => {
    await using gateway = await gatewayWith({ response_rows: 2 })
    const first = await bodyOf(await respond(gateway, { store: true }))
    expect((await respond(gateway, { store: true })).status).toBe(200)
    vendor.requests.length = 0
    const refused = await respond(gateway, { store: true })
    expect(refused.headers.get('x-should-retry')).toBe('false')
    const outcome = await outcomeOf(refused)
    expect(outcome).toMatchObject(REFUSED)
    expect(outcome.message).toContain('stores 2 responses, conversations and items of at most 2')
    expect(outcome.message).toContain('tokens.storage.response_rows')
    expect(await outcomeOf(await respond(gateway, { previous_response_id: first.id }))).toMatchObject(REFUSED)
    expect(await outcomeOf(await respond(gateway, { background: true }))).toMatchObject(REFUSED)
    expect(await outcomeOf(await gateway.call('/v1/conversations', { json: {} }))).toMatchObject(REFUSED)
    expect(vendor.requests).toHaveLength(0)
  })

  it('answers a request that is stored only by default, and says that it is not stored', async () => {
    await using gateway = await gatewayWith({ response_rows: 1 })
    const stored = await bodyOf(await respond(gateway))
    expect(stored.store).toBe(true)
    const response = await respond(gateway)
    const answer = await bodyOf(response)
    expect([response.status, answer.status, answer.store]).toEqual([200, 'completed', false])
    expect((await gateway.call(`/v1/responses/${answer.id}`)).status).toBe(404)
    const streamed = await (await respond(gateway, { stream: true })).text()
    expect(streamed).toContain('"store":false')
    expect(streamed).toContain('event: response.completed')
    expect((await respond(gateway, { store: false })).status).toBe(200)
  })

  it('admits an input up to the last byte, and refuses one byte more', async () => {
    const input = 'x'.repeat(2_000)
    const bytes = jsonSize([{ type: 'message', role: 'user', content: input }])
    for (const [response_bytes, status] of [
      [bytes, 200],
      [bytes - 1, 429],
    ] as const) {
      await using gateway = await gatewayWith({ response_bytes })
      expect((await respond(gateway, { store: true, input })).status).toBe(status)
    }
  })

  it('stops a token that fills the disk, whose requests arrive together, and no other token', async () => {
    await using gateway = await gatewayWith({ response_bytes: 1_000_000 })
    const input = 'x'.repeat(200_000)
    const all = await Promise.all(Array.from({ length: 30 }, () => respond(gateway, { store: true, input })))
    expect(all.filter(({ status }) => status === 200)).toHaveLength(4)
    expect(all.filter(({ status }) => status === 429)).toHaveLength(26)
    expect((await respond(gateway, { store: true, input }, await otherToken(gateway))).status).toBe(200)
  })

  it('counts items of conversations, and frees at once what is deleted', async () => {
    await using gateway = await gatewayWith({ response_rows: 3 })
    const item = { type: 'message', role: 'user', content: 'hello' }
    const { id } = await bodyOf(await gateway.call('/v1/conversations', { json: { items: [item] } }))
    const items = `/v1/conversations/${id}/items`
    expect(await outcomeOf(await gateway.call(items, { json: { items: [item, item] } }))).toMatchObject(REFUSED)
    expect((await gateway.call(items, { json: { items: [item] } })).status).toBe(200)
    expect(await outcomeOf(await respond(gateway, { store: true }))).toMatchObject(REFUSED)
    expect(await outcomeOf(await respond(gateway, { conversation: id }))).toMatchObject(REFUSED)
    expect((await gateway.call(`/v1/conversations/${id}`, { method: 'DELETE' })).status).toBe(200)
    const answer = await bodyOf(await respond(gateway, { store: true }))
    expect((await respond(gateway, { store: true })).status).toBe(200)
    expect((await respond(gateway, { store: true })).status).toBe(200)
    expect(await outcomeOf(await respond(gateway, { store: true }))).toMatchObject(REFUSED)
    expect((await gateway.call(`/v1/responses/${answer.id}`, { method: 'DELETE' })).status).toBe(200)
    expect((await respond(gateway, { store: true })).status).toBe(200)
  })

  it('does not count a response that failed', async () => {
    await using gateway = await gatewayWith({ response_rows: 1 })
    for (let count = 0; count < 3; count++) {
      vendor.answer(failure(400, { error: { message: 'No.' } }))
      expect((await respond(gateway, { store: true })).status).toBe(400)
    }
    expect((await respond(gateway, { store: true })).status).toBe(200)
  })

  it('follows a reload, and has no effect on chat completions', async () => {
    await using gateway = await gatewayWith({ response_rows: 1 })
    expect((await respond(gateway, { store: true })).status).toBe(200)
    expect((await respond(gateway, { store: true })).status).toBe(429)
    const tokens = { models: ['*'], storage: { response_rows: 2 } }
    await gateway.instance.reload(configOf({ ...settings(), tokens }))
    expect((await respond(gateway, { store: true })).status).toBe(200)
    expect((await respond(gateway, { store: true })).status).toBe(429)
    expect((await gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: 'hello' }] })).status).toBe(200)
  })
})

describe('the quota of tasks', () => {
  it('refuses one unfinished task more, until one ends', async () => {
    await using gateway = await gatewayWith({ unfinished_tasks: 2 })
    const first = await bodyOf(await order(gateway))
    expect((await order(gateway)).status).toBeLessThan(300)
    expect(await outcomeOf(await order(gateway))).toMatchObject(REFUSED)
    expect((await order(gateway, {}, await otherToken(gateway))).status).toBeLessThan(300)
    const { task_id } = (first.data ?? first) as Json
    await gateway.call(`/v1/video/generations/${task_id}/cancel`, { method: 'POST', json: {} })
    await gateway.instance.tasks.idle()
    gateway.clock.advance(1_000)
    expect((await order(gateway)).status).toBeLessThan(300)
  })

  it('refuses metadata beyond the bytes, also of tasks that have ended, until these are deleted', async () => {
    await using gateway = await gatewayWith({ task_bytes: 50_000 })
    const metadata = { vendor: { text: 'x'.repeat(24_000) } }
    const first = await bodyOf(await order(gateway, { metadata }))
    expect((await order(gateway, { metadata })).status).toBeLessThan(300)
    const outcome = await outcomeOf(await order(gateway, { metadata }))
    expect(outcome).toMatchObject(REFUSED)
    expect(outcome.message).toContain('tokens.storage.task_bytes')
    const { task_id } = (first.data ?? first) as Json
    await gateway.call(`/v1/video/generations/${task_id}/cancel`, { method: 'POST', json: {} })
    await gateway.instance.tasks.idle()
    gateway.clock.advance(1_000)
    expect(await outcomeOf(await order(gateway, { metadata }))).toMatchObject(REFUSED)
    expect((await gateway.call(`/v1/videos/${task_id}`, { method: 'DELETE' })).status).toBeLessThan(300)
    expect((await order(gateway, { metadata })).status).toBeLessThan(300)
  })
})

describe('the quota of idempotency keys', () => {
  it('refuses one key more, replays the ones there are, and accepts orders without a key', async () => {
    await using gateway = await gatewayWith({ idempotency_keys: 2 })
    const keyed = (key: string) => order(gateway, {}, { 'idempotency-key': key })
    const first = await bodyOf(await keyed('one'))
    expect((await keyed('two')).status).toBeLessThan(300)
    const outcome = await outcomeOf(await keyed('three'))
    expect(outcome).toMatchObject(REFUSED)
    expect(outcome.message).toContain('2 idempotency keys of at most 2')
    const again = await keyed('one')
    expect(again.status).toBeLessThan(300)
    const idOf = ({ data, task_id }: Json) => (data as Json | undefined)?.task_id ?? task_id
    expect(idOf(await bodyOf(again))).toBe(idOf(first))
    expect((await order(gateway)).status).toBeLessThan(300)
  })
})
