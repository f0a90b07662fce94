/** Providers of the Responses API on loopback: alone, and behind the whole gateway for clients of other dialects. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import OpenAI from 'openai'
import { answerOf } from '../src/protocols/responses/upstream/answer.ts'
import { inputOf } from '../src/protocols/responses/upstream/input.ts'
import { FIELD_MAPPINGS } from '../src/protocols/responses/upstream/request-fields.ts'
import type { ChatChunk, ChatCompletion } from '../src/protocols/shared/canonical.ts'
import type { ChatCall } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import { startGateway } from './kit/gateway.ts'
import { manualPath } from './kit/manual.ts'
import { createStandaloneProvider, NEVER } from './kit/standalone-provider.ts'
import { hang, startVendor, stream, whole } from './kit/vendor.ts'

const fixture = (name: string) => readFileSync(new URL(`./fixtures/responses-compat/${name}`, import.meta.url), 'utf8')
/** A whole response with these items. */
const responseOf = (output: (object | null)[], more: object = {}) => ({
  ...JSON.parse(fixture('whole.json')),
  output,
  ...more,
})
const summary = (text: string) => ({
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
})
const streamed = (name: string, more = {}) => stream([fixture(name)], { done: false, ...more })

const KEY = 'sk-proj-secret-key'
const CALL: ChatCall = {
  model: 'gpt-4.1',
  request: { model: 'v/gpt-4.1', messages: [{ role: 'user', content: 'Hello' }] },
  request_id: 'req-7',
}
const { providerAt, chunksFrom, logged } = createStandaloneProvider({ kind: 'responses-compat', key: KEY }, CALL)

/** The members that the tests read. */
type SentBody = { input: Record<string, unknown>[]; include?: string[] }

const textOf = (chunks: ChatChunk[]) =>
  chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('')

describe('a Responses provider on loopback', () => {
  const vendor = startVendor()
  const provider = providerAt(vendor.url, { headers: { 'openai-organization': 'org-1' } })
  afterAll(() => vendor.stop())
  afterEach(() => {
    vendor.requests.length = 0
  })

  test('receives requests at its path, with its key and our request id', async () => {
    vendor.answer(whole(fixture('whole.json')))
    const answer = await provider.chat?.complete(CALL, NEVER)
    expect(answer?.choices[0]?.message.content).toBe('As I read, it is sunny.')
    const [requested] = vendor.requests
    expect(requested).toMatchObject({ method: 'POST', path: '/v1/responses' })
    expect(requested?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'openai-organization': 'org-1',
      'x-request-id': 'req-7',
      accept: 'application/json',
    })
    expect(requested?.json()).toEqual({
      model: 'gpt-4.1',
      input: [{ type: 'message', role: 'user', content: 'Hello' }],
      store: false,
    })
  })

  test('streams, however the bytes are split', async () => {
    vendor.answer(streamed('text.sse', { chunkBytes: 11 }), streamed('text.sse', { framing: 'close' }))
    for (let count = 0; count < 2; count++) expect(textOf(await chunksFrom(provider))).toBe('Grüße aus 東京 🗼')
    expect(vendor.requests[0]?.headers.accept).toBe('text/event-stream')
    expect(vendor.requests[0]?.json().stream).toBe(true)
  })

  test('has not responded if its stream is cut, in any way', async () => {
    const events = fixture('text.sse')
      .split('\n\n')
      .slice(0, -1)
      .map((event) => `${event}\n\n`)
    const ways = [{ cutAfter: events.length - 1 }, { resetAfter: events.length - 1 }]
    for (const way of [...ways, { cutAfter: events.length - 1, framing: 'close' as const }]) {
      vendor.answer(stream(events, { done: false, ...way }))
      await expect(chunksFrom(provider)).rejects.toMatchObject({ code: 'upstream_cut' })
    }
    // Bytes after the end are not awaited.
    vendor.answer(stream(events, { done: false, hangAfter: events.length }))
    expect(textOf(await chunksFrom(provider))).toBe('Grüße aus 東京 🗼')
  })

  test('lists its models, including those without chat completions', async () => {
    vendor.answer(whole(fixture('models.json')))
    const openai = providerAt(vendor.url, { preset: 'openai' })
    expect(openai.kind).toBe('responses-compat')
    expect((await openai.listModels?.(NEVER))?.map(({ model }) => model)).toEqual([
      'gpt-4.1',
      'gpt-5-pro',
      'gpt-5.1-codex',
      'o3',
    ])
    expect(vendor.requests[0]).toMatchObject({ method: 'GET', path: '/v1/models' })
    vendor.answer(whole('<html></html>', { headers: { 'content-type': 'text/html' } }))
    await expect(openai.listModels?.(NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
  })

  test('counts tokens until it reports that it cannot', async () => {
    const counting = providerAt(vendor.url)
    vendor.answer(whole({ object: 'response.input_tokens', input_tokens: 11 }), whole({ tokens: 1 }))
    expect(await counting.chat?.countTokens?.(CALL, NEVER)).toBe(11)
    expect(vendor.requests[0]).toMatchObject({ method: 'POST', path: '/v1/responses/input_tokens' })
    expect(vendor.requests[0]?.json()).toEqual({
      model: 'gpt-4.1',
      input: [{ type: 'message', role: 'user', content: 'Hello' }],
    })
    await expect(counting.chat?.countTokens?.(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    vendor.answer(whole(error('server_error', 'Oh.'), { status: 500 }))
    await expect(counting.chat?.countTokens?.(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    expect(counting.chat?.countTokens).toBeDefined()
    vendor.answer(whole('Not Found', { status: 404 }))
    await expect(counting.chat?.countTokens?.(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    expect(counting.chat?.countTokens).toBeUndefined()
  })

  const error = (code: string | null, message = 'Words.', more: object = {}) => ({
    error: { message, type: 'invalid_request_error', param: null, code, ...more },
  })
  const REFUSALS: [status: number, body: unknown, code: string, shown: number][] = [
    [400, error('invalid_value', 'Invalid value.', { param: 'input[0].role' }), 'upstream_invalid_request', 400],
    [400, error('context_length_exceeded', 'Your input exceeds the context window.'), 'context_length_exceeded', 400],
    [400, error('content_policy_violation', 'No.'), 'content_policy_violation', 400],
    [400, error('invalid_prompt', 'Your prompt was flagged as a violation.'), 'content_policy_violation', 400],
    [401, error('invalid_api_key', `Incorrect API key provided: ${KEY}.`), 'upstream_auth', 502],
    [403, error('unsupported_country_region_territory', 'Not here.'), 'upstream_auth', 502],
    [404, error('model_not_found', 'No such model.'), 'bad_upstream_response', 502],
    [413, error(null, 'Too large.'), 'request_too_large', 413],
    [429, error('rate_limit_exceeded', 'Slow down.'), 'rate_limit_exceeded', 429],
    [429, error('insufficient_quota', 'You exceeded your current quota.'), 'no_available_channel', 503],
    [500, error('server_error', 'Oh.', { type: 'server_error' }), 'bad_upstream_response', 502],
    [502, '<html><h1>Bad Gateway</h1></html>', 'bad_upstream_response', 502],
    [503, error('slow_down', 'Overloaded.'), 'server_is_overloaded', 503],
    [504, '', 'upstream_timeout', 504],
    [301, '', 'bad_upstream_response', 502],
  ]
  test.each(REFUSALS)('maps %i %j to %s', async (status, body, code, shown) => {
    vendor.answer(whole(body, { status }), whole(body, { status }))
    await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({ code, status: shown })
    await expect(chunksFrom(provider)).rejects.toMatchObject({ code, status: shown })
  })

  test('reports the caller’s own mistake with its place', async () => {
    vendor.answer(whole(error('invalid_value', 'Invalid value.', { param: 'input[0].role' }), { status: 400 }))
    const thrown = await provider.chat?.complete(CALL, NEVER).catch((failure) => failure)
    expect(thrown).toMatchObject({ message: 'Invalid value.', detail: { param: 'input[0].role' } })
  })

  test('reports the time to retry: by its own header, otherwise by the last exhausted limit', async () => {
    const limits = {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '1m2.5s',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '20ms',
    }
    const left = { ...limits, 'x-ratelimit-remaining-requests': '3' }
    const CASES: [headers: Record<string, string>, code: string, wait: number | undefined][] = [
      [limits, 'rate_limit_exceeded', 63],
      [left, 'rate_limit_exceeded', 1],
      [{ ...left, 'x-ratelimit-remaining-tokens': '3' }, 'rate_limit_exceeded', undefined],
      [{ ...limits, 'retry-after': '7' }, 'rate_limit_exceeded', 7],
      [{ ...limits, 'retry-after-ms': '1500' }, 'rate_limit_exceeded', 2],
      [{ ...limits, 'x-ratelimit-reset-requests': '6h1s' }, 'rate_limit_exceeded', 21_601],
      [{ ...limits, 'x-ratelimit-reset-requests': 'soon' }, 'rate_limit_exceeded', 1],
      [{ ...limits, 'x-ratelimit-reset-requests': '90' }, 'rate_limit_exceeded', 90],
      // Waiting does not add credit to an account.
      [{ ...limits, 'retry-after': '7' }, 'insufficient_quota', undefined],
    ]
    for (const [headers, code, wait] of CASES) {
      vendor.answer(whole(error(code), { status: 429, headers }))
      const thrown = await provider.chat?.complete(CALL, NEVER).catch((failure) => failure)
      expect([headers, thrown.detail.retry_after]).toEqual([headers, wait])
      expect(thrown.code).toBe(code === 'insufficient_quota' ? 'no_available_channel' : code)
    }
  })

  test('has its request id in the log, and its key in neither the log nor an error', async () => {
    const headers = { 'x-request-id': 'req_vendor_1' }
    vendor.answer(
      whole(error('server_error', `key ${KEY}`), { status: 500, headers }),
      whole(error('invalid_value', `key ${KEY}`), { status: 400, headers }),
      whole(responseOf([], { status: 'failed', error: { code: 'invalid_prompt', message: `key ${KEY}` } })),
    )
    let output = ''
    for (let count = 0; count < 3; count++) output += await provider.chat?.complete(CALL, NEVER).catch(String)
    expect(logged()).toContain('req_vendor_1')
    expect(output).toContain('[redacted]')
    expect(`${logged()}${output}`).not.toContain('secret-key')
  })

  test('closes the connection when the client disconnects', async () => {
    vendor.answer(hang())
    const control = new AbortController()
    const requested = chunksFrom(provider, control.signal)
    const { aborted: gone } = await vendor.request()
    control.abort()
    await expect(requested).rejects.toMatchObject({ code: 'client_closed_request' })
    await gone
  })

  test.each(['text.sse', 'reasoning-tools.sse', 'web-search.sse', 'refusal.sse', 'incomplete.sse'])(
    '%s decodes to the same as in the vendor’s own client library',
    async (name) => {
      vendor.answer(streamed(name))
      const client = new OpenAI({ apiKey: KEY, baseURL: vendor.url, maxRetries: 0 })
      const output = await client.responses.stream({ model: 'm', input: 'x' }).finalResponse()
      vendor.answer(streamed(name))
      const chunks = await chunksFrom(provider)
      expect(textOf(chunks).replace('\n\n', '')).toBe(output.output_text)
      const calls = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))
      const ids = calls.flatMap(({ id }) => id ?? [])
      expect(ids).toEqual(output.output.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : [])))
    },
  )
})

describe('a round trip of Responses items', () => {
  const texts = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => text.trim() !== '')
  const id = fc.stringMatching(/^[a-z0-9]{3,12}$/)
  const thought = fc.record({ id: id.map((end) => `rs_${end}`), text: fc.option(texts), sealed: texts })
  const call = fc.record({ call_id: id, name: id, arguments: fc.json().map((text) => text || '{}') })
  const answer = fc.record({
    // An id names one item of a response.
    thoughts: fc.uniqueArray(thought, { maxLength: 3, selector: ({ id }) => id }),
    text: fc.option(texts),
    calls: fc.uniqueArray(call, { maxLength: 3, selector: ({ call_id }) => call_id }),
  })

  test('keeps reasoning, text and calls', () => {
    const property = fc.property(answer, ({ thoughts, text, calls }) => {
      const reasoning = thoughts.map((one) => ({
        type: 'reasoning',
        id: one.id,
        summary: one.text === null ? [] : [{ type: 'summary_text', text: one.text }],
        encrypted_content: one.sealed,
      }))
      const functions = calls.map((one) => ({ type: 'function_call', ...one }))
      const output = [...reasoning, ...(text === null ? [] : [summary(text)]), ...functions]
      const completion = answerOf({ status: 'completed', output }, { id: 'x', model: 'm', created: 1 })
      const { content = null, reasoning_details, tool_calls = [] } = completion?.choices[0]?.message ?? {}
      const sent = () =>
        inputOf(
          [
            {
              role: 'assistant',
              content,
              ...(reasoning_details ? { reasoning_details } : {}),
              tool_calls: tool_calls.map(({ id = '', function: called }) => ({
                id,
                function: { name: called.name ?? '', arguments: called.arguments },
              })),
            },
          ],
          { developer_role: true, custom_tools: true, audio: false, reasoning: true },
        )
      const plain = text === null ? [] : [{ type: 'message', role: 'assistant', content: text }]
      const rest = [...plain, ...functions]
      // Reasoning alone is the rest of a response that was cut: it leaves the provider nothing to answer.
      if (rest.length === 0) expect(sent).toThrow(GatewayError)
      else expect(sent() as unknown).toEqual([...reasoning, ...rest])
    })
    fc.assert(property, { numRuns: 300 })
  })
})

describe('a Responses provider behind the whole gateway', () => {
  const vendor = startVendor()
  afterAll(() => vendor.stop())
  afterEach(() => {
    vendor.requests.length = 0
  })
  const settings = (more: object = {}) => ({
    sandbox: false,
    providers: { v: { kind: 'responses-compat' as const, base_url: vendor.url, key: KEY } },
    models: { 'v/gpt-5.1': {}, 'v/gpt-4.1': {} },
    ...more,
  })
  const lastSent = (): SentBody => {
    const last = vendor.requests.at(-1)
    if (!last) throw new Error('no request was sent')
    return last.json() as SentBody
  }
  const requestBody = (model: string, more: object = {}) => ({
    model,
    messages: [{ role: 'user', content: 'Hi' }],
    ...more,
  })
  const TOOLS = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }]
  const dataOf = (text: string) =>
    text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))

  test('serves a chat-completions client, and receives the reasoning with its next question', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(whole(fixture('whole.json')), whole(responseOf([summary('Rain.')])))
    const first = (await (await gateway.chat(requestBody('v/gpt-5.1', { tools: TOOLS }))).json()) as ChatCompletion
    expect(first.model).toBe('v/gpt-5.1')
    expect(first.usage).toMatchObject({ prompt_tokens: 234, completion_tokens: 44 })
    const { message } = first.choices[0] ?? {}
    const messages = [
      { role: 'user', content: 'Hi' },
      message,
      { role: 'tool', tool_call_id: 'call_w', content: 'Rain' },
    ]
    const second = await gateway.chat({ model: 'v/gpt-5.1', messages, tools: TOOLS })
    expect(((await second.json()) as ChatCompletion).choices[0]?.message.content).toBe('Rain.')
    const sent = lastSent()
    expect(sent.include).toEqual(['reasoning.encrypted_content'])
    expect(sent.input.slice(1)).toEqual([
      {
        type: 'reasoning',
        id: 'rs_68a1',
        summary: [{ type: 'summary_text', text: '**Two cities**\n\nTwo calls.' }],
        encrypted_content: 'gAAAAABo_first',
      },
      { type: 'reasoning', id: 'rs_68a2', summary: [], encrypted_content: 'gAAAAABo_second' },
      { type: 'message', role: 'assistant', content: 'As I read, it is sunny.' },
      { type: 'function_call', call_id: 'call_w', name: 'get_weather', arguments: '{"city":"Paris"}' },
      { type: 'function_call_output', call_id: 'call_w', output: 'Rain' },
    ])
  })

  test('streams to a chat-completions client, one call after the other', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(streamed('reasoning-tools.sse', { chunkBytes: 64 }))
    const answer = await gateway.chat(
      requestBody('v/gpt-5.1', { stream: true, stream_options: { include_usage: true } }),
    )
    const chunks = dataOf(await answer.text()) as ChatChunk[]
    const calls: string[] = []
    for (const { choices } of chunks) {
      for (const { index = -1, id, function: part } of choices[0]?.delta.tool_calls ?? []) {
        calls[index] = `${calls[index] ?? ''}${id ?? ''}${part.name ?? ''}${part.arguments}`
      }
    }
    expect(calls).toEqual([
      'call_Parisget_weather{"city":"Paris"}',
      'call_Romeget_weather{"city":"Rome"}',
      'call_nownow{}',
    ])
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['tool_calls'])
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 472, completion_tokens: 89 })
  })

  test('serves a Messages client, and receives its thinking blocks again', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(streamed('reasoning-tools.sse'), whole(responseOf([summary('Rain.')])))
    const tools = [{ name: 'get_weather', input_schema: { type: 'object' } }]
    const requested = { ...requestBody('v/gpt-5.1'), max_tokens: 500, tools, thinking: { type: 'adaptive' } }
    const events = dataOf(await (await gateway.call('/v1/messages', { json: { ...requested, stream: true } })).text())
    const blocks: Record<string, string>[] = []
    for (const { type, content_block, delta } of events) {
      if (type === 'content_block_start') blocks.push({ ...content_block })
      const block = blocks.at(-1)
      if (type !== 'content_block_delta' || !block) continue
      for (const [name, value] of Object.entries(delta as Record<string, string>)) {
        if (name !== 'type') block[name] = `${block[name] ?? ''}${value}`
      }
    }
    expect(blocks.filter(({ type }) => type === 'tool_use').map(({ id, partial_json }) => [id, partial_json])).toEqual([
      ['call_Paris', '{"city":"Paris"}'],
      ['call_Rome', '{"city":"Rome"}'],
      ['call_now', '{}'],
    ])
    const content = blocks.map(({ partial_json, ...block }) =>
      block.type === 'tool_use' ? { ...block, input: JSON.parse(partial_json ?? '{}') } : block,
    )
    const results = ['call_Paris', 'call_Rome', 'call_now'].map((tool_use_id) => ({
      type: 'tool_result',
      tool_use_id,
      content: [{ type: 'text', text: `of ${tool_use_id}` }],
    }))
    const messages = [...requested.messages, { role: 'assistant', content }, { role: 'user', content: results }]
    const second = await gateway.call('/v1/messages', { json: { ...requested, messages } })
    expect(await second.json()).toMatchObject({ content: [{ type: 'text', text: 'Rain.' }], stop_reason: 'end_turn' })
    const { input } = lastSent()
    expect(input.slice(1)).toMatchObject([
      { type: 'reasoning', id: 'rs_68a1', encrypted_content: 'gAAAAABo_first' },
      { type: 'reasoning', id: 'rs_68a2', encrypted_content: 'gAAAAABo_second', summary: [] },
      { type: 'message', role: 'assistant', content: 'Let me look.' },
      { type: 'function_call', call_id: 'call_Paris' },
      { type: 'function_call', call_id: 'call_Rome' },
      { type: 'function_call', call_id: 'call_now' },
      { type: 'function_call_output', call_id: 'call_Paris' },
      { type: 'function_call_output', call_id: 'call_Rome' },
      { type: 'function_call_output', call_id: 'call_now' },
    ])
  })

  test('serves a Responses client with its own ids and encrypted content, and receives them again', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(whole(fixture('whole.json')), whole(responseOf([summary('Rain.')])))
    const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object' }, strict: false }]
    const requested = { model: 'v/gpt-5.1', tools, store: false, include: ['reasoning.encrypted_content'] }
    const hello = { role: 'user', content: 'Hi' }
    const first = await gateway.call('/v1/responses', { json: { ...requested, input: [hello] } })
    const { output } = (await first.json()) as { output: Record<string, unknown>[] }
    const result = { type: 'function_call_output', call_id: 'call_w', output: 'Rain' }
    const second = await gateway.call('/v1/responses', { json: { ...requested, input: [hello, ...output, result] } })
    expect(await second.json()).toMatchObject({ output: [{ content: [{ text: 'Rain.' }] }] })
    expect(lastSent().input).toEqual([hello, ...JSON.parse(fixture('whole.json')).output, result])
  })

  test('returns a stored response again whose provider sent an output item that is not an object', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(whole(responseOf([summary('Hi'), null])))
    const created = await gateway.call('/v1/responses', { json: { model: 'v/gpt-4.1', input: 'Hello' } })
    expect(created.status).toBe(200)
    const { id } = (await created.json()) as { id: string }
    const retrieved = await gateway.call(`/v1/responses/${id}`)
    expect(retrieved.status).toBe(200)
    expect(await retrieved.json()).toMatchObject({ output: [{ type: 'message' }, null] })
  })

  test('counts tokens for a Messages client, and an estimate replaces a missing count', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(whole({ object: 'response.input_tokens', input_tokens: 4711 }), whole('', { status: 404 }))
    const count = async () =>
      (await gateway.call('/v1/messages/count_tokens', { json: requestBody('v/gpt-4.1') })).json()
    expect(await count()).toEqual({ input_tokens: 4711 })
    for (let turn = 0; turn < 2; turn++) {
      const { input_tokens } = (await count()) as { input_tokens: number }
      expect(input_tokens).toBeGreaterThan(0)
      expect(input_tokens).toBeLessThan(100)
    }
    expect(vendor.requests).toHaveLength(2)
  })

  test('is replaced by the next target if it fails before the first text', async () => {
    const models = {
      'house/m': {
        targets: [
          { provider: 'v', model: 'one' },
          { provider: 'v', model: 'two' },
        ],
      },
    }
    await using gateway = await startGateway(settings({ models }))
    const failed = fixture('failed-at-once.sse').replace('invalid_prompt', 'server_error').replace('flagged', 'lost')
    vendor.answer(stream([failed], { done: false }), streamed('text.sse'))
    const answer = await gateway.chat(requestBody('house/m', { stream: true }))
    expect(textOf(dataOf(await answer.text()))).toBe('Grüße aus 東京 🗼')
    expect(vendor.requests.map((request) => request.json().model)).toEqual(['one', 'two'])
  })

  test.each([
    [401, 502, 'upstream_auth'],
    [403, 502, 'upstream_auth'],
    [404, 502, 'bad_upstream_response'],
    [429, 429, 'rate_limit_exceeded'],
  ])('maps %i of the provider to %i for the client', async (status, shown, code) => {
    await using gateway = await startGateway(settings())
    const body = { error: { message: 'Words.', type: 'x', param: null, code: null } }
    vendor.answer(whole(body, { status, headers: { 'retry-after': '3' } }))
    const answer = await gateway.chat(requestBody('v/gpt-4.1'))
    expect(answer.status).toBe(shown)
    expect(await answer.json()).toMatchObject({ error: { code } })
    expect(answer.headers.get('retry-after')).toBe(status === 429 ? '3' : null)
  })

  test('ends with an error as the last event for a client after a failure', async () => {
    await using gateway = await startGateway(settings())
    vendor.answer(streamed('error.sse'))
    const text = await (await gateway.chat(requestBody('v/gpt-4.1', { stream: true }))).text()
    expect(text).toContain('"Hel"')
    expect(dataOf(text).at(-1)).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
    expect(text).not.toContain('"finish_reason":"stop"')
  })

  test('is not called for unsupported fields, which are refused first', async () => {
    await using gateway = await startGateway(settings())
    const answer = await gateway.chat(requestBody('v/gpt-4.1', { stop: ['END'] }))
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { code: 'unsupported_parameter', param: 'stop' } },
    ])
    expect(vendor.requests).toHaveLength(0)
  })
})

/**
 * The manual's list of fields that are sent as more than another name; the page on translation has those that are dropped
 * or rejected. GATEHOUSE_WRITE_TABLES=1 writes it.
 */
test('the manual describes the handling of each field', () => {
  const file = manualPath('responses-vendor.md')
  const start = '<!-- Generated: test/responses-vendor.test.ts -->'
  const end = '<!-- End. -->'
  const fields = Map.groupBy(Object.keys(FIELD_MAPPINGS) as (keyof typeof FIELD_MAPPINGS)[], handlingOf)
  const rows = [...fields]
    .filter(([handling]) => handling !== '')
    .map(([handling, names]) => `- ${names.map((name) => `\`${name}\``).join(', ')}: ${handling}`)
  const generated = [start, '', ...rows, '', end].join('\n')
  const page = readFileSync(file, 'utf8')
  const expectedPage = page.slice(0, page.indexOf(start)) + generated + page.slice(page.indexOf(end) + end.length)
  if (process.env.GATEHOUSE_WRITE_TABLES) writeFileSync(file, expectedPage)
  expect(readFileSync(file, 'utf8')).toBe(expectedPage)
})

/** Empty: there is nothing to say. */
function handlingOf(field: keyof typeof FIELD_MAPPINGS): string {
  const mapping = FIELD_MAPPINGS[field]
  return 'sent' in mapping && !/^`[\w.]+`$/.test(mapping.sent) ? mapping.sent : ''
}
