/** The Messages API as a client dialect and as a provider protocol: round trips, and a provider on loopback. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { messagesDialect } from '../src/families/chat/dialects/messages.ts'
import { parseMessages } from '../src/protocols/messages/client/request.ts'
import { createBodyEncoder } from '../src/protocols/messages/upstream/request.ts'
import { messagesSettings } from '../src/providers/messages-compat/messages-settings.ts'
import type { ChatCall } from '../src/providers/provider.ts'
import { usageFrom } from '../src/spec/usage.ts'
import { createStandaloneProvider, NEVER } from './kit/standalone-provider.ts'
import { hang, startVendor, stream, whole } from './kit/vendor.ts'

const fixture = (name: string) => readFileSync(new URL(`./fixtures/messages-compat/${name}`, import.meta.url), 'utf8')

describe('a Messages round trip', () => {
  const texts = fc.string({ minLength: 1, maxLength: 12 }).map((text) => `w${text}w`)
  const id = fc.stringMatching(/^[a-zA-Z0-9_-]{3,12}$/)
  const data = fc.base64String({ minLength: 4, maxLength: 16 }).filter((text) => text !== '')
  const json = fc.dictionary(texts, fc.oneof(fc.integer(), texts, fc.constant(null), fc.array(fc.boolean())))

  const text = texts.map((summary) => ({ type: 'text', text: summary }))
  const image = fc.oneof(
    data.map((bytes) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: bytes } })),
    fc.webUrl().map((url) => ({ type: 'image', source: { type: 'url', url } })),
  )
  const document = fc.record({
    type: fc.constant('document'),
    source: fc.oneof(
      data.map((bytes) => ({ type: 'base64', media_type: 'application/pdf', data: bytes })),
      fc.webUrl().map((url) => ({ type: 'url', url })),
    ),
    title: texts,
  })
  const thought = fc.oneof(
    fc.record({ type: fc.constant('thinking'), thinking: texts, signature: data.map((sig) => `S${sig}`) }),
    fc.record({ type: fc.constant('redacted_thinking'), data: data.map((sig) => `R${sig}`) }),
  )
  const summary = fc.tuple(fc.array(thought, { maxLength: 2 }), text).map(([thoughts, one]) => [...thoughts, one])

  type ExpectedLine = { type: string; text?: string }
  /** Consecutive texts are one text in canonical form. */
  const joined = (blocks: ExpectedLine[]): ExpectedLine[] => {
    const generated: ExpectedLine[] = []
    for (const block of blocks) {
      const last = generated.at(-1)
      if (last?.type === 'text' && block.type === 'text')
        generated[generated.length - 1] = { type: 'text', text: `${last.text}${block.text}` }
      else generated.push(block)
    }
    return generated
  }

  /** A turn of the assistant with calls, and the turn of the user with their results. */
  const round = fc
    .record({
      before: fc.array(summary, { maxLength: 2 }),
      thoughts: fc.array(thought, { maxLength: 2 }),
      calls: fc.uniqueArray(fc.record({ id, name: id, input: json }), { maxLength: 3, selector: (call) => call.id }),
      results: fc.array(fc.oneof(texts, fc.array(fc.oneof(image, image), { minLength: 1, maxLength: 2 })), {
        minLength: 3,
        maxLength: 3,
      }),
      failed: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
      next: fc.oneof(text, image, document),
    })
    .map(({ before, thoughts, calls, results, failed, next }) => {
      const uses = calls.map((call) => ({ type: 'tool_use', ...call }))
      const assistant = [...before.flat(), ...(uses.length > 0 ? [...thoughts, ...uses] : [])]
      const answers = uses.map((use, index) => ({
        type: 'tool_result',
        tool_use_id: use.id,
        content: results[index],
        is_error: failed[index],
      }))
      return [
        { role: 'assistant', content: assistant.length > 0 ? joined(assistant) : [{ type: 'text', text: 'Yes.' }] },
        { role: 'user', content: [...answers, next] },
      ]
    })
  const conversation = fc
    .tuple(fc.oneof(text, image, document), fc.array(round, { maxLength: 3 }))
    .map(([first, rounds]) => [{ role: 'user', content: [first] }, ...rounds.flat()])

  test('keeps every message', () => {
    const config: ProviderConfig = { base_url: 'https://v.example' }
    const settings = messagesSettings({ id: 'v', config, timeouts: DEFAULT_TIMEOUTS })
    const writer = createBodyEncoder(settings)
    const property = fc.property(conversation, texts, json, (messages, system, properties) => {
      const tools = [{ name: 'look', description: system, input_schema: { type: 'object', properties } }]
      const requested = {
        model: 'v/claude-opus-5',
        max_tokens: 9000,
        system: [{ type: 'text', text: system }],
        messages,
        tools,
        tool_choice: { type: 'auto', disable_parallel_tool_use: true },
        thinking: { type: 'adaptive' },
        output_config: {
          effort: 'xhigh',
          format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
        },
        stop_sequences: [system, 'b', 'c', 'd', 'e'],
        metadata: { user_id: 'u' },
        service_tier: 'standard_only',
      }
      const request = parseMessages(structuredClone(requested))
      const sent = JSON.parse(writer.answer({ model: 'claude-opus-5', request }, false))
      expect(sent).toEqual({ ...requested, model: 'claude-opus-5' })
    })
    fc.assert(property, { numRuns: 300 })
  })
})

/** The gateway between a streaming provider and a client of the same dialect. */
test('keeps every streamed block', async () => {
  const vendor = startVendor(stream([fixture('thinking-tools.sse')], { done: false, chunkBytes: 7 }))
  const chunks = await chunksFrom(providerAt(vendor.origin))
  await vendor.stop()
  const writer = messagesDialect().writer({ id: 'msg_1', created: 1, model: 'v/m' }, CALL.request, 'r')
  const usage = chunks.findLast((chunk) => chunk.usage)?.usage ?? usageFrom({ input: 0, output: 0 })
  const received = events(chunks.map((chunk) => writer.encode([chunk])).join('') + writer.end(usage))
  const output = events(fixture('thinking-tools.sse'))
  expect(blocksOf(received)).toEqual(blocksOf(output))
  expect(received[0]?.message?.usage.input_tokens).toBe(472)
  expect(received.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 89 } })
})

type Event = {
  type: string
  index?: number
  message?: { usage: { input_tokens: number } }
  content_block?: Record<string, unknown>
  delta?: Record<string, string>
}

const events = (text: string): Event[] =>
  text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))

function blocksOf(list: Event[]) {
  const blocks: Record<string, unknown>[] = []
  for (const { type, content_block, delta } of list) {
    if (type === 'content_block_start') {
      const { type, id, name, data } = content_block ?? {}
      blocks.push({ type, id, name, data })
    }
    const block = blocks.at(-1)
    if (type !== 'content_block_delta' || !block) continue
    for (const [name, value] of Object.entries(delta ?? {})) {
      if (name !== 'type') block[name] = `${block[name] ?? ''}${value}`
    }
  }
  // A call without arguments has an empty object, or none.
  return blocks.map((block) =>
    block.type === 'tool_use' ? { ...block, partial_json: block.partial_json || '{}' } : block,
  )
}

const CALL: ChatCall = {
  model: 'claude-sonnet-4-5',
  request: { model: 'v/claude-sonnet-4-5', messages: [{ role: 'user', content: 'Hello' }] },
  request_id: 'req-7',
}
const { providerAt, chunksFrom, logged } = createStandaloneProvider(
  { kind: 'messages-compat', key: 'sk-ant-secret-key' },
  CALL,
)

describe('a Messages provider on loopback', () => {
  const vendor = startVendor()
  const provider = providerAt(vendor.url, { headers: { 'anthropic-beta': 'a-1' } })
  afterAll(() => vendor.stop())
  afterEach(() => {
    vendor.requests.length = 0
  })

  test('receives requests at its path, with its key, its version and our request id', async () => {
    vendor.answer(whole(fixture('whole.json')))
    const answer = await provider.chat?.complete(CALL, NEVER)
    expect(answer?.choices[0]?.message.content).toBe('As I read, it is sunny.')
    const [requested] = vendor.requests
    expect(requested).toMatchObject({ method: 'POST', path: '/v1/messages' })
    expect(requested?.headers).toMatchObject({
      'x-api-key': 'sk-ant-secret-key',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a-1',
      'x-request-id': 'req-7',
    })
    expect(requested?.headers.authorization).toBeUndefined()
    expect(requested?.json()).toEqual({
      model: 'claude-sonnet-4-5',
      max_tokens: 4096,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    })
  })

  test('lists its models page by page', async () => {
    vendor.answer(whole(fixture('models-1.json')), whole(fixture('models-2.json')))
    expect(await provider.listModels?.(NEVER)).toEqual([
      { model: 'claude-3-haiku-20240307', created: 1_709_769_600 },
      { model: 'claude-haiku-4-5-20251001', created: 1_760_486_400 },
      { model: 'claude-sonnet-4-6', created: 1_771_286_400 },
    ])
    expect(vendor.requests.map(({ path }) => path)).toEqual([
      '/v1/models?limit=1000',
      '/v1/models?limit=1000&after_id=claude-haiku-4-5-20251001',
    ])
  })

  test('ends a list with a repeated page', async () => {
    vendor.answer(whole(fixture('models-1.json')), whole(fixture('models-1.json')))
    expect(await provider.listModels?.(NEVER)).toHaveLength(2)
  })

  test('counts tokens', async () => {
    vendor.answer(whole({ input_tokens: 2095 }), whole({ tokens: 1 }))
    expect(await provider.chat?.countTokens?.(CALL, NEVER)).toBe(2095)
    expect(vendor.requests[0]).toMatchObject({ path: '/v1/messages/count_tokens' })
    expect(Object.keys(vendor.requests[0]?.json() ?? {}).sort()).toEqual(['messages', 'model'])
    await expect(provider.chat?.countTokens?.(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
  })

  const error = (type: string, message = 'Words.') => ({
    type: 'error',
    error: { type, message },
    request_id: 'req_011',
  })
  const REFUSALS: [status: number, type: string, message: string, code: string, shown: number][] = [
    [400, 'invalid_request_error', 'temperature: range 0..1', 'upstream_invalid_request', 400],
    [
      400,
      'invalid_request_error',
      'prompt is too long: 210000 tokens > 200000 maximum',
      'context_length_exceeded',
      400,
    ],
    [400, 'invalid_request_error', 'Your credit balance is too low to access the API', 'no_available_channel', 503],
    [401, 'authentication_error', 'invalid x-api-key', 'upstream_auth', 502],
    [402, 'billing_error', 'Pay.', 'no_available_channel', 503],
    [403, 'permission_error', 'Not yours.', 'upstream_auth', 502],
    [404, 'not_found_error', 'model: claude-x', 'bad_upstream_response', 502],
    [413, 'request_too_large', 'Too large.', 'request_too_large', 413],
    [429, 'rate_limit_error', 'Slow down.', 'rate_limit_exceeded', 429],
    [500, 'api_error', 'Oh.', 'bad_upstream_response', 502],
    [504, 'timeout_error', 'Late.', 'upstream_timeout', 504],
    [529, 'overloaded_error', 'Overloaded', 'server_is_overloaded', 503],
  ]
  for (const [status, type, message, code, shown] of REFUSALS) {
    test(`${status} ${type} (${message}) is ${code}, before the response and during it`, async () => {
      vendor.answer(whole(error(type, message), { status }), whole(error(type, message)))
      await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({ code, status: shown })
      await expect(chunksFrom(provider)).rejects.toMatchObject({ code })
    })
  }

  test('reports the time to retry: by its own header, otherwise by the last exhausted limit', async () => {
    const reset = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
    const headers = {
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': reset(30),
      'anthropic-ratelimit-tokens-remaining': '5',
      'anthropic-ratelimit-tokens-reset': reset(300),
    }
    const refusal = (more: object) =>
      whole(error('rate_limit_error'), { status: 429, headers: { ...headers, ...more } })
    vendor.answer(refusal({}), refusal({ 'retry-after': '7' }), whole(error('rate_limit_error'), { status: 429 }))
    const waits: (number | undefined)[] = []
    for (let count = 0; count < 3; count++) {
      await provider.chat?.complete(CALL, NEVER).catch((thrown) => waits.push(thrown.detail.retry_after))
    }
    expect(waits[0]).toBeGreaterThan(25)
    expect(waits[0]).toBeLessThanOrEqual(30)
    expect(waits.slice(1)).toEqual([7, undefined])
  })

  test('has its request id in the log, and its key in neither the log nor an error', async () => {
    const headers = { 'request-id': 'req_vendor_1' }
    vendor.answer(whole(error('api_error', 'key sk-ant-secret-key'), { status: 500, headers }))
    const thrown = await provider.chat?.complete(CALL, NEVER).catch((failure) => failure)
    expect(logged()).toContain('req_vendor_1')
    expect(`${logged()}${thrown}`).not.toContain('secret-key')
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
})
