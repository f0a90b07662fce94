/** Passthrough through the whole gateway: the client and the provider have the same API. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { openPort } from './kit/served.ts'
import { type Answer, chunk, chunks, failure, hang, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'sk-the-vendors-own-key'
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8')
const MESSAGES = 'messages-compat' as const

type GatewaySetup = { gateway: TestGateway; vendor: Vendor; other: Vendor }

/** `a/m` has a Messages provider, `c/m` a chat-completions provider, `mixed/m` both. */
async function start(
  settings: { passthrough?: boolean; headers?: Record<string, string>; base?: object } = {},
): Promise<GatewaySetup> {
  const vendor = startVendor()
  const other = startVendor()
  const { passthrough = true, headers = {}, base = {} } = settings
  const gateway = await startGateway({
    ...base,
    providers: {
      a: { kind: MESSAGES, base_url: vendor.url, key: KEY, headers, quirks: { passthrough } },
      c: { base_url: other.url, key: KEY, headers, quirks: { passthrough } },
    },
    models: {
      'a/m': { targets: [{ provider: 'a', model: 'claude-sonnet-4-6' }], limits: { max_tokens: { maximum: 500 } } },
      'a/warm': { targets: [{ provider: 'a', model: 'other' }], limits: { temperature: { default: 0.3 } } },
      'c/m': { targets: [{ provider: 'c', model: 'vendor-model' }], limits: { max_tokens: { maximum: 500 } } },
      'mixed/m': {
        targets: [
          { provider: 'c', model: 'vendor-model' },
          { provider: 'a', model: 'claude-sonnet-4-6' },
        ],
      },
    },
  })
  closing.push(
    () => vendor.stop(),
    () => other.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, vendor, other }
}

const requestBody = (more: object = {}) => ({
  model: 'a/m',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  ...more,
})
const message = (more: object = {}) => ({
  id: 'msg_v',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-6',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
  ...more,
})
const sse = (name: string, options: Parameters<typeof stream>[1] = {}): Answer =>
  stream([fixture(name)], { done: false, ...options })
const post = (gateway: TestGateway, json: unknown, headers: Record<string, string> = {}) =>
  gateway.call('/v1/messages', { json, headers })
/** Reads the whole text, and reports when it has started. */
async function restOf(response: Response, started: () => void): Promise<string> {
  let text = ''
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString()
    started()
  }
  return text
}
/** The usage in the log. */
const usedIn = (gateway: TestGateway) =>
  gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"input_tokens"'))
    .map((line) => JSON.parse(line))
    .map(({ input_tokens, output_tokens, estimated, error }) => ({ input_tokens, output_tokens, estimated, error }))

describe('a request with passthrough', () => {
  test('stays unchanged except for the model: cache markers, signatures, tools and fields that only the vendor knows', async () => {
    const { gateway, vendor } = await start()
    vendor.answer(whole(message()))
    const body = requestBody({
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'EqQB/signed==' },
            { type: 'redacted_thinking', data: 'EmwK' },
            { type: 'brand_new_block', anything: [1, null] },
            { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
            { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ encrypted_content: 'E' }] },
            { type: 'text', text: 'It is.' },
          ],
        },
        { role: 'user', content: 'And?' },
      ],
      tools: [{ type: 'code_execution_20260120', name: 'code_execution' }],
      mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'm' }],
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      unseen: { field: true },
      temperature: null,
    })
    const response = await post(gateway, body)
    expect(response.status).toBe(200)
    expect(vendor.requests[0]?.path).toBe('/v1/messages')
    expect(vendor.requests[0]?.json()).toEqual({ ...body, model: 'claude-sonnet-4-6' })
  })

  test('has a whole answer with the name of the model, also where the vendor names none', async () => {
    const { gateway, vendor } = await start()
    const { model: _, ...unnamed } = message()
    vendor.answer(whole(unnamed))
    const answer = await (await post(gateway, requestBody())).json()
    expect(answer).toEqual({ ...message(), model: requestBody().model })
  })

  test('has the vendor’s version and beta headers, and no others', async () => {
    const { gateway, vendor } = await start({ headers: { 'anthropic-beta': 'files-api-2025-04-14' } })
    vendor.answer(whole(message()))
    await post(gateway, requestBody(), {
      'anthropic-beta': 'context-1m-2025-08-07,files-api-2025-04-14',
      'anthropic-version': '2024-01-01',
      'openai-beta': 'assistants=v2',
      cookie: 'session=secret',
      'x-api-key': 'somebody',
      'x-forwarded-for': '10.0.0.1',
      'proxy-authorization': 'Basic x',
      te: 'trailers',
      'x-stainless-lang': 'js',
    })
    const headers = vendor.requests[0]?.headers ?? {}
    expect(headers['anthropic-beta']).toBe('files-api-2025-04-14,context-1m-2025-08-07')
    expect(headers['anthropic-version']).toBe('2024-01-01')
    expect(headers['x-api-key']).toBe(KEY)
    const known = ['accept', 'accept-encoding', 'anthropic-beta', 'anthropic-version', 'connection', 'content-length']
    expect(
      Object.keys(headers)
        .filter((name) => !known.includes(name))
        .sort(),
    ).toEqual(['content-type', 'host', 'user-agent', 'x-api-key', 'x-request-id'])
    expect(JSON.stringify(headers)).not.toContain(gateway.token)
  })

  test('loses a header with any other content', async () => {
    const { gateway, vendor } = await start()
    vendor.answer(whole(message()))
    await post(gateway, requestBody(), { 'anthropic-beta': `x${'y'.repeat(1001)}`, 'anthropic-version': '"<script>"' })
    expect(vendor.requests[0]?.headers['anthropic-beta']).toBeUndefined()
    expect(vendor.requests[0]?.headers['anthropic-version']).toBe('2023-06-01')
  })

  test('has beta headers for a chat-completions provider too', async () => {
    const { gateway, other } = await start()
    await gateway.chat(
      { model: 'c/m', messages: requestBody().messages },
      { headers: { 'openai-beta': 'x=v1', cookie: 'a=b' } },
    )
    expect(other.requests[0]?.headers).toMatchObject({ 'openai-beta': 'x=v1', authorization: `Bearer ${KEY}` })
    expect(other.requests[0]?.headers.cookie).toBeUndefined()
  })

  test('stays unchanged for a token count, except for fields that are not part of a prompt', async () => {
    const { gateway, vendor, other } = await start()
    vendor.answer(whole({ input_tokens: 4711, context_management: {} }))
    const { max_tokens: _, ...prompt } = requestBody({
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      tools: [{ type: 'code_execution_20260120', name: 'code_execution' }],
      mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'm' }],
      unseen: { field: true },
    })
    const json = { ...prompt, stream: true, metadata: { user_id: 'u' }, max_tokens: 9 }
    const headers = { 'anthropic-beta': 'mcp-client-2025-11-20' }
    const counted = await gateway.call('/v1/messages/count_tokens', { json, headers })
    expect(await counted.json()).toEqual({ input_tokens: 4711 })
    expect(vendor.requests[0]).toMatchObject({ path: '/v1/messages/count_tokens', headers })
    expect(vendor.requests[0]?.json()).toEqual({ ...prompt, model: 'claude-sonnet-4-6' })
    const refused = await gateway.call('/v1/messages/count_tokens', { json: { ...json, model: 'c/m' } })
    expect([refused.status, other.requests.length]).toEqual([400, 0])
  })

  test("loses the gateway's own fields, and reasoning that another vendor signed", async () => {
    const { gateway, vendor } = await start()
    vendor.answer(whole(message()))
    const foreign = `gatehouse.${Buffer.from(JSON.stringify(['contentgen-compat', 'sig', null, null])).toString('base64url')}`
    const body = requestBody({
      provider_options: { google: { a: 1 } },
      thinking_enabled: true,
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'a', signature: foreign },
            { type: 'thinking', thinking: 'unsigned', signature: 'gatehouse.plain' },
            { type: 'thinking', thinking: 'b', signature: 'own' },
            { type: 'text', text: 'Yes' },
          ],
        },
        { role: 'user', content: 'And?' },
      ],
    })
    await post(gateway, body)
    const sent = vendor.requests[0]?.json() as ReturnType<typeof requestBody>
    expect(Object.keys(sent).sort()).toEqual(['max_tokens', 'messages', 'model'])
    expect(sent.messages[1]?.content).toEqual([
      { type: 'thinking', thinking: 'b', signature: 'own' },
      { type: 'text', text: 'Yes' },
    ] as never)
  })
})

describe('limits of the catalogue with passthrough', () => {
  test('refuse a value out of range with the client’s field, before the provider is called', async () => {
    const { gateway, vendor, other } = await start()
    const refused = await post(gateway, requestBody({ max_tokens: 501, brand_new: 1, mcp_servers: [{ name: 'x' }] }))
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ type: 'error', error: { details: { param: 'max_tokens' } } })
    expect((await post(gateway, requestBody({ max_tokens: 500 }))).status).not.toBe(400)
    const chat = await gateway.chat({ model: 'c/m', max_tokens: 501, messages: requestBody().messages, stream: true })
    expect([chat.status, other.requests.length, vendor.requests.length]).toEqual([400, 0, 1])
  })

  test('add a default for a field that the client did not set', async () => {
    const { gateway, vendor } = await start()
    vendor.answer(whole(message()), whole(message()))
    await post(gateway, requestBody({ model: 'a/warm' }))
    await post(gateway, requestBody({ model: 'a/warm', temperature: 0.9 }))
    expect(vendor.requests.map((request) => request.json().temperature)).toEqual([0.3, 0.9])
  })

  test.each([
    ['no messages', { messages: [] }, 'messages'],
    ['no max_tokens', { max_tokens: undefined }, 'max_tokens'],
    ['a stream that is none', { stream: 'yes' }, 'stream'],
  ])('refuse %s even among content that only the vendor knows', async (_, more, param) => {
    const { gateway, vendor } = await start()
    const response = await post(gateway, requestBody({ mcp_servers: [{ name: 'x' }], ...more }))
    expect(await response.json()).toMatchObject({ error: { details: { param } } })
    expect([response.status, vendor.requests.length]).toEqual([400, 0])
  })

  test('prevent a request from naming another model of the provider', async () => {
    const { gateway, vendor } = await start()
    const tools = [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-5' }]
    const response = await post(gateway, requestBody({ tools }))
    expect([response.status, vendor.requests.length]).toEqual([400, 0])
  })

  test('refuse a body that is too large', async () => {
    const { gateway, vendor } = await start({ base: { server: { max_body_bytes: 2000 } } })
    const response = await post(gateway, requestBody({ unseen: 'x'.repeat(2000) }))
    expect([response.status, vendor.requests.length]).toEqual([413, 0])
  })
})

describe('a response with passthrough', () => {
  test('stays byte for byte the same, except for the model', async () => {
    const { gateway, vendor } = await start()
    const source = fixture('messages-compat/whole.json')
    vendor.answer(whole(source, { headers: { 'set-cookie': 'a=b', 'anthropic-organization-id': 'org', server: 'x' } }))
    const response = await post(gateway, requestBody())
    expect(await response.text()).toBe(source.replace('"claude-sonnet-4-6"', '"a/m"'))
    const headers = Object.fromEntries(response.headers)
    expect(headers['content-type']).toBe('application/json;charset=utf-8')
    for (const name of ['set-cookie', 'anthropic-organization-id', 'server']) expect(headers[name]).toBeUndefined()
  })

  test.each(['text', 'thinking-tools', 'unseen', 'web-search', 'refusal'])(
    'stays byte for byte the same in the stream %s',
    async (name) => {
      const { gateway, vendor } = await start()
      vendor.answer(sse(`messages-compat/${name}.sse`, { chunkBytes: 37 }))
      const response = await post(gateway, requestBody({ stream: true }))
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      const source = fixture(`messages-compat/${name}.sse`).replace(/"model": ?"[^"]*"/, (found) =>
        found.replace(/"[^"]*"$/, '"a/m"'),
      )
      expect(await response.text()).toBe(source.replace(/^:.*\n\n/gm, ''))
      expect(vendor.requests[0]?.json()).toMatchObject({ stream: true })
    },
  )

  test('is streamed if it is whole although a stream was requested', async () => {
    const { gateway, vendor, other } = await start()
    vendor.answer(whole(message()))
    const text = await (await post(gateway, requestBody({ stream: true }))).text()
    expect(text).toContain('event: message_start')
    expect(text).toEndWith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
    other.answer(whole({ id: 'x', choices: [{ message: { content: 'Hi' } }] }))
    const chat = await gateway.chat({ model: 'c/m', messages: requestBody().messages, stream: true })
    expect(await chat.text()).toMatch(/"content":"Hi"[\s\S]*\[DONE\]/)
  })

  test('has the same usage as translation, for complete and for cut responses', async () => {
    const names = ['messages-compat/text.sse', 'messages-compat/thinking-tools.sse', 'messages-compat/web-search.sse']
    const chats = readdirSync(new URL('./fixtures/chatcompat/', import.meta.url))
      .filter((name) => name.endsWith('.sse'))
      .map((name) => `chatcompat/${name}`)
    const counted = await Promise.all(
      [true, false].map(async (passthrough) => {
        const { gateway, vendor, other } = await start({ passthrough })
        for (const name of [...names, ...chats]) {
          for (const share of [1, 0.8, 0.5]) {
            const isChat = name.startsWith('chatcompat')
            const all = fixture(name)
            const to = isChat ? other : vendor
            to.answer(stream([all.slice(0, Math.floor(all.length * share))], { done: false, framing: 'close' }))
            const ask = isChat
              ? { model: 'c/m', messages: requestBody().messages, stream: true }
              : requestBody({ stream: true })
            await (isChat ? gateway.chat(ask) : post(gateway, ask)).then((response) => response.text())
          }
        }
        await gateway.instance.drain({ deadline_ms: 0 }) // estimates end after their responses, in any order
        return usedIn(gateway).sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
      }),
    )
    expect(counted[0]?.length).toBe((names.length + chats.length) * 3)
    expect(counted[0]).toEqual(counted[1])
    expect(counted[0]?.some(({ estimated }) => estimated)).toBe(true)
  })
})

describe('errors with passthrough', () => {
  test.each([401, 403])("never report the provider's %d as the client's", async (status) => {
    const { gateway, vendor, other } = await start()
    const body = { type: 'error', error: { type: 'authentication_error', message: `invalid x-api-key ${KEY}` } }
    for (const more of [{}, { stream: true }]) {
      vendor.answer(whole(body, { status, headers: { 'request-id': 'r' } }))
      const response = await post(gateway, requestBody(more))
      const text = await response.text()
      expect(response.status).toBe(502)
      expect(JSON.parse(text)).toMatchObject({
        type: 'error',
        error: { type: 'api_error', details: { error_code: 'upstream_auth' } },
      })
      expect(text).not.toContain(KEY)
    }
    other.answer(failure(status))
    expect((await gateway.chat({ model: 'c/m', messages: requestBody().messages, stream: true })).status).toBe(502)
    expect(gateway.logged()).not.toContain(KEY)
  })

  test('have a status if the error is the first event', async () => {
    const { gateway, vendor } = await start()
    vendor.answer(
      stream(['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'], {
        done: false,
      }),
    )
    const response = await post(gateway, requestBody({ stream: true }))
    expect([response.status, (await response.json()).error.type]).toEqual([529, 'overloaded_error'])
  })

  test("end a stream in the client's format, without the provider's secrets, and are logged", async () => {
    const { gateway, vendor } = await start()
    const [begin = ''] = fixture('messages-compat/text.sse').split('event: message_delta')
    const error = { type: 'error', error: { type: 'overloaded_error', message: `key ${KEY}`, secret: KEY } }
    vendor.answer(stream([begin, `event: error\ndata: ${JSON.stringify(error)}\n\n`], { done: false }))
    const text = await (await post(gateway, requestBody({ stream: true }))).text()
    const [, data = ''] = /event: error\ndata: (.*)\n\n$/.exec(text) ?? []
    expect(JSON.parse(data)).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error', details: { error_code: 'server_is_overloaded' } },
    })
    await gateway.instance.drain({ deadline_ms: 60_000 }) // a failure does not wait for its record
    expect(text + gateway.logged()).not.toContain(KEY)
    expect(usedIn(gateway)[0]).toMatchObject({ error: 'server_is_overloaded' })
  })

  test.each(['cutAfter', 'resetAfter'] as const)('end an interrupted stream with an error event (%s)', async (how) => {
    const { gateway, vendor, other } = await start()
    const [begin = ''] = fixture('messages-compat/text.sse').split('event: message_delta')
    const accepted = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    vendor.answer(stream([begin, accepted[0]?.promise, 'event: message_de'] as never, { done: false, [how]: 2 }))
    const text = await restOf(await post(gateway, requestBody({ stream: true })), () => accepted[0]?.resolve())
    expect(text).toMatch(/event: error\ndata: .*upstream_cut.*\n\n$/)
    expect(text).not.toContain('message_de')
    const summary = chunk({ role: 'assistant', content: 'Hi' })
    other.answer(stream([summary, accepted[1]?.promise, 'data: {"id"'] as never, { done: false, [how]: 2 }))
    const chat = await gateway.chat({ model: 'c/m', messages: requestBody().messages, stream: true })
    expect(await restOf(chat, () => accepted[1]?.resolve())).toMatch(
      /"content":"Hi".*\n\ndata: \{"error":.*upstream_cut.*\n\n$/,
    )
  })

  test('do not keep the provider connected after the client disconnects', async () => {
    const { gateway, vendor } = await start()
    const [begin = ''] = fixture('messages-compat/text.sse').split('event: message_delta')
    vendor.answer(stream([begin], { done: false, hangAfter: 1 }))
    const reader = (await post(gateway, requestBody({ stream: true }))).body?.getReader()
    await reader?.read()
    await reader?.cancel()
    await vendor.aborted
  })

  test('fill silence, and end it after the idle timeout', async () => {
    const { gateway, vendor } = await start()
    vendor.answer(hang())
    const requested = post(gateway, requestBody({ stream: true }))
    await vendor.request()
    gateway.clock.advance(20_000)
    const reader = (await requested).body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toStartWith('event: ping\n')
    const next = reader?.read()
    gateway.clock.advance(20_000)
    expect(new TextDecoder().decode((await next)?.value)).toStartWith('event: ping\n')
    await reader?.cancel()
  })
})

describe('the choice between passthrough and translation', () => {
  test('is made for each target, and another one is tried while nothing was sent', async () => {
    const { gateway, vendor, other } = await start()
    other.answer(failure(503))
    vendor.answer(sse('messages-compat/text.sse'))
    const body = requestBody({
      model: 'mixed/m',
      stream: true,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] }],
    })
    const text = await (await post(gateway, body)).text()
    expect(text).toContain('"mixed/m"')
    expect(JSON.stringify(other.requests[0]?.json())).not.toContain('cache_control')
    expect(JSON.stringify(vendor.requests[0]?.json())).toContain('cache_control')
    vendor.answer(sse('messages-compat/text.sse'))
    other.answer(failure(503), stream(chunks('Hel', 'lo')))
    const chat = await gateway.chat({ model: 'mixed/m', messages: requestBody().messages, stream: true })
    expect(await chat.text()).toContain('[DONE]')
  })

  test('sends a request that cannot be translated only to providers of the same API', async () => {
    const { gateway, vendor, other } = await start()
    vendor.answer(whole(message()))
    const body = requestBody({ model: 'mixed/m', mcp_servers: [{ type: 'url', url: 'https://m.example', name: 'm' }] })
    expect((await post(gateway, body)).status).toBe(200)
    expect([vendor.requests.length, other.requests.length]).toEqual([1, 0])
    const refused = await post(gateway, { ...body, model: 'c/m' })
    expect(await refused.json()).toMatchObject({
      error: { details: { error_code: 'unsupported_parameter', param: 'mcp_servers' } },
    })
    expect([refused.status, other.requests.length]).toEqual([400, 0])
  })

  test('sends a thread only to its own vendor, to start and to continue it', async () => {
    const { gateway, vendor, other } = await start()
    for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }]) {
      vendor.answer(whole(message()))
      expect((await post(gateway, requestBody({ model: 'mixed/m', thread }))).status).toBe(200)
      expect(vendor.requests.at(-1)?.json().thread).toEqual(thread)
      const refused = await post(gateway, requestBody({ model: 'c/m', thread }))
      expect([refused.status, await refused.json()]).toMatchObject([
        400,
        { error: { type: 'invalid_request_error', details: { error_code: 'thread_unsupported_request' } } },
      ])
    }
    expect(other.requests.length).toBe(0)
  })

  test('is always translation for a provider with that setting', async () => {
    const { gateway, vendor } = await start({ passthrough: false })
    vendor.answer(sse('messages-compat/unseen.sse'))
    const text = await (await post(gateway, requestBody({ stream: true, unseen: 1 }))).text()
    expect(text).toContain('event: message_stop')
    expect(vendor.requests[0]?.json()).not.toHaveProperty('unseen')
    expect((await post(gateway, requestBody({ mcp_servers: [{ name: 'x' }] }))).status).toBe(400)
  })
})

describe('client libraries with passthrough', () => {
  async function served() {
    const vendor = startVendor()
    const port = await openPort({
      providers: {
        a: { kind: MESSAGES, base_url: vendor.url, key: KEY },
        c: { base_url: vendor.url, key: KEY },
      },
      models: { 'a/m': {}, 'c/m': {} },
    })
    closing.push(
      () => port.close(),
      () => vendor.stop(),
    )
    return { vendor, port }
  }

  test('@anthropic-ai/sdk: receives server tools and thinking, and sends them back unchanged', async () => {
    const { vendor, port } = await served()
    const client = new Anthropic({ apiKey: port.token, baseURL: port.url.replace(/\/v1$/, ''), maxRetries: 0 })
    vendor.answer(sse('messages-compat/web-search.sse'), sse('messages-compat/thinking-tools.sse'), whole(message()))
    const first = { role: 'user' as const, content: 'What is the weather?' }
    const ask = (messages: Anthropic.Beta.BetaMessageParam[]) => ({
      model: 'a/m',
      max_tokens: 300,
      betas: ['web-search-2025-03-05'],
      tools: [{ type: 'web_search_20250305' as const, name: 'web_search' as const, max_uses: 2 }],
      messages,
    })
    const searched = await client.beta.messages.stream(ask([first])).finalMessage()
    expect(searched.content.map(({ type }) => type)).toEqual(['server_tool_use', 'web_search_tool_result', 'text'])
    expect([searched.model, searched.id, searched.stop_reason]).toEqual(['a/m', 'msg_01ABCdef', 'end_turn'])
    expect(searched.usage.server_tool_use).toEqual({ web_search_requests: 1 } as never)
    const history = [
      first,
      { role: 'assistant' as const, content: searched.content },
      { role: 'user' as const, content: 'And in Rome?' },
    ]
    const thought = await client.beta.messages.stream(ask(history)).finalMessage()
    expect(thought.content.slice(0, 2)).toEqual([
      { type: 'thinking', thinking: 'Two cities, two calls.', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' },
      { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a' },
    ])
    expect(vendor.requests[1]?.json()).toMatchObject({
      messages: history,
      tools: [{ type: 'web_search_20250305', max_uses: 2 }],
    })
    expect(vendor.requests[1]?.headers['anthropic-beta']).toBe('web-search-2025-03-05')
    const results = thought.content
      .filter((block) => block.type === 'tool_use')
      .map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'Sunny' }))
    const last = await client.beta.messages.create(
      ask([...history, { role: 'assistant', content: thought.content }, { role: 'user', content: results }]),
    )
    expect(last.content).toEqual([{ type: 'text', text: 'Hi' }] as never)
    const sent = vendor.requests[2]?.json().messages as object[] | undefined
    expect(sent?.[3]).toEqual({
      role: 'assistant',
      content: thought.content,
    })
  })

  test('openai: receives text, reasoning, calls and usage', async () => {
    const { vendor, port } = await served()
    const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
    vendor.answer(stream([fixture('chatcompat/openai.sse')], { done: false }))
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const summary = client.chat.completions.stream({ model: 'c/m', messages, stream_options: { include_usage: true } })
    expect(await summary.finalContent()).toBe('Guten Tag')
    expect((await summary.finalChatCompletion()).model).toBe('c/m')
    expect((await summary.totalUsage()).total_tokens).toBeGreaterThan(0)
    vendor.answer(stream([fixture('chatcompat/openai-tools.sse')], { done: false }))
    const calls = await client.chat.completions.stream({ model: 'c/m', messages }).finalChatCompletion()
    expect(calls.choices[0]?.finish_reason).toBe('tool_calls')
    for (const call of calls.choices[0]?.message.tool_calls ?? []) {
      expect(() => JSON.parse(call.type === 'function' ? call.function.arguments : 'none')).not.toThrow()
    }
    vendor.answer(stream([fixture('chatcompat/deepseek.sse')], { done: false }))
    let reasoning = ''
    for await (const { choices } of await client.chat.completions.create({ model: 'c/m', messages, stream: true })) {
      reasoning += (choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? ''
    }
    expect(reasoning).not.toBe('')
  })
})
