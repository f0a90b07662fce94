/** Tokens of projects over HTTP: what is refused, by which address, and that a change counts in a running gateway within a second. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from './kit/engines.ts'
import { type CallOptions, startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, startVendor, stream } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Settings = Parameters<typeof startGateway>[0]

async function start(settings: Settings = {}, parts: Parameters<typeof startGateway>[1] = {}): Promise<TestGateway> {
  const gateway = await startGateway(settings, parts)
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

/** By the gateway's clock. The database answers in real time: each step waits for some answers of it. */
async function passSecond({ clock, instance }: TestGateway): Promise<void> {
  for (let ms = 0; ms < 1_000; ms += 100) {
    clock.advance(100)
    for (let turn = 0; turn < 10; turn++) await instance.projects.list()
  }
}

const CHAT = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }

const as = (secret: string, headers: Record<string, string> = {}): CallOptions => ({
  headers: { authorization: `Bearer ${secret}`, ...headers },
})
async function codeOf(response: Promise<Response>): Promise<unknown> {
  const { status } = await response
  const body = await (await response).json()
  return status === 200 ? 200 : [status, body.error.code ?? body.error.type]
}

for (const engine of ENGINES.filter(({ url }) => url)) {
  test(`a running gateway follows the changes of an operator within a second (${engine.name})`, async () => {
    closing.push(engine.cleanup)
    await engine.open()
    const store_url = engine.url?.() ?? ''
    const gateway = await start({}, { store_url })
    const { instance: operator } = await start({}, { store_url })
    const project = await operator.projects.create({ name: 'mobile' })
    const { token, secret } = await operator.tokens.issue({ name: 'app', project_id: project.project_id })
    const afterSecond = async (expected: unknown) => {
      await passSecond(gateway)
      expect(await codeOf(gateway.chat(CHAT, as(secret)))).toEqual(expected)
    }
    await afterSecond(200)
    await operator.projects.update('mobile', { models: ['other/*'] })
    await afterSecond([403, 'model_not_allowed'])
    await operator.projects.update('mobile', { models: ['*'], disabled: true })
    await afterSecond([403, 'project_disabled'])
    await operator.projects.update('mobile', { disabled: false, allowed_addresses: ['203.0.113.0/24'] })
    await afterSecond([403, 'address_not_allowed'])
    await operator.tokens.update(token.token_id, { project_id: null })
    await afterSecond(200)
    await operator.projects.update('mobile', { allowed_addresses: null })
    await operator.tokens.update(token.token_id, { project_id: project.project_id })
    await operator.projects.delete('mobile')
    await afterSecond([403, 'project_disabled'])
  })
}

describe('a token for some addresses', () => {
  const allowed_addresses = ['203.0.113.0/24']
  const from = (secret: string, address: string) => as(secret, { 'x-forwarded-for': address })

  test('works behind a trusted proxy from the address that the proxy saw, on every path', async () => {
    const gateway = await start({ server: { trust_proxy: true } })
    const { secret } = await gateway.instance.tokens.issue({ name: 'a', allowed_addresses })
    const task = await gateway.call('/v1/videos', {
      json: { model: 'sandbox/text-to-video', prompt: 'A kite' },
      ...from(secret, '203.0.113.7'),
    })
    const { id: task_id } = await task.json()
    const calls: [string, object?][] = [
      ['/v1/chat/completions', CHAT],
      ['/v1/messages', { ...CHAT, max_tokens: 9 }],
      ['/v1/models'],
      [`/v1/videos/${task_id}`],
    ]
    for (const [path, json] of calls) {
      const at = (address: string) => gateway.call(path, { ...(json && { json }), ...from(secret, address) })
      expect([path, (await at('198.51.100.1, 203.0.113.7')).status]).toEqual([path, 200])
      const refused = await at('203.0.113.7, 198.51.100.1')
      expect([path, refused.status]).toEqual([path, 403])
      expect(await refused.text()).toContain('may not be used from the address 198.51.100.1.')
    }
  })

  test('is refused by the address of the connection where no proxy is trusted', async () => {
    const gateway = await start()
    const { secret } = await gateway.instance.tokens.issue({ name: 'a', allowed_addresses })
    expect(await codeOf(gateway.chat(CHAT, from(secret, '203.0.113.7')))).toEqual([403, 'address_not_allowed'])
    await gateway.instance.tokens.update('a', { allowed_addresses: ['127.0.0.0/8'] })
    expect(await codeOf(gateway.chat(CHAT, from(secret, '198.51.100.1')))).toBe(200)
  })
})

test('a stream ends within a second after the project of its token is disabled', async () => {
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  const gateway = await start({ providers: { v: { base_url: vendor.url, key: 'vendor-key' } }, models: { 'v/m': {} } })
  const { project_id } = await gateway.instance.projects.create({ name: 'p' })
  const { secret } = await gateway.instance.tokens.issue({ name: 'a', project_id })
  vendor.answer(stream([chunk({ content: 'Begun' })], { hangAfter: 1 }))
  const response = await gateway.chat({ ...CHAT, model: 'v/m', stream: true }, as(secret))
  const text = response.text()
  await vendor.request(1)
  await gateway.instance.projects.update('p', { disabled: true })
  await passSecond(gateway)
  expect(await text).toContain('its project is not active')
})
