/** Routing of one call by its caller's headers. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig } from '../src/config/schema/schema.ts'
import { startGateway } from './kit/gateway.ts'
import { failure, hang, startVendor } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A gateway with `v/first`, served by `one` and then `two`, and `v/second`, served by `three`. */
async function setUp(first: Partial<ModelConfig> = {}) {
  const [one, two, three] = [startVendor(), startVendor(), startVendor()]
  const gateway = await startGateway({
    providers: { one: { base_url: one.url }, two: { base_url: two.url }, three: { base_url: three.url } },
    models: {
      'v/first': {
        targets: [
          { provider: 'one', model: 'm' },
          { provider: 'two', model: 'm' },
        ],
        ...first,
      },
      'v/second': { targets: [{ provider: 'three', model: 'm' }] },
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose](), ...[one, two, three].map((vendor) => () => vendor.stop()))
  const ask = (headers: Record<string, string>, fields: object = {}) =>
    gateway.chat({ model: 'v/first', messages: [{ role: 'user', content: 'hi' }], ...fields }, { headers })
  const counts = () => [one, two, three].map(({ requests }) => requests.length)
  return { one, two, three, gateway, ask, counts }
}

describe('x-gatehouse-timeout', () => {
  it('is the time from the arrival of a request to its first byte, over all targets', async () => {
    const { one, gateway, ask } = await setUp()
    one.answer(hang())
    const call = ask({ 'x-gatehouse-timeout': '2.5' })
    await one.request(1)
    gateway.clock.advance(2_499)
    expect(gateway.clock.waiting()).toBeGreaterThan(0)
    gateway.clock.advance(1)
    const response = await call
    expect(response.status).toBe(504)
    expect(await response.text()).toContain('sent nothing within 2.5 s')
  })

  it.each([
    ['60', 20],
    ['20', 60],
  ])('and the deadline of the model: the smaller one holds (%s and %d s)', async (asked, deadline_seconds) => {
    const { one, two, gateway, ask } = await setUp({ routing: { deadline_seconds, first_byte_seconds: 15 } })
    one.answer(hang())
    two.answer(hang())
    const call = ask({ 'x-gatehouse-timeout': asked })
    await one.request(1)
    gateway.clock.advance(15_000)
    await two.request(1)
    gateway.clock.advance(5_000)
    expect((await call).status).toBe(504)
  })

  it('does not end a stream that has begun', async () => {
    const { gateway, ask } = await setUp()
    const response = await ask({ 'x-gatehouse-timeout': '1' }, { stream: true })
    gateway.clock.advance(5_000)
    expect(await response.text()).toContain('[DONE]')
  })

  it.each(['86400', '0.001'])('may be %s', async (value) => {
    const { ask } = await setUp()
    expect((await ask({ 'x-gatehouse-timeout': value })).status).toBe(200)
  })

  it.each(['86400.001', '86401', '0', '-1', '1e3', '1.2345', 'soon', ''])('may not be %j', async (value) => {
    const { ask, counts } = await setUp()
    const response = await ask({ 'x-gatehouse-timeout': value })
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: unknown }).error).toMatchObject({
      code: 'invalid_value',
      message: expect.stringContaining('The header x-gatehouse-timeout must be a number of seconds above 0'),
    })
    expect(counts()).toEqual([0, 0, 0])
  })
})

describe('x-gatehouse-no-fallback', () => {
  it.each(['1', 'true'])('%s: no other target and no other model is called', async (value) => {
    const { one, ask, counts } = await setUp({ fallbacks: ['v/second'], routing: { tries: 5 } })
    one.answer(failure(500))
    expect((await ask({ 'x-gatehouse-no-fallback': value })).status).toBe(502)
    expect(counts()).toEqual([1, 0, 0])
  })

  it('calls no other key', async () => {
    const acme = startVendor(failure(429))
    const keys = [{ key: 'first-key-0001' }, { key: 'second-key-0002' }]
    const gateway = await startGateway({ providers: { acme: { base_url: acme.url, keys } }, models: { 'acme/m': {} } })
    closing.push(() => gateway[Symbol.asyncDispose](), acme.stop)
    const question = { model: 'acme/m', messages: [{ role: 'user', content: 'hi' }] }
    const response = await gateway.chat(question, { headers: { 'x-gatehouse-no-fallback': '1' } })
    expect([response.status, acme.requests.length]).toEqual([429, 1])
  })

  it('does not replace a deprecated model', async () => {
    const { ask, counts } = await setUp({ status: 'deprecated', fallbacks: { deprecated: ['v/second'] } })
    expect((await ask({ 'x-gatehouse-no-fallback': '1' })).status).toBe(200)
    expect(counts()).toEqual([1, 0, 0])
  })

  it.each(['0', 'false'])('%s: as without it', async (value) => {
    const { one, ask, counts } = await setUp()
    one.answer(failure(500))
    expect((await ask({ 'x-gatehouse-no-fallback': value })).status).toBe(200)
    expect(counts()).toEqual([1, 1, 0])
  })

  it('may have no other value', async () => {
    const { ask } = await setUp()
    const response = await ask({ 'x-gatehouse-no-fallback': 'yes' })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('The header x-gatehouse-no-fallback must be 1 or true, or 0 or false.')
  })
})

describe('x-gatehouse-tags', () => {
  it('are in the access log, each once', async () => {
    const { gateway, ask } = await setUp()
    await ask({ 'x-gatehouse-tags': 'batch, team:a,batch' })
    expect(gateway.logged()).toContain('"tags":"batch,team:a"')
  })

  const list = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`).join(',')

  it.each([list(16), 'a'.repeat(64)])('may be %s', async (value) => {
    const { ask } = await setUp()
    expect((await ask({ 'x-gatehouse-tags': value })).status).toBe(200)
  })

  it.each([list(17), 'a'.repeat(65), 'a,,b', 'a b', '-a', ''])('may not be %j', async (value) => {
    const { ask } = await setUp()
    const response = await ask({ 'x-gatehouse-tags': value })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('The header x-gatehouse-tags m')
  })
})

it('reports a faulty header in the form of each API', async () => {
  const { gateway } = await setUp()
  const json = { model: 'v/first', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  const response = await gateway.call('/v1/messages', { json, headers: { 'x-gatehouse-timeout': 'x' } })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
})
