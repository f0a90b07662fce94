/** Passthrough of Responses and contentgen through the whole gateway. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { openPort } from './kit/served.ts'
import { type Answer, failure, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'sk-the-vendors-own-key'
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8')
const fixturesOf = (kind: string) =>
  readdirSync(new URL(`./fixtures/${kind}/`, import.meta.url))
    .filter((name) => name.endsWith('.sse'))
    .map((name) => `${kind}/${name}`)

type GatewaySetup = { gateway: TestGateway; open: Vendor; gemini: Vendor; other: Vendor; claude: Vendor }

const providersAt = (vendors: Record<'r' | 'g' | 'c' | 'a', Vendor>, quirks: object = {}) => ({
  r: { kind: 'responses-compat' as const, base_url: vendors.r.url, key: KEY, quirks },
  g: { kind: 'contentgen-compat' as const, base_url: vendors.g.url, key: KEY, quirks },
  a: { kind: 'messages-compat' as const, base_url: vendors.a.url, key: KEY, quirks },
  c: { base_url: vendors.c.url, key: KEY, quirks },
})

/**
 * `r/m` has a Responses provider, `g/m` a contentgen provider, `c/m` a chat-completions provider; `mixed/..` have
 * two.
 */
async function start({
  passthrough = true,
  more = {},
}: {
  passthrough?: boolean
  more?: object
} = {}): Promise<GatewaySetup> {
  const [open, gemini, other, claude] = [startVendor(), startVendor(), startVendor(), startVendor()]
  const limits = { max_tokens: { maximum: 500 }, temperature: { default: 0.3 } }
  const plain = { provider: 'c', model: 'vendor-model' }
  const gateway = await startGateway({
    providers: providersAt({ r: open, g: gemini, c: other, a: claude }, { passthrough }),
    models: {
      'r/m': { targets: [{ provider: 'r', model: 'gpt-4.1' }], limits },
      'r/thinks': { targets: [{ provider: 'r', model: 'gpt-5.1' }] },
      'g/m': { targets: [{ provider: 'g', model: 'gemini-2.5-flash' }], limits },
      'a/m': { targets: [{ provider: 'a', model: 'claude-sonnet-4-6' }] },
      'c/m': { targets: [plain] },
      'r/blind': { targets: [{ provider: 'r', model: 'gpt-4.1' }], capabilities: { image_input: false } },
      'g/blind': { targets: [{ provider: 'g', model: 'gemma-3' }], capabilities: { image_input: false } },
      'mixed/r': { targets: [plain, { provider: 'r', model: 'gpt-5.1' }] },
      'mixed/g': { targets: [plain, { provider: 'g', model: 'gemini-2.5-flash' }] },
    },
    ...more,
  })
  closing.push(
    () => open.stop(),
    () => gemini.stop(),
    () => other.stop(),
    () => claude.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, open, gemini, other, claude }
}

const sse = (name: string, options: Parameters<typeof stream>[1] = {}): Answer =>
  stream([fixture(name)], { done: false, ...options })
/** Estimates end after their responses, in any order: the gateway is drained first. */
async function usedIn(gateway: TestGateway) {
  const lines = await linesOf(gateway)
  return lines.map(usedBy).sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
}

async function linesOf(gateway: TestGateway): Promise<Record<string, unknown>[]> {
  await gateway.instance.drain({ deadline_ms: 0 })
  return gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"input_tokens"'))
    .map((line) => JSON.parse(line))
}

const usedBy = ({ input_tokens, output_tokens, estimated, error }: Record<string, unknown>) => ({
  input_tokens,
  output_tokens,
  estimated,
  error,
})
const withoutComments = (text: string) => text.replace(/^:.*\n\n/gm, '')

/**
 * Sends the same requests with passthrough and with translation: what each has used by the log, and whether it delivered
 * anything. Cut streams end with the connection, as if they were complete.
 */
async function countedBothWays(
  names: string[],
  ask: (gateway: TestGateway) => Promise<Response>,
  of: 'open' | 'gemini',
) {
  return await Promise.all(
    [true, false].map(async (passthrough) => {
      const all = await start({ passthrough })
      const calls: { id: string | null; isDelivered: boolean }[] = []
      for (const name of names) {
        for (const share of [1, 0.8, 0.5]) {
          const text = fixture(name)
          const summary = text.slice(0, Math.floor(text.length * share))
          all[of].answer(stream([summary], { done: false, framing: 'close' }))
          const response = await ask(all.gateway)
          await response.text()
          calls.push({ id: response.headers.get('x-request-id'), isDelivered: response.ok })
        }
      }
      const lines = await linesOf(all.gateway)
      return calls.map(({ id, isDelivered }) => {
        const line = lines.find(({ request_id }) => request_id === id)
        return { isDelivered, used: line && usedBy(line) }
      })
    }),
  )
}

type Counted = Awaited<ReturnType<typeof countedBothWays>>

/** A cut call that has delivered nothing is not charged: translation delivers less than passthrough. */
function expectEqualUsage(names: string[], [relayed = [], translated = []]: Counted): void {
  expect(relayed).toHaveLength(names.length * 3)
  const isCutBefore = (at: number) => {
    const { isDelivered, used } = translated[at] ?? {}
    return !isDelivered && used?.error === 'upstream_cut'
  }
  const nothing = { input_tokens: 0, output_tokens: 0, estimated: undefined, error: 'upstream_cut' }
  const expected = relayed.map(({ used }, at) => (isCutBefore(at) ? nothing : used))
  expect(translated.map(({ used }) => used)).toEqual(expected)
  expect(expected.filter((one) => one?.estimated).length).toBeGreaterThan(0)
}

describe('Responses passthrough through the gateway', () => {
  const requestBody = (more: object = {}) => ({ model: 'r/m', input: 'Hello', ...more })
  const post = (gateway: TestGateway, json: unknown, headers: Record<string, string> = {}) =>
    gateway.call('/v1/responses', { json, headers })
  const SERVER_ITEMS = [
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
    {
      type: 'code_interpreter_call',
      id: 'ci_1',
      status: 'completed',
      code: '1+1',
      container_id: 'cntr',
      outputs: null,
    },
    { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f', arguments: '{}', server_label: 's' },
    { type: 'brand_new_item', id: 'bn_1', anything: [1, null] },
  ]
  const thought = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAAA==' }
  const texts = (text: string) => ({
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  })
  const response = (output: object[], more: object = {}) => ({
    id: 'resp_v',
    object: 'response',
    created_at: 1_741_476_542,
    status: 'completed',
    model: 'gpt-4.1-2025',
    output,
    store: false,
    previous_response_id: null,
    usage: {
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 5,
    },
    unseen: { a: [null] },
    ...more,
  })

  test('forwards the client’s body unchanged except for the model, and the provider stores nothing', async () => {
    const { gateway, open } = await start()
    open.answer(whole(response([texts('Hi')])), whole(response([texts('Hi')])))
    const body = requestBody({
      input: [{ role: 'user', content: 'Hi' }, thought, ...SERVER_ITEMS, { role: 'user', content: 'And?' }],
      tools: [
        { type: 'code_interpreter', container: { type: 'auto' } },
        { type: 'mcp', server_label: 's', server_url: 'https://mcp.example.com' },
      ],
      tool_choice: { type: 'mcp', server_label: 's' },
      include: ['code_interpreter_call.outputs'],
      context_management: [{ type: 'compaction' }],
      temperature: 0.9,
      max_output_tokens: 100,
      metadata: null,
    })
    const headers = { 'openai-beta': 'x=v1', cookie: 'a=b', 'openai-organization': 'org-theirs' }
    expect((await post(gateway, { ...body, store: false }, headers)).status).toBe(200)
    const [first] = open.requests
    expect(first?.path).toBe('/v1/responses')
    expect(first?.json()).toEqual({ ...body, model: 'gpt-4.1', store: false })
    expect(first?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'openai-beta': 'x=v1' })
    expect(first?.headers).not.toHaveProperty('cookie')
    expect(first?.headers).not.toHaveProperty('openai-organization')
    expect(JSON.stringify(first?.headers)).not.toContain(gateway.token)
    expect((await post(gateway, body)).status).toBe(200)
    expect(open.requests[1]?.json()).toEqual({ ...body, model: 'gpt-4.1', store: false })
  })

  test('applies limits and defaults of the catalogue, also to a body with vendor-specific content', async () => {
    const { gateway, open } = await start()
    const tools = [{ type: 'code_interpreter' }]
    for (const more of [{}, { tools }]) {
      const refused = await post(gateway, requestBody({ max_output_tokens: 501, ...more }))
      expect([refused.status, open.requests.length]).toEqual([400, 0])
      expect(await refused.json()).toMatchObject({ error: { param: 'max_output_tokens' } })
      expect((await post(gateway, requestBody({ stream: 'yes', ...more }))).status).toBe(400)
    }
    open.answer(whole(response([])), whole(response([])))
    await post(gateway, requestBody({ tools, max_output_tokens: 500 }))
    expect(open.requests[0]?.json()).toMatchObject({ temperature: 0.3, max_output_tokens: 500, tools })
    await post(gateway, requestBody({ temperature: 0.8, max_output_tokens: 2 }))
    // The vendor's minimum is 16.
    expect(open.requests[1]?.json()).toMatchObject({ temperature: 0.8, max_output_tokens: 16 })
  })

  test.each([
    ['another model', { tools: [{ type: 'image_generation', model: 'gpt-image-9' }] }],
    ['a prompt in the operator’s account', { prompt: { id: 'pmpt_1' } }],
    ['a field of chat completions', { messages: [], tools: [{ type: 'code_interpreter' }] }],
    ['an answer in the background', { background: true, tools: [{ type: 'code_interpreter' }] }],
  ])('refuses %s as translation does', async (_, more) => {
    const { gateway, open } = await start()
    const refused = await post(gateway, requestBody(more))
    expect([refused.status, open.requests.length]).toEqual([400, 0])
  })

  test.each(fixturesOf('responses-compat').filter((name) => !/error|failed|imitator|terse/.test(name)))(
    'forwards %s byte for byte except for the model, to a client that stores nothing',
    async (name) => {
      const { gateway, open } = await start()
      open.answer(sse(name, { chunkBytes: 37 }))
      const answer = await post(gateway, requestBody({ stream: true, store: false }))
      expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      expect(await answer.text()).toBe(withoutComments(fixture(name)).replaceAll(/"model":"[^"]*"/g, '"model":"r/m"'))
    },
  )

  test('forwards a whole response byte for byte, except for the model', async () => {
    const { gateway, open } = await start()
    const source = fixture('responses-compat/whole.json')
    open.answer(whole(source, { headers: { 'openai-organization': 'org', 'set-cookie': 'a=b' } }))
    const answer = await post(gateway, requestBody({ store: false }))
    expect(await answer.text()).toBe(source.replace(/"model": ?"[^"]*"/, (found) => found.replace(/"[^"]*"$/, '"r/m"')))
    expect([...answer.headers.keys()]).not.toContain('openai-organization')
  })

  test('streams a whole response if a stream was requested', async () => {
    const { gateway, open } = await start()
    open.answer(whole(response([texts('Hi')])))
    expect(await (await post(gateway, requestBody({ stream: true }))).text()).toMatch(
      /event: response.completed\n.*"r\/m".*\n\n$/,
    )
  })

  /** A streamed response of the provider. */
  const streamedResponse = (output: object[]) => {
    let number = 0
    const event = (type: string, more: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...more })}\n\n`
    return [
      event('response.created', { response: response([], { status: 'in_progress', usage: null }) }),
      ...output.flatMap((item, output_index) => [
        event('response.output_item.added', { output_index, item }),
        event('response.output_item.done', { output_index, item }),
      ]),
      event('response.completed', { response: response(output) }),
    ].join('')
  }
  const ended = (text: string) =>
    JSON.parse(/event: response\.completed\ndata: (.*)\n\n$/.exec(text)?.[1] ?? '{}').response

  test('stores the whole response under the gateway’s ids, and returns it to its provider unchanged', async () => {
    const { gateway, open } = await start()
    const ask = (more: object) => post(gateway, { ...requestBody(more), model: 'r/thinks' })
    for (const isStream of [true, false]) {
      const output = [thought, ...SERVER_ITEMS, texts('Done.')]
      open.answer(isStream ? stream([streamedResponse(output)], { done: false }) : whole(response(output)))
      const answer = await ask({ stream: isStream, input: [{ role: 'user', content: 'Hello' }] })
      const stored = isStream ? ended(await answer.text()) : await answer.json()
      expect(stored.id).toMatch(/^resp_[A-Za-z0-9]{24}$/)
      expect(stored).toMatchObject({ store: true, model: 'r/thinks', unseen: { a: [null] } })
      const bare = ({ id: _, encrypted_content: __, ...item }: Record<string, unknown>) => item
      expect(stored.output.map(bare)).toEqual(output.map(bare))
      expect(JSON.stringify(stored)).not.toMatch(/encrypted|"(rs|ws|ci|msg)_1"/)
      expect(open.requests.at(-1)?.json()).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })

      expect(await (await gateway.call(`/v1/responses/${stored.id}`)).json()).toEqual(stored)
      const whole_item = { include: 'reasoning.encrypted_content' }
      const shown = await gateway.call(`/v1/responses/${stored.id}?${new URLSearchParams(whole_item)}`)
      expect(JSON.stringify(await shown.json())).toContain('encrypted_content')

      const back = [thought, ...SERVER_ITEMS.map((item, at) => ({ ...item, id: stored.output[at + 1].id }))]
      const { id: _, ...spoken } = texts('Done.')
      open.answer(whole(response([texts('Yes.')])), whole(response([texts('Yes.')])))
      const next = await ask({ previous_response_id: stored.id, input: 'And?' })
      expect(await next.json()).toMatchObject({ previous_response_id: stored.id })
      expect(open.requests.at(-1)?.json()).toEqual({
        model: 'gpt-5.1',
        store: false,
        include: ['reasoning.encrypted_content'],
        input: [
          { type: 'message', role: 'user', content: 'Hello' },
          ...back,
          spoken,
          { type: 'message', role: 'user', content: 'And?' },
        ],
      })
      const [reasoning, search] = stored.output
      const refer = (id: string) => ({ type: 'item_reference', id })
      const last = await ask({ input: [refer(reasoning.id), refer(search.id), { role: 'user', content: 'So?' }] })
      expect(last.status).toBe(200)
      expect(open.requests.at(-1)?.json().input).toEqual([...back.slice(0, 2), { role: 'user', content: 'So?' }])
    }
  })

  test('continues a conversation, which the provider does not know', async () => {
    const { gateway, open } = await start()
    const create = await gateway.call('/v1/conversations', {
      json: { items: [{ type: 'message', role: 'user', content: 'Hello' }] },
    })
    const { id: conversation } = (await create.json()) as { id: string }
    for (const isStream of [true, false]) {
      const output = [thought, ...SERVER_ITEMS, texts('Done.')]
      open.answer(isStream ? stream([streamedResponse(output)], { done: false }) : whole(response(output)))
      const answer = await post(gateway, requestBody({ conversation, stream: isStream, input: 'Go' }))
      const ending = isStream ? ended(await answer.text()) : await answer.json()
      expect(ending).toMatchObject({ store: true, conversation: { id: conversation } })
      const sent = open.requests.at(-1)?.json() ?? {}
      expect(sent.conversation).toBeUndefined()
      const inputs = sent.input as object[]
      expect([inputs[0], inputs.at(-1)]).toMatchObject([{ content: 'Hello' }, { content: 'Go' }])
      expect(inputs).toHaveLength(isStream ? 2 : 2 + 1 + output.length)
    }
    const items = await gateway.call(`/v1/conversations/${conversation}/items?order=asc&limit=100`)
    const { data } = (await items.json()) as { data: { type: string }[] }
    const added = ['message', 'reasoning', ...SERVER_ITEMS.map(({ type }) => type), 'message']
    expect(data.map(({ type }) => type)).toEqual(['message', ...added, ...added])
    expect(JSON.stringify(data)).not.toContain('encrypted')
  })

  test('continues a stored response with one that is not stored, and says so', async () => {
    const { gateway, open } = await start()
    open.answer(whole(response([texts('One.')])), whole(response([texts('Two.')])))
    const { id } = (await (await post(gateway, requestBody())).json()) as { id: string }
    const next = await post(gateway, requestBody({ previous_response_id: id, store: false }))
    expect(await next.json()).toMatchObject({ id: 'resp_v', store: false, previous_response_id: id })
    expect(open.requests[1]?.json().input).toHaveLength(3)
    expect(
      await (await post(gateway, requestBody({ previous_response_id: 'resp_x', tools: [{ type: 'mcp' }] }))).json(),
    ).toMatchObject({
      error: { code: 'previous_response_not_found' },
    })
  })

  test('refuses unsupported input with its place, also in a body with vendor-specific content', async () => {
    const { gateway, open, gemini } = await start()
    const content = [{ type: 'input_image', image_url: 'https://a.example/a.png' }]
    const input = [
      { role: 'user', content: 'Hi' },
      { role: 'user', content },
    ]
    const refused = await post(gateway, { model: 'r/blind', input, tools: [{ type: 'code_interpreter' }] })
    expect([refused.status, (await refused.json()).error.param]).toEqual([400, 'input[1].content[0].type'])
    const contents = [{ parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'image/png', data: 'AA==' } }] }]
    const json = { contents, cachedContent: 'x' }
    const also = await gateway.call('/v1beta/models/g/blind:generateContent', { json })
    expect([also.status, (await also.json()).error.message]).toEqual([400, expect.stringContaining('contents[0]')])
    expect([open.requests.length, gemini.requests.length]).toEqual([0, 0])
  })

  test('continues a stored response at another provider, translated', async () => {
    const { gateway, open, other } = await start()
    open.answer(stream([streamedResponse([thought, ...SERVER_ITEMS, texts('Done.')])], { done: false }))
    const { id } = ended(await (await post(gateway, requestBody({ stream: true }))).text())
    await post(gateway, { model: 'c/m', previous_response_id: id, input: 'And?' })
    expect(other.requests[0]?.json().messages).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: 'And?' },
    ])
  })

  test('stores nothing of an interrupted response', async () => {
    const { gateway, open } = await start()
    const all = streamedResponse([texts('Done.')])
    open.answer(stream([all.slice(0, all.indexOf('event: response.completed'))], { done: false }))
    const text = await (await post(gateway, requestBody({ stream: true }))).text()
    const failed = JSON.parse(/event: response\.failed\ndata: (.*)\n\n$/.exec(text)?.[1] ?? '{}')
    expect(failed).toMatchObject({ sequence_number: 4, response: { output: [{ type: 'message' }], status: 'failed' } })
    expect((await gateway.call(`/v1/responses/${failed.response.id}`)).status).toBe(404)
    expect(await usedIn(gateway)).toMatchObject([{ error: 'upstream_cut', estimated: true }])
  })

  test('sends a request that cannot be translated only to providers of this API', async () => {
    const { gateway, open, other } = await start()
    const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }]
    open.answer(whole(response([texts('Hi')])))
    expect((await post(gateway, requestBody({ model: 'mixed/r', tools }))).status).toBe(200)
    expect([open.requests.length, other.requests.length]).toEqual([1, 0])
    const refused = await post(gateway, requestBody({ model: 'c/m', tools }))
    expect(await refused.json()).toMatchObject({ error: { code: 'unsupported_parameter', param: 'tools[0].type' } })
    expect([refused.status, other.requests.length]).toEqual([400, 0])
    other.answer(failure(503))
    open.answer(stream([streamedResponse([texts('Hi')])], { done: false }))
    expect(await (await post(gateway, requestBody({ model: 'mixed/r', stream: true }))).text()).toContain('"mixed/r"')
  })

  test('counts the same usage as translation, for complete and for cut responses', async () => {
    const names = fixturesOf('responses-compat')
    const counted = await countedBothWays(names, (gateway) => post(gateway, requestBody({ stream: true })), 'open')
    expectEqualUsage(names, counted)
  })

  test('returns errors in the client’s format, without the provider’s secrets', async () => {
    const { gateway, open } = await start()
    open.answer(whole({ error: { message: `bad key ${KEY}`, code: 'invalid_api_key' } }, { status: 401 }))
    expect((await post(gateway, requestBody({ stream: true }))).status).toBe(502)
    open.answer(sse('responses-compat/failed-at-once.sse'))
    expect((await post(gateway, requestBody({ stream: true }))).status).toBeGreaterThanOrEqual(400)
    const error = `event: error\ndata: ${JSON.stringify({ type: 'error', code: 'server_error', message: `key ${KEY}` })}\n\n`
    const all = streamedResponse([texts('Done.')])
    open.answer(stream([all.slice(0, all.indexOf('event: response.completed')), error], { done: false }))
    const text = await (await post(gateway, requestBody({ stream: true, store: false }))).text()
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))
    expect(numbers).toEqual([0, 1, 2, 3, 4])
    expect(text).toMatch(/event: error\n.*\n\nevent: response\.failed\n.*"id":"resp_v".*\n\n$/)
    expect(text + gateway.logged()).not.toContain(KEY)
  })
})

describe('contentgen passthrough through the gateway', () => {
  const requestBody = (more: object = {}) => ({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }], ...more })
  const post = (gateway: TestGateway, json: object, { model = 'g/m', method = 'generateContent', key = '' } = {}) =>
    gateway.call(`/v1beta/models/${model}:${method}${key}`, { json })
  const streamed = (gateway: TestGateway, json: object, model = 'g/m') =>
    post(gateway, json, { model, method: 'streamGenerateContent', key: '?alt=sse' })
  const answer = { candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] }
  const OWN = {
    cachedContent: 'cachedContents/abc',
    tools: [{ codeExecution: {} }, { urlContext: {} }, { brandNew: { a: null } }],
    generationConfig: { responseMimeType: 'text/x.enum', maxOutputTokens: 100, temperature: 1, unseen: { a_b: 1 } },
    unseen: [1],
  }

  test('forwards the client’s body unchanged', async () => {
    const { gateway, gemini } = await start()
    gemini.answer(whole(answer), whole(answer))
    const file = {
      fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x', mimeType: 'video/mp4' },
    }
    const body = requestBody({
      ...OWN,
      contents: [
        { role: 'user', parts: [{ ...file, videoMetadata: { startOffset: '3s' } }, { text: 'Hi' }] },
        {
          role: 'model',
          parts: [
            { text: 'Hm', thought: true },
            { executableCode: { code: '1+1', language: 'PYTHON' } },
            { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2' } },
            { toolCall: { id: 't1' }, thoughtSignature: 'c2ln' },
          ],
        },
        { role: 'user', parts: [{ text: 'And?' }] },
      ],
    })
    expect((await post(gateway, body)).status).toBe(200)
    expect(gemini.requests[0]?.path).toBe('/v1/models/gemini-2.5-flash:generateContent')
    expect(gemini.requests[0]?.json()).toEqual(body)
    expect(gemini.requests[0]?.headers['x-goog-api-key']).toBe(KEY)
    expect(JSON.stringify(gemini.requests[0]?.headers)).not.toContain(gateway.token)
    const {
      generationConfig: generation_config,
      cachedContent: cached_content,
      ...rest
    } = body as typeof body & typeof OWN
    await post(gateway, { ...rest, generation_config, cached_content, model: 'models/other', provider_options: {} })
    expect(gemini.requests[1]?.json()).toEqual(body)
  })

  test('applies limits and defaults of the catalogue, also to a body with vendor-specific content', async () => {
    const { gateway, gemini } = await start()
    for (const more of [{}, { cachedContent: 'x' }]) {
      const refused = await post(gateway, requestBody({ ...more, generation_config: { max_output_tokens: 501 } }))
      expect([refused.status, gemini.requests.length]).toEqual([400, 0])
      expect((await refused.json()).error.message).toContain('generationConfig.maxOutputTokens')
    }
    gemini.answer(whole(answer))
    await post(gateway, requestBody({ cachedContent: 'x', generation_config: { max_output_tokens: 500 } }))
    expect(gemini.requests[0]?.json().generationConfig).toEqual({ maxOutputTokens: 500, temperature: 0.3 })
  })

  test.each([
    ['another model', requestBody({ generationConfig: { routingConfig: { manualMode: { modelName: 'x' } } } })],
    ['no contents', { cachedContent: 'x', contents: [] }],
  ])('refuses %s as translation does', async (_, body) => {
    const { gateway, gemini } = await start()
    expect([(await post(gateway, body)).status, gemini.requests.length]).toEqual([400, 0])
  })

  test.each(fixturesOf('contentgen-compat'))('forwards %s byte for byte, except for the model', async (name) => {
    const { gateway, gemini } = await start()
    gemini.answer(sse(name, { chunkBytes: 37 }))
    const summary = await streamed(gateway, requestBody())
    expect(summary.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(await summary.text()).toBe(
      fixture(name)
        .replaceAll('\r\n', '\n')
        .replaceAll(/"modelVersion": ?"[^"]*"/g, (found) => found.replace(/"[^"]*"$/, '"g/m"')),
    )
    expect(gemini.requests[0]?.path).toEndWith(':streamGenerateContent?alt=sse')
  })

  test('forwards a whole response byte for byte, except for the model', async () => {
    const { gateway, gemini } = await start()
    const source = fixture('contentgen-compat/unseen.json')
    gemini.answer(whole(source))
    expect(await (await post(gateway, requestBody(OWN))).text()).toBe(
      source.replaceAll(/"modelVersion": ?"[^"]*"/g, (found) => found.replace(/"[^"]*"$/, '"g/m"')),
    )
  })

  test('translates a stream in array form, or refuses it if it cannot be translated', async () => {
    const { gateway, gemini } = await start()
    gemini.answer(sse('contentgen-compat/unseen.sse'))
    const method = 'streamGenerateContent'
    expect(JSON.parse(await (await post(gateway, requestBody(), { method })).text())).toBeArray()
    const refused = await post(gateway, requestBody(OWN), { method })
    expect([refused.status, gemini.requests.length]).toEqual([400, 1])
  })

  test('forwards the complete feedback for a blocked prompt', async () => {
    const { gateway, gemini } = await start()
    const safetyRatings = [{ category: 'HARM_CATEGORY_HARASSMENT', probability: 'HIGH', blocked: true }]
    const blocked = { promptFeedback: { blockReason: 'SAFETY', safetyRatings }, usageMetadata: { promptTokenCount: 7 } }
    gemini.answer(whole(blocked), stream([blocked], { done: false }))
    expect(await (await post(gateway, requestBody())).json()).toEqual(blocked)
    expect(await (await streamed(gateway, requestBody())).text()).toBe(`data: ${JSON.stringify(blocked)}\n\n`)
    expect(await usedIn(gateway)).toMatchObject([{ input_tokens: 7 }, { input_tokens: 7 }])
  })

  test('sends a request that cannot be translated only to providers of this API', async () => {
    const { gateway, gemini, other } = await start()
    gemini.answer(whole(answer))
    expect((await post(gateway, requestBody(OWN), { model: 'mixed/g' })).status).toBe(200)
    expect([gemini.requests.length, other.requests.length]).toEqual([1, 0])
    const refused = await post(gateway, requestBody(OWN), { model: 'c/m' })
    expect((await refused.json()).error.message).toContain('tools[0].codeExecution')
    expect([refused.status, other.requests.length]).toEqual([400, 0])
  })

  test('fetches an image that the provider would not fetch, by translation', async () => {
    const { gateway, gemini } = await start()
    const fileData = { fileUri: 'http://127.0.0.1:1/a.png', mimeType: 'image/png' }
    const body = requestBody({ contents: [{ role: 'user', parts: [{ fileData }] }] })
    expect((await post(gateway, body)).status).toBe(400)
    expect(gemini.requests).toHaveLength(0)
  })

  test('counts the same usage as translation, for complete and for cut responses', async () => {
    const names = fixturesOf('contentgen-compat')
    expectEqualUsage(names, await countedBothWays(names, (gateway) => streamed(gateway, requestBody()), 'gemini'))
  })

  test('returns errors in the client’s format, without the provider’s secrets', async () => {
    const { gateway, gemini } = await start()
    const error = { code: 503, message: `overloaded ${KEY}`, status: 'UNAVAILABLE' }
    gemini.answer(whole({ error: { ...error, code: 403 } }, { status: 403 }))
    expect((await post(gateway, requestBody())).status).toBe(502)
    gemini.answer(stream([{ error }], { done: false }))
    expect((await streamed(gateway, requestBody())).status).toBe(503)
    for (const summary of [{ error }, JSON.stringify([{ error }], undefined, 2)]) {
      gemini.answer(
        stream(
          [answer.candidates.length ? { candidates: [{ content: answer.candidates[0]?.content }] } : {}, summary],
          {
            done: false,
          },
        ),
      )
      const text = await (await streamed(gateway, requestBody())).text()
      const last = JSON.parse(/data: (.*)\n\n$/.exec(text)?.[1] ?? '')
      expect(last.error).toMatchObject({ code: 503, status: 'UNAVAILABLE' })
      expect(text).toContain('Hi')
    }
    const [begin = ''] = fixture('contentgen-compat/tools.sse').split(/\r?\n\r?\n/)
    const accepted = Promise.withResolvers<void>()
    gemini.answer(stream([`${begin}\n\n`, accepted.promise, 'data: {"cand'] as never, { done: false, cutAfter: 2 }))
    let cut = ''
    for await (const some of (await streamed(gateway, requestBody())).body ?? []) {
      cut += Buffer.from(some).toString()
      accepted.resolve()
    }
    expect(JSON.parse(/data: (.*)\n\n$/.exec(cut)?.[1] ?? '').error.code).toBeGreaterThanOrEqual(500)
    expect(gateway.logged() + cut).not.toContain(KEY)
  })
})

test.each([
  ['chat completions', 'other', '/v1/chat/completions', { model: 'c/m', messages: [{ role: 'user', content: 'Hi' }] }],
  ['messages', 'claude', '/v1/messages', { model: 'a/m', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }],
  ['responses', 'open', '/v1/responses', { model: 'r/m', input: 'Hi' }],
  [
    'contents',
    'gemini',
    '/v1beta/models/g/m:streamGenerateContent?alt=sse',
    { contents: [{ parts: [{ text: 'Hi' }] }] },
  ],
] as const)('the idle timeout ends a passthrough of %s whose provider falls silent', async (_, who, path, body) => {
  const { [who]: vendor, gateway } = await start()
  const started = {
    other: fixture('chatcompat/openai.sse'),
    claude: fixture('messages-compat/text.sse'),
    open: fixture('responses-compat/text.sse'),
    gemini: fixture('contentgen-compat/stream.sse'),
  }[who]
  const events = started.split(/(?<=\n\r?\n)/) // after the empty line that ends each event
  vendor.answer(stream([events.slice(0, -3).join('')], { done: false, hangAfter: 1 }))
  const answer = await gateway.call(path, { json: who === 'gemini' ? body : { ...body, stream: true } })
  let text = ''
  const ended = (async () => {
    for await (const piece of answer.body ?? []) text += Buffer.from(piece).toString()
  })()
  const isOver = () => /"error":\s*\{/.test(text)
  // The idle timeout of 300 s starts when the next bytes are awaited.
  let seconds = 0
  for (; seconds < 400 && !isOver(); seconds += 10) {
    gateway.clock.advance(10_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await ended
  expect(seconds).toBeGreaterThanOrEqual(300)
  expect(seconds).toBeLessThan(340)
  expect(text).toContain(who === 'claude' ? 'event: ping\n' : ': keep-alive')
  expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/"error":\s*\{/)
  expect((await usedIn(gateway))[0]?.error).toBe('upstream_timeout')
  await vendor.aborted
})

describe('client libraries with Responses and contentgen passthrough', () => {
  async function served() {
    const vendor = startVendor()
    const port = await openPort({
      providers: providersAt({ r: vendor, g: vendor, c: vendor, a: vendor }),
      models: { 'r/gpt-5.1': {}, 'g/gemini-2.5-flash': {} },
    })
    closing.push(
      () => port.close(),
      () => vendor.stop(),
    )
    return { vendor, port }
  }

  test('openai: receives server tools and reasoning, stored or not, and sends them back unchanged', async () => {
    const { vendor, port } = await served()
    const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
    const tools = [
      { type: 'web_search' as const },
      { type: 'code_interpreter' as const, container: { type: 'auto' as const } },
      { type: 'mcp' as const, server_label: 'm', server_url: 'https://m.example' },
    ]
    const model = 'r/gpt-5.1'
    vendor.answer(sse('responses-compat/web-search.sse'), sse('responses-compat/web-search.sse'))
    const first = await client.responses.stream({ model, input: 'Weather?', tools }).finalResponse()
    expect(first.output.map(({ type }) => type)).toContain('web_search_call')
    expect([first.model, first.id.length]).toEqual([model, 29])
    const bare = await client.responses.stream({ model, input: 'Weather?', tools, store: false }).finalResponse()
    expect(bare.output.map(({ type }) => type)).toEqual(first.output.map(({ type }) => type))
    expect(bare.output_text).toBe(first.output_text)
    vendor.answer(sse('responses-compat/reasoning-tools.sse'))
    const next = await client.responses
      .stream({ model, input: 'And?', tools, previous_response_id: first.id })
      .finalResponse()
    const sent = vendor.requests[2]?.json() as { input: { type: string }[]; tools: unknown }
    expect(sent.tools).toEqual(tools)
    expect(sent.input.map(({ type }) => type)).toEqual(['message', ...first.output.map(({ type }) => type), 'message'])
    expect(next.output.some(({ type }) => type === 'function_call')).toBe(true)
    expect((await client.responses.retrieve(next.id)).output).toHaveLength(next.output.length)
    vendor.answer(sse('responses-compat/text.sse'))
    const input = [...bare.output, { role: 'user', content: 'So?' }] as OpenAI.Responses.ResponseInput
    await client.responses.stream({ model, input, store: false }).finalResponse()
    const own = bare.output.map((item) => JSON.parse(JSON.stringify({ ...item, parsed: undefined })))
    expect(((vendor.requests[3]?.json().input ?? []) as { id: string }[]).slice(0, -1).map(({ id }) => id)).toEqual(
      own.map(({ id }) => id),
    )
  })

  test('@google/genai: receives executed code, retrieved URLs and signatures, and sends them back unchanged', async () => {
    const { vendor, port } = await served()
    const client = new GoogleGenAI({
      apiKey: port.token,
      httpOptions: { baseUrl: port.url.replace(/\/v1$/, ''), retryOptions: { attempts: 1 } },
    })
    const parts = [
      { text: 'Let me run it.', thought: true },
      { executableCode: { code: 'print(1)', language: 'PYTHON' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } },
      { text: 'It is 1.', thoughtSignature: 'c2lnbmVk' },
    ]
    const urlContextMetadata = { urlMetadata: [{ retrievedUrl: 'https://a.example' }] }
    const events = parts.map((part, at) => ({
      candidates: [
        {
          content: { role: 'model', parts: [part] },
          index: 0,
          ...(at === parts.length - 1 ? { finishReason: 'STOP', urlContextMetadata } : {}),
        },
      ],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: at, totalTokenCount: 5 + at },
      modelVersion: 'gemini-2.5-flash-001',
      responseId: 'r1',
    }))
    vendor.answer(stream(events, { done: false }), whole({ ...events.at(-1) }))
    const config = { tools: [{ codeExecution: {} }, { urlContext: {} }], cachedContent: 'cachedContents/x' }
    const chat = client.chats.create({ model: 'g/gemini-2.5-flash', config })
    const received: object[] = []
    let last: Awaited<ReturnType<typeof chat.sendMessage>> | undefined
    for await (const piece of await chat.sendMessageStream({ message: 'Run it.' })) {
      received.push(...(piece.candidates?.[0]?.content?.parts ?? []))
      last = piece
    }
    expect(received).toEqual(parts)
    expect([last?.modelVersion, last?.responseId]).toEqual(['g/gemini-2.5-flash', 'r1'])
    expect(last?.candidates?.[0]?.urlContextMetadata).toEqual(urlContextMetadata)
    expect((await chat.sendMessage({ message: 'And?' })).text).toBe('It is 1.')
    const [first, second] = vendor.requests.map((request) => request.json())
    expect(first).toMatchObject(config)
    expect(((second?.contents ?? []) as { parts: object[] }[]).flatMap((content) => content.parts)).toEqual([
      { text: 'Run it.' },
      ...parts,
      { text: 'And?' },
    ])
  })
})
