/** The vendors of chat models behind AI SDK packages, each against a loopback vendor that responds in the vendor's own format. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import type { ChatChunk, ChatCompletion, ChatRequest } from '../src/protocols/shared/canonical.ts'
import type { Media } from '../src/providers/media.ts'
import type { ChatCall, DiscoveredModel, Provider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { GatewayError } from '../src/spec/error.ts'
import { eventFrame } from './kit/event-frames.ts'
import { startGateway } from './kit/gateway.ts'
import { manualPage } from './kit/manual.ts'
import { providerParts } from './kit/provider-parts.ts'
import { type Answer, hang, type StreamOptions, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const NEVER = new AbortController().signal
const KEY = 'sk-secret-key-of-ours'

/** One vendor: where its requests go, how a request is encoded, and what differs in its responses. */
type Case = {
  kind: ProviderKind
  model: string
  /** The version in the path of `base_url`. */
  base: string
  path: string
  streamPath?: string
  /** The header that holds the key. */
  auth: [name: string, value: string]
  /** Members of the body of a simple request. */
  body: Record<string, unknown>
  reasons: boolean
  cached?: number
  hasTools?: boolean
  /** Its responses to an invalid request and to an invalid key. */
  invalid?: unknown
  forbidden?: { status: number; body: unknown }
}

const bearer: Case['auth'] = ['authorization', `Bearer ${KEY}`]
const MESSAGES = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Say hello.' },
]
const openaiShaped = (kind: ProviderKind, model: string, base: string, more: Partial<Case> = {}): Case => ({
  kind,
  model,
  base,
  path: `${base}/chat/completions`,
  auth: bearer,
  body: { model, messages: MESSAGES, max_tokens: 50, temperature: 0.5 },
  reasons: false,
  ...more,
})
const INPUT = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'input_text', text: 'Say hello.' }] },
]
const CLAUDE = 'eu.anthropic.claude-sonnet-4-20250514-v1:0'

const CASES: Case[] = [
  openaiShaped('mistral', 'mistral-small-latest', '/v1', {
    body: {
      model: 'mistral-small-latest',
      messages: [MESSAGES[0], { role: 'user', content: [{ type: 'text', text: 'Say hello.' }] }],
      max_tokens: 50,
    },
    invalid: { object: 'error', message: 'Unrecognized thing', type: 'invalid_request_error', code: '3051' },
    forbidden: { status: 401, body: { detail: 'Unauthorized' } },
  }),
  openaiShaped('togetherai', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', '/v1'),
  openaiShaped('fireworks', 'accounts/fireworks/models/deepseek-v3p2', '/inference/v1', { reasons: true, cached: 4 }),
  openaiShaped('deepinfra', 'Qwen/Qwen3-235B', '/v1', {
    path: '/v1/openai/chat/completions',
    reasons: true,
    invalid: { detail: [{ loc: ['body'], msg: 'Unrecognized thing' }] },
    forbidden: { status: 401, body: { detail: { error: 'Invalid token' } } },
  }),
  openaiShaped('groq', 'openai/gpt-oss-120b', '/openai/v1', { reasons: true, cached: 4 }),
  openaiShaped('deepseek', 'deepseek-chat', '', { reasons: true, cached: 4 }),
  openaiShaped('alibaba', 'qwen3-max', '/compatible-mode/v1', {
    body: { model: 'qwen3-max', max_tokens: 50, temperature: 0.5 },
    reasons: true,
    cached: 4,
  }),
  openaiShaped('moonshotai', 'kimi-k2-0905-preview', '/v1', {
    body: { model: 'kimi-k2-0905-preview', messages: MESSAGES, max_completion_tokens: 50, temperature: 0.5 },
    cached: 4,
  }),
  openaiShaped('perplexity', 'sonar', '', {
    hasTools: false,
    invalid: { error: { message: 'Unrecognized thing', type: 'invalid_request', code: 400 } },
    forbidden: { status: 401, body: '<html>401 Authorization Required</html>' },
  }),
  openaiShaped('azure', 'my-deployment', '/openai', {
    path: '/openai/v1/chat/completions?api-version=v1',
    auth: ['api-key', KEY],
    cached: 4,
    forbidden: {
      status: 401,
      body: { error: { code: '401', message: 'Access denied due to invalid subscription key' } },
    },
  }),
  {
    kind: 'cohere',
    model: 'command-a-reasoning-08-2025',
    base: '/v2',
    path: '/v2/chat',
    auth: bearer,
    body: { model: 'command-a-reasoning-08-2025', messages: MESSAGES, max_tokens: 50 },
    reasons: true,
    invalid: { id: 'x', message: 'Unrecognized thing' },
    forbidden: { status: 401, body: { id: 'x', message: 'invalid api token' } },
  },
  {
    kind: 'xai',
    model: 'grok-4-1',
    base: '/v1',
    path: '/v1/responses',
    auth: bearer,
    body: { model: 'grok-4-1', input: INPUT, max_output_tokens: 50 },
    reasons: true,
    cached: 4,
    invalid: { code: 'Client specified an invalid argument', error: 'Unrecognized thing' },
    forbidden: { status: 400, body: { code: 'invalid', error: 'Incorrect API key provided: sk**rs.' } },
  },
  {
    kind: 'huggingface',
    model: 'moonshotai/Kimi-K2-Instruct',
    base: '/v1',
    path: '/v1/responses',
    auth: bearer,
    body: { model: 'moonshotai/Kimi-K2-Instruct', input: INPUT, max_output_tokens: 50 },
    reasons: true,
    cached: 4,
    forbidden: { status: 401, body: { error: 'Invalid credentials in Authorization header' } },
  },
  {
    kind: 'google-vertex',
    model: 'gemini-3-flash',
    base: '/v1/publishers/google',
    path: '/v1/publishers/google/models/gemini-3-flash:generateContent',
    streamPath: '/v1/publishers/google/models/gemini-3-flash:streamGenerateContent?alt=sse',
    auth: ['x-goog-api-key', KEY],
    body: {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }],
      generationConfig: { maxOutputTokens: 50, temperature: 0.5 },
    },
    reasons: true,
    cached: 4,
    invalid: { error: { code: 400, message: 'Unrecognized thing', status: 'INVALID_ARGUMENT' } },
    forbidden: { status: 403, body: { error: { code: 403, message: 'Denied', status: 'PERMISSION_DENIED' } } },
  },
  {
    kind: 'amazon-bedrock',
    model: CLAUDE,
    base: '',
    path: `/model/${encodeURIComponent(CLAUDE)}/converse`,
    streamPath: `/model/${encodeURIComponent(CLAUDE)}/converse-stream`,
    auth: bearer,
    body: {
      system: [{ text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ text: 'Say hello.' }] }],
      inferenceConfig: { maxTokens: 50, temperature: 0.5 },
    },
    reasons: true,
    cached: 4,
    invalid: { message: 'Unrecognized thing' },
    forbidden: { status: 403, body: { message: 'The security token included in the request is invalid.' } },
  },
]

const started: Vendor[] = []
afterEach(async () => {
  for (const vendor of started.splice(0)) await vendor.stop()
})

function provide(config: ProviderConfig, environment: Record<string, string> = {}, media?: Media) {
  const parts = providerParts(config, { environment, media })
  return { provider: createProvider(parts), logged: parts.logged, clock: parts.clock }
}

function open(given: Case, ...answers: Answer[]) {
  const vendor = startVendor(...answers)
  started.push(vendor)
  return { vendor, ...provide({ kind: given.kind, base_url: vendor.origin + given.base, key: KEY }) }
}

const callOf = ({ model }: Case, more: Partial<ChatRequest> = {}): ChatCall => ({
  model,
  request: {
    model: `acme/${model}`,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Say hello.' },
    ],
    max_tokens: 50,
    temperature: 0.5,
    ...more,
  },
  request_id: 'req_7',
})

const LOOK: NonNullable<ChatRequest['tools']> = [
  {
    type: 'function',
    function: {
      name: 'look',
      description: 'Looks.',
      parameters: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
    },
  },
]

const read = (kind: string, name: string) =>
  readFileSync(new URL(`./fixtures/ai-sdk-chat/${kind}/${name}`, import.meta.url), 'utf8')
const fixture = (kind: string, name: string): Record<string, unknown> => JSON.parse(read(kind, name))

/** A stream of the vendor, event by event: text, or Amazon's binary frames. */
function eventsOf(kind: string, name: string): (string | Uint8Array)[] {
  if (kind !== 'amazon-bedrock') return read(kind, `${name}.sse`).split(/(?<=\r?\n\r?\n)/)
  const events: [string, unknown][] = JSON.parse(read(kind, `${name}.json`))
  return events.map(([type, payload]) => eventFrame(type, payload))
}
const TYPES: Record<string, string> = { 'amazon-bedrock': 'application/vnd.amazon.eventstream' }
const streamed = (kind: string, events: (string | Uint8Array)[], options: StreamOptions = {}): Answer =>
  stream(events, {
    done: false,
    ...options,
    headers: { 'content-type': TYPES[kind] ?? 'text/event-stream', ...options.headers },
  })

/** The event with the finish reason. */
const FINISH = /finish_?reason":\s*"[a-z]|messageStop|message-end|response\.completed/i

async function chunksOf(provider: Provider, call: ChatCall, signal = NEVER): Promise<ChatChunk[]> {
  const all: ChatChunk[] = []
  for await (const batch of provider.chat?.chunks(call, signal) ?? []) all.push(...batch)
  return all
}
const wholeOf = async (provider: Provider, call: ChatCall): Promise<ChatCompletion> => {
  if (!provider.chat) throw new Error('no chat here')
  return provider.chat.complete(call, NEVER)
}
const deltas = (chunks: ChatChunk[]) => chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
const textOf = (chunks: ChatChunk[]) =>
  deltas(chunks)
    .map(({ content }) => content ?? '')
    .join('')
const thoughtOf = (chunks: ChatChunk[]) =>
  deltas(chunks)
    .map(({ reasoning_content }) => reasoning_content ?? '')
    .join('')
const finishesOf = (chunks: ChatChunk[]) =>
  chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason }) => finish_reason ?? []))

async function errorOf(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.then(
    (value) => value,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return thrown
  throw new Error(`expected a GatewayError, found ${JSON.stringify(thrown)} ${thrown}`)
}

/** The same JSON with an unknown member in every object. */
function withUnknownMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withUnknownMembers)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, withUnknownMembers(member)])
  return { ...Object.fromEntries(members), unseen_member: { deep: [1, null, 'x'] } }
}

describe.each(CASES.map((given) => [given.kind, given] as const))('%s', (kind, given) => {
  const { reasons, cached, hasTools = true } = given
  const thoughts = reasons ? 'A greeting.' : ''

  test("encodes a request in the vendor's format, and decodes its whole response", async () => {
    const { vendor, provider } = open(given, whole(fixture(kind, 'whole.json')))
    const answer = await wholeOf(provider, callOf(given))
    expect(answer.choices).toMatchObject([
      { index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' },
    ])
    expect(answer.choices[0]?.message.reasoning_content ?? '').toBe(thoughts)
    expect(answer.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 })
    expect(answer.usage?.prompt_tokens_details.cached_tokens).toBe(cached ?? 0)
    const [request] = vendor.requests
    expect([request?.method, request?.path, request?.headers[given.auth[0]]]).toEqual([
      'POST',
      given.path,
      given.auth[1],
    ])
    expect(request?.json()).toMatchObject(given.body)
    expect([request?.headers['user-agent'], request?.headers['x-request-id']]).toEqual(['gatehouse', 'req_7'])
    expect(vendor.requests).toHaveLength(1)
  })

  test('decodes a whole response without usage', async () => {
    const { usage: _, usageMetadata: __, ...response } = fixture(kind, 'whole.json') as Record<string, unknown>
    const { provider } = open(given, whole(response))
    const { choices, usage } = await wholeOf(provider, callOf(given))
    expect([choices[0]?.message.content, usage]).toEqual(['Hello there', undefined])
  })

  test('decodes the same from a stream, cut at any byte', async () => {
    for (const chunkBytes of [undefined, 7]) {
      const options = chunkBytes === undefined ? {} : { chunkBytes }
      const { vendor, provider } = open(given, streamed(kind, eventsOf(kind, 'stream'), options))
      const chunks = await chunksOf(provider, callOf(given))
      expect([textOf(chunks), thoughtOf(chunks), finishesOf(chunks)]).toEqual(['Hello there', thoughts, ['stop']])
      expect(deltas(chunks)[0]?.role).toBe('assistant')
      expect(chunks.findLast(({ usage }) => usage)?.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 7 })
      expect(vendor.requests[0]?.path).toBe(given.streamPath ?? given.path)
      expect(vendor.requests[0]?.headers['accept-encoding']).toBe('identity')
    }
  })

  test(hasTools ? 'decodes a tool call, whole and streamed' : 'refuses tools by name', async () => {
    if (!hasTools) {
      const { provider } = open(given)
      const refused = wholeOf(provider, callOf(given, { tools: LOOK }))
      return expect(refused).rejects.toMatchObject({ code: 'unsupported_parameter', detail: { param: 'tools' } })
    }
    const { vendor, provider } = open(
      given,
      whole(fixture(kind, 'tool.json')),
      streamed(kind, eventsOf(kind, 'tool-stream')),
    )
    const call = callOf(given, { tools: LOOK })
    const { choices } = await wholeOf(provider, call)
    expect(choices[0]?.finish_reason).toBe('tool_calls')
    const [received] = choices[0]?.message.tool_calls ?? []
    expect(received).toMatchObject({ type: 'function', function: { name: 'look', arguments: '{"what":"kite"}' } })
    expect(received?.id).toBeString()
    expect(vendor.requests[0]?.body).toContain('"required":["what"]')

    const chunks = await chunksOf(provider, call)
    const calls = deltas(chunks).flatMap(({ tool_calls }) => tool_calls ?? [])
    expect(calls[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'look' } })
    expect(calls.filter(({ id }) => id !== undefined)).toHaveLength(1)
    expect(calls.map((part) => part.function.arguments).join('')).toBe('{"what":"kite"}')
    expect(finishesOf(chunks)).toEqual(['tool_calls'])
  })

  test('ignores unknown members of a response', async () => {
    const events = eventsOf(kind, 'stream').map((event) =>
      typeof event === 'string'
        ? event.replace(
            /^data: (\{.*\})/m,
            (_, json) => `data: ${JSON.stringify(withUnknownMembers(JSON.parse(json)))}`,
          )
        : event,
    )
    const { provider } = open(given, whole(withUnknownMembers(fixture(kind, 'whole.json'))), streamed(kind, events))
    expect((await wholeOf(provider, callOf(given))).choices[0]?.message.content).toBe('Hello there')
    expect(textOf(await chunksOf(provider, callOf(given)))).toBe('Hello there')
  })

  test("maps error responses, whole and streamed: never to the client's own key, with retry-after", async () => {
    const invalid = given.invalid ?? { error: { message: 'Unrecognized thing', type: 'invalid_request_error' } }
    const forbidden = given.forbidden ?? {
      status: 401,
      body: { error: { message: `Bad key ${KEY}`, code: 'invalid_api_key' } },
    }
    const limit = whole(
      { error: { message: 'Slow down' }, message: 'Slow down' },
      { status: 429, headers: { 'retry-after': '9' } },
    )
    const refusals: [Answer, object][] = [
      [whole(forbidden.body, { status: forbidden.status }), { code: 'upstream_auth', status: 502 }],
      [limit, { code: 'rate_limit_exceeded', status: 429, detail: { retry_after: 9 } }],
      [whole(invalid, { status: 400 }), { code: 'upstream_invalid_request', status: 400 }],
      [whole({ message: 'Oops' }, { status: 500 }), { code: 'bad_upstream_response', status: 502 }],
      [whole({ message: 'Busy' }, { status: 503 }), { code: 'server_is_overloaded', status: 503 }],
    ]
    for (const [answer, error] of refusals) {
      const { vendor, provider, logged } = open(given, answer, answer)
      const thrown = [await errorOf(wholeOf(provider, callOf(given))), await errorOf(chunksOf(provider, callOf(given)))]
      for (const one of thrown) expect(one).toMatchObject(error)
      expect(vendor.requests).toHaveLength(2)
      expect(`${thrown.map(({ message }) => message)}${logged()}`).not.toContain(KEY)
    }
    const { provider } = open(given, whole(invalid, { status: 400 }))
    expect((await errorOf(wholeOf(provider, callOf(given)))).message).toContain('Unrecognized thing')
  })

  test('throws for a stream that is cut after any event, however its connection ends', async () => {
    const events = eventsOf(kind, 'stream')
    const last = events.findIndex((event) => FINISH.test(Buffer.from(event).toString('latin1')))
    expect(last).toBeGreaterThan(1)
    for (const framing of ['chunked', 'close'] as const) {
      for (let cutAfter = 1; cutAfter <= last; cutAfter++) {
        const { provider } = open(given, streamed(kind, events, { cutAfter, framing }))
        expect(await errorOf(chunksOf(provider, callOf(given)))).toMatchObject({ code: 'upstream_cut' })
      }
    }
  })

  test('throws for a stream that is cut within an event', async () => {
    const events = eventsOf(kind, 'stream').map((event) => Buffer.from(event))
    const finish = events.findIndex((event) => FINISH.test(event.toString('latin1')))
    const bytes = Buffer.concat(events.slice(0, finish + 1))
    // 211 is prime, so that the cuts fall on other places of each event; the last one takes its very last line.
    const cuts = [bytes.length - 3]
    for (let at = 1; at < bytes.length - 3; at += 211) cuts.push(at)
    for (const at of cuts) {
      const { provider } = open(given, streamed(kind, [bytes.subarray(0, at)], { framing: 'close' }))
      expect(await errorOf(chunksOf(provider, callOf(given)))).toMatchObject({ code: 'upstream_cut' })
    }
  })

  test('throws for a response that is no completion', async () => {
    for (const body of ['<html>Hello</html>', '{"hello":"there"}', '']) {
      const { provider } = open(given, whole(body), whole(body))
      expect((await errorOf(wholeOf(provider, callOf(given)))).code).toBe('bad_upstream_response')
      expect(['bad_upstream_response', 'upstream_cut']).toContain(
        (await errorOf(chunksOf(provider, callOf(given)))).code,
      )
    }
  })

  test('closes the connection when the client disconnects', async () => {
    const { vendor, provider } = open(given, streamed(kind, eventsOf(kind, 'stream'), { hangAfter: 2 }), hang())
    for (const count of [1, 2]) {
      const control = new AbortController()
      const error = errorOf(chunksOf(provider, callOf(given), control.signal))
      const { aborted: gone } = await vendor.request(count)
      control.abort()
      expect((await error).code).toBe('client_closed_request')
      await gone
    }
  })
})

const caseOf = (kind: ProviderKind): Case => {
  const found = CASES.find((given) => given.kind === kind)
  if (found) return found
  throw new Error(`no case for ${kind}`)
}

describe('in the middle of a stream', () => {
  const STREAM_ERRORS: [ProviderKind, string | Uint8Array, object][] = [
    [
      'amazon-bedrock',
      eventFrame('throttlingException', { message: 'Slow' }, 'exception'),
      { code: 'rate_limit_exceeded' },
    ],
    [
      'amazon-bedrock',
      eventFrame('validationException', { message: 'Input is too long for requested model.' }, 'exception'),
      { code: 'context_length_exceeded' },
    ],
    [
      'amazon-bedrock',
      eventFrame('modelStreamErrorException', { message: 'Oops', originalStatusCode: 500 }, 'exception'),
      { code: 'bad_upstream_response' },
    ],
    ['groq', sse({ error: { message: 'Slow', type: 'rate_limit_error' } }), { code: 'rate_limit_exceeded' }],
    ['togetherai', sse({ error: { message: 'Oops', type: 'server_error' } }), { code: 'bad_upstream_response' }],
    ['azure', sse({ error: { message: 'Filtered', code: 'content_filter' } }), { code: 'content_policy_violation' }],
    [
      'xai',
      sse({ type: 'error', code: 'rate_limit_exceeded', message: 'Slow', param: null, sequence_number: 9 }),
      { code: 'rate_limit_exceeded' },
    ],
    [
      'huggingface',
      sse({ type: 'response.failed', response: { error: { code: 'server_error', message: 'Oops' } } }),
      { code: 'bad_upstream_response' },
    ],
    [
      'google-vertex',
      sse({ error: { code: 429, message: 'Slow', status: 'RESOURCE_EXHAUSTED' } }),
      { code: 'rate_limit_exceeded' },
    ],
    ['mistral', 'data: {"object": nonsense\n\n', { code: 'bad_upstream_response' }],
  ]
  test.each(STREAM_ERRORS)('%s: an error is thrown after the chunks before it (%#)', async (kind, event, error) => {
    const given = caseOf(kind)
    const events = eventsOf(kind, 'stream')
    const { provider, vendor } = open(given, streamed(kind, [...events.slice(0, -3), event]))
    const batches = provider.chat?.chunks(callOf(given), NEVER)[Symbol.asyncIterator]()
    let text = ''
    const thrown = await errorOf(
      (async () => {
        for (let next = await batches?.next(); next && !next.done; next = await batches?.next()) {
          text += textOf(next.value)
        }
      })(),
    )
    expect(thrown).toMatchObject(error)
    expect('Hello there').toStartWith(text)
    expect(vendor.requests).toHaveLength(1)
  })

  test('an unknown event is skipped, unless it has text', async () => {
    const given = caseOf('cohere')
    const [first = '', ...rest] = eventsOf('cohere', 'stream')
    const unseen = (type: string) => `event: ${type}\n${sse({ type, index: 0, delta: { message: { sound: 'x' } } })}`
    const { provider } = open(
      given,
      streamed('cohere', [first, unseen('sound-start'), ...rest]),
      streamed('cohere', [first, unseen('sound-delta'), ...rest]),
    )
    expect(textOf(await chunksOf(provider, callOf(given)))).toBe('Hello there')
    expect(await errorOf(chunksOf(provider, callOf(given)))).toMatchObject({ code: 'bad_upstream_response' })
  })

  test('azure: an error before the first text is thrown too', async () => {
    const early = sse({ error: { message: 'Slow', code: 'rate_limit_exceeded' } })
    const { provider } = open(caseOf('azure'), streamed('azure', [early]))
    expect(await errorOf(chunksOf(provider, callOf(caseOf('azure'))))).toMatchObject({ code: 'rate_limit_exceeded' })
  })

  test('an error in JSON with status 200 in place of a stream is thrown as that error', async () => {
    const body = { error: { message: 'Slow', code: 'rate_limit_exceeded' } }
    for (const kind of ['mistral', 'groq', 'perplexity'] as const) {
      const { provider } = open(caseOf(kind), whole(body), whole(body))
      expect(await errorOf(chunksOf(provider, callOf(caseOf(kind))))).toMatchObject({ code: 'rate_limit_exceeded' })
      expect(await errorOf(wholeOf(provider, callOf(caseOf(kind))))).toMatchObject({ code: 'rate_limit_exceeded' })
    }
  })
})

function sse(payload: unknown): string {
  return `data: ${JSON.stringify(payload)}\n\n`
}

describe('signed content', () => {
  const SIGNATURES = [
    [
      'amazon-bedrock',
      'messages-compat',
      { reasoningContent: { reasoningText: { text: 'A greeting.', signature: 'U0lHMQ==' } } },
    ],
    ['google-vertex', 'contentgen-compat', { text: 'A greeting.', thought: true, thoughtSignature: 'U0lHMQ==' }],
  ] as const
  test.each(SIGNATURES)(
    '%s: reasoning is returned with its signature, and sent back with it',
    async (kind, origin, part) => {
      const given = caseOf(kind)
      const { vendor, provider } = open(
        given,
        whole(fixture(kind, 'whole.json')),
        streamed(kind, eventsOf(kind, 'stream')),
      )
      const details = [{ text: 'A greeting.', opaque: { origin, value: 'U0lHMQ==' } }]
      const { message } = (await wholeOf(provider, callOf(given))).choices[0] ?? {}
      expect(message?.reasoning_details).toEqual(details)
      const received = deltas(await chunksOf(provider, callOf(given))).flatMap(
        ({ reasoning_details }) => reasoning_details ?? [],
      )
      expect(received).toEqual(details)

      vendor.answer(whole(fixture(kind, 'whole.json')))
      const history: ChatRequest['messages'] = [
        { role: 'user', content: 'Say hello.' },
        {
          role: 'assistant',
          content: 'Hello there',
          reasoning_details: [...details, { text: 'Foreign.', opaque: { origin: 'chatcompat-response', value: 'x' } }],
        },
        { role: 'user', content: 'Again.' },
      ]
      await wholeOf(provider, callOf(given, { messages: history }))
      expect(vendor.requests[2]?.body).toContain(JSON.stringify(part).slice(1, -1))
      expect(vendor.requests[2]?.body).not.toContain('Foreign')
    },
  )

  test('google-vertex: a tool call is sent back with its signature', async () => {
    const given = caseOf('google-vertex')
    const { vendor, provider } = open(
      given,
      whole(fixture('google-vertex', 'tool.json')),
      streamed('google-vertex', eventsOf('google-vertex', 'tool-stream')),
    )
    const call = callOf(given, { tools: LOOK })
    const opaque = { origin: 'contentgen-compat' as const, value: 'U0lHMg==' }
    const [made] = (await wholeOf(provider, call)).choices[0]?.message.tool_calls ?? []
    expect(made?.opaque).toEqual(opaque)
    const received = deltas(await chunksOf(provider, call)).flatMap(({ tool_calls }) => tool_calls ?? [])
    expect(received.flatMap((one) => one.opaque ?? [])).toEqual([opaque])
    vendor.answer(whole(fixture('google-vertex', 'whole.json')))
    const request = { name: 'look', arguments: '{"what":"kite"}' }
    await wholeOf(provider, {
      ...call,
      request: {
        ...call.request,
        messages: [
          { role: 'user', content: 'Look.' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'a', function: request, opaque },
              { id: 'b', function: request },
            ],
          },
          { role: 'tool', tool_call_id: 'a', content: 'a kite' },
          { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'gone' }], is_error: true },
        ],
      },
    })
    const { contents = [] } = (vendor.requests[2]?.json() ?? {}) as {
      contents?: { parts: Record<string, unknown>[] }[]
    }
    const [, calls, results] = contents
    expect(calls?.parts.map(({ thoughtSignature }) => thoughtSignature)).toEqual(['U0lHMg==', undefined])
    // The results of parallel calls stand together.
    expect(results?.parts.map(({ functionResponse }) => functionResponse)).toMatchObject([
      { name: 'look', response: { content: 'a kite' } },
      { name: 'look', response: { error: 'gone' } },
    ])
  })

  test('deepseek and alibaba get earlier reasoning as plain text', async () => {
    for (const kind of ['deepseek', 'alibaba'] as const) {
      const given = caseOf(kind)
      const { vendor, provider } = open(given, whole(fixture(kind, 'whole.json')))
      const calls = [{ id: 'a', function: { name: 'look', arguments: '{}' } }]
      const messages: ChatRequest['messages'] = [
        { role: 'user', content: 'Look.' },
        { role: 'assistant', content: null, reasoning_content: 'I should look.', tool_calls: calls },
        { role: 'tool', tool_call_id: 'a', content: 'a kite' },
      ]
      await wholeOf(provider, callOf(given, { messages, tools: LOOK }))
      expect(vendor.requests[0]?.json().messages).toMatchObject([{}, { reasoning_content: 'I should look.' }, {}])
    }
  })
})

describe('a field that a package would drop is refused by name, and nothing is sent', () => {
  const schema = { type: 'json_schema' as const, json_schema: { name: 'x', schema: { type: 'object' } } }
  const used: ChatRequest['messages'] = [
    { role: 'user', content: 'Look.' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'a', function: { name: 'look', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'a', content: 'a kite' },
  ]
  const sound: ChatRequest['messages'] = [
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }] },
  ]
  const DROPPED: [ProviderKind, Partial<ChatRequest>, string][] = [
    ['mistral', { n: 2 }, 'n'],
    ['mistral', { logprobs: true }, 'logprobs'],
    ['mistral', { functions: [{ name: 'f' }] }, 'functions'],
    ['mistral', { web_search_options: {} }, 'web_search_options'],
    ['mistral', { web_search: { enable: true } }, 'web_search'],
    ['togetherai', { response_format: schema }, 'response_format'],
    ['perplexity', { tools: LOOK }, 'tools'],
    ['perplexity', { stop: ['x'] }, 'stop'],
    ['perplexity', { response_format: { type: 'json_object' } }, 'response_format'],
    ['huggingface', { stop: 'x' }, 'stop'],
    ['huggingface', { messages: used, tools: LOOK }, 'messages'],
    ['xai', { stop: ['x'] }, 'stop'],
    ['amazon-bedrock', { messages: used }, 'tools'],
    ['amazon-bedrock', { messages: used, tools: LOOK, tool_choice: 'none' }, 'tool_choice'],
    ['groq', { messages: sound }, 'messages'],
    ['mistral', { messages: [{ role: 'function', name: 'f', content: 'x' }] }, 'messages[0].role'],
    [
      'mistral',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] },
      'messages[0].content[0].file.file_id',
    ],
  ]
  test.each(DROPPED)('%s: %j', async (kind, more, param) => {
    const { vendor, provider } = open(caseOf(kind))
    const isContent = param.includes('.content[') || more.messages === sound
    for (const send of [wholeOf, chunksOf]) {
      expect(await errorOf(send(provider, callOf(caseOf(kind), more)))).toMatchObject({
        code: isContent ? 'unsupported_value' : 'unsupported_parameter',
        detail: { param },
      })
    }
    expect(vendor.requests).toEqual([])
  })

  test('a tuning parameter is left out, and logged', async () => {
    const { vendor, provider, logged } = open(caseOf('perplexity'), whole(fixture('perplexity', 'whole.json')))
    await wholeOf(provider, callOf(caseOf('perplexity'), { seed: 7, logit_bias: { 1: 2 } }))
    expect(vendor.requests[0]?.json().seed).toBeUndefined()
    expect(logged()).toContain('"seed"')
  })
})

describe('reasoning and other options that vendors name differently', () => {
  const ENCODED: [ProviderKind, Partial<ChatRequest>, Record<string, unknown>][] = [
    ['alibaba', { reasoning_budget: 2000 }, { enable_thinking: true, thinking_budget: 2000 }],
    ['alibaba', { thinking_enabled: false }, { enable_thinking: false }],
    ['cohere', { reasoning_budget: 2000 }, { thinking: { type: 'enabled', token_budget: 2000 } }],
    ['cohere', { reasoning_budget: 0 }, { thinking: { type: 'disabled' } }],
    ['deepseek', { thinking_enabled: true }, { thinking: { type: 'enabled' } }],
    ['fireworks', { reasoning_budget: 2000 }, { thinking: { type: 'enabled', budget_tokens: 2000 } }],
    ['google-vertex', { reasoning_budget: 0 }, { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }],
    [
      'google-vertex',
      { reasoning_effort: 'low' },
      { generationConfig: { thinkingConfig: { thinkingLevel: 'low', includeThoughts: true } } },
    ],
    ['groq', { reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
    ['xai', { reasoning_effort: 'high' }, { reasoning: { effort: 'high' } }],
    [
      'amazon-bedrock',
      { reasoning_budget: 2000 },
      { additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2000 } } },
    ],
    [
      'mistral',
      { parallel_tool_calls: false, tools: LOOK, tool_choice: 'required' },
      { parallel_tool_calls: false, tool_choice: 'any' },
    ],
    ['azure', { user: 'u1', max_completion_tokens: 9 }, { user: 'u1', max_tokens: 9 }],
    [
      'azure',
      {
        response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' }, strict: true } },
      },
      {
        response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' }, strict: true } },
      },
    ],
    ['cohere', { top_k: 5, top_p: 0.5, stop: ['x'] }, { k: 5, p: 0.5, stop_sequences: ['x'] }],
    [
      'perplexity',
      { web_search_options: { search_context_size: 'high' } },
      { web_search_options: { search_context_size: 'high' } },
    ],
    ['xai', { web_search: { enable: true } }, { tools: [{ type: 'web_search' }] }],
    ['google-vertex', { web_search: { enable: true } }, { tools: [{ googleSearch: {} }] }],
    [
      'fireworks',
      { provider_options: { fireworks: { mirostat: 1, max_tokens: 99, MaxTokens: 9, n: 3 }, groq: { x: 1 } } },
      { mirostat: 1, max_tokens: 50 },
    ],
  ]
  test.each(ENCODED)('%s: %j', async (kind, more, body) => {
    const { vendor, provider } = open(caseOf(kind), whole(fixture(kind, 'whole.json')))
    await wholeOf(provider, callOf(caseOf(kind), more))
    expect(vendor.requests[0]?.json()).toMatchObject(body)
    expect(vendor.requests[0]?.json()).not.toMatchObject({ MaxTokens: 9 })
  })

  test('an option that the package rejects is named', async () => {
    const { vendor, provider } = open(caseOf('mistral'))
    const call = callOf(caseOf('mistral'), { provider_options: { mistral: { safePrompt: 'perhaps' } } })
    const thrown = await errorOf(wholeOf(provider, call))
    expect(thrown).toMatchObject({ code: 'invalid_value', detail: { param: 'provider_options.mistral' } })
    expect(thrown.message).toContain('safePrompt')
    expect(vendor.requests).toEqual([])
  })

  test('request_defaults, fields.rename and fields.drop apply', async () => {
    const given = caseOf('azure')
    const vendor = startVendor(whole(fixture('azure', 'whole.json')))
    started.push(vendor)
    const { provider } = provide({
      kind: 'azure',
      base_url: `${vendor.origin}/openai/v1`,
      key: KEY,
      request_defaults: { top_p: 0.3, serviceTier: 'flex' },
      fields: { rename: { max_tokens: 'maxCompletionTokens' }, drop: ['temperature'] },
    })
    await wholeOf(provider, callOf(given))
    const sent = vendor.requests[0]?.json()
    expect(sent).toMatchObject({ max_completion_tokens: 50, top_p: 0.3 })
    expect([sent?.max_tokens, sent?.temperature]).toEqual([undefined, undefined])
  })

  test('bedrock disables reasoning after a tool call without reasoning, and with a required one', async () => {
    const given = caseOf('amazon-bedrock')
    const { vendor, provider } = open(given)
    vendor.otherwise(whole(fixture('amazon-bedrock', 'whole.json')))
    const calls = [{ id: 'a', function: { name: 'look', arguments: '{}' } }]
    const messages: ChatRequest['messages'] = [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'a', content: 'a kite' },
    ]
    await wholeOf(provider, callOf(given, { messages, tools: LOOK, reasoning_budget: 2000 }))
    await wholeOf(provider, callOf(given, { tools: LOOK, tool_choice: 'required', reasoning_budget: 2000 }))
    for (const request of vendor.requests) expect(request.body).not.toContain('thinking')
  })

  test('perplexity sources become citations, whole and streamed', async () => {
    const given = caseOf('perplexity')
    const { provider } = open(
      given,
      whole(fixture('perplexity', 'whole.json')),
      streamed('perplexity', eventsOf('perplexity', 'stream')),
    )
    const urls = ['https://kites.example/a', 'https://kites.example/b']
    const { message } = (await wholeOf(provider, callOf(given))).choices[0] ?? {}
    expect(message?.annotations?.map(({ url_citation }) => url_citation.url)).toEqual(urls)
    const received = deltas(await chunksOf(provider, callOf(given))).flatMap(({ annotations }) => annotations ?? [])
    expect(received.map(({ url_citation }) => url_citation.url)).toEqual(urls)
  })
})

describe('credentials and base URLs', () => {
  const SIGNER = { region: 'eu-west-1', accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG' }

  /** The signature of version 4, computed again from the received request. */
  function signatureOf({ method, path, headers, body }: Vendor['requests'][number]): string {
    const found = /SignedHeaders=([^,]+), Signature=/.exec(headers.authorization ?? '')
    const names = found?.[1]?.split(';') ?? []
    const time = headers['x-amz-date'] ?? ''
    const scope = `${time.slice(0, 8)}/${SIGNER.region}/bedrock/aws4_request`
    const hash = (text: string) => createHash('sha256').update(text).digest('hex')
    const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
    const lines = names.map((name) => `${name}:${headers[name]}\n`).join('')
    const canonical = [
      method,
      path.split('/').map(encodeURIComponent).join('/'),
      '',
      lines,
      names.join(';'),
      hash(body),
    ]
    const text = ['AWS4-HMAC-SHA256', time, scope, hash(canonical.join('\n'))].join('\n')
    const key = scope.split('/').reduce<string | Buffer>(mac, `AWS4${SIGNER.secretAccessKey}`)
    return mac(key, text).toString('hex')
  }

  test('bedrock: requests are signed for the URL that is called, with configured or environment credentials', async () => {
    const { region, ...pair } = SIGNER
    const environment = {
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: pair.accessKeyId,
      AWS_SECRET_ACCESS_KEY: pair.secretAccessKey,
    }
    for (const [options, around] of [
      [{ ...SIGNER, sessionToken: 'session-token' }, {}],
      [undefined, environment],
    ] as const) {
      const vendor = startVendor(
        whole(fixture('amazon-bedrock', 'whole.json')),
        whole({ message: `no ${pair.secretAccessKey}` }, { status: 400 }),
      )
      started.push(vendor)
      const { provider } = provide(
        { kind: 'amazon-bedrock', base_url: vendor.origin, ...(options ? { options } : {}) },
        around,
      )
      await wholeOf(provider, callOf(caseOf('amazon-bedrock')))
      const [request] = vendor.requests
      if (!request) throw new Error('no request was sent')
      expect(request.headers.authorization).toEndWith(`Signature=${signatureOf(request)}`)
      expect(request.headers.authorization).toContain('host')
      expect(request.headers['x-amz-security-token']).toBe(options?.sessionToken as string)
      const thrown = await errorOf(wholeOf(provider, callOf(caseOf('amazon-bedrock'))))
      expect(thrown.message).toBe('no [redacted]')
    }
  })

  const INVALID: [ProviderConfig, RegExp][] = [
    [{ kind: 'amazon-bedrock' }, /providers\.acme needs a key .*AWS_ACCESS_KEY_ID/],
    [{ kind: 'amazon-bedrock', options: { accessKeyId: 'only-half' } }, /providers\.acme needs a key/],
    [{ kind: 'amazon-bedrock', options: { accessKey: 'x' } }, /options has no "accessKey".* it has region/],
    [{ kind: 'amazon-bedrock', key: KEY, options: { region: 'eu west' } }, /options\.region must be/],
    [{ kind: 'azure', key: KEY }, /needs options\.resourceName/],
    [{ kind: 'azure', key: KEY, options: { resourceName: 'a.b' } }, /needs options\.resourceName/],
    [{ kind: 'azure', key: KEY, options: { resourceName: 'a', api: 'x' } }, /must be chat or responses/],
    [{ kind: 'azure', options: { resourceName: 'a' } }, /needs a key: write key, or set AZURE_API_KEY/],
    [{ kind: 'groq' }, /providers\.acme needs a key: write key, or set GROQ_API_KEY/],
    [{ kind: 'cohere', key: 'two words' }, /providers\.acme\.key holds a space/],
  ]
  test.each(INVALID)('%j is refused with what would be right', (config, message) => {
    expect(() => provide(config)).toThrow(message)
  })

  test('azure: options select deployment URLs and the responses API', async () => {
    const paths = async (options: Record<string, unknown>) => {
      const vendor = startVendor()
      started.push(vendor)
      const { provider } = provide({ kind: 'azure', base_url: `${vendor.origin}/openai`, key: KEY, options })
      await wholeOf(provider, callOf(caseOf('azure'))).catch(() => {})
      return vendor.requests[0]?.path
    }
    expect(await paths({ deploymentUrls: true, apiVersion: '2025-04-01-preview' })).toBe(
      '/openai/deployments/my-deployment/chat/completions?api-version=2025-04-01-preview',
    )
    expect(await paths({ api: 'responses' })).toBe('/openai/v1/responses?api-version=v1')
  })

  test('google-vertex: an access token replaces the key', async () => {
    const vendor = startVendor(whole(fixture('google-vertex', 'whole.json')))
    started.push(vendor)
    const { provider } = provide({
      kind: 'google-vertex',
      base_url: vendor.origin,
      key: 'ya29.token',
      options: { project: 'p' },
    })
    await wholeOf(provider, callOf(caseOf('google-vertex')))
    const [request] = vendor.requests
    expect([request?.headers.authorization, request?.headers['x-goog-api-key']]).toEqual([
      'Bearer ya29.token',
      undefined,
    ])
  })

  test('the same provider serves videos, where its vendor does', () => {
    for (const kind of ['xai', 'alibaba', 'google-vertex'] as const) {
      const { provider } = provide({ kind, key: KEY })
      expect([typeof provider.chat?.complete, typeof provider.video?.start]).toEqual(['function', 'function'])
    }
  })

  test('alibaba: a base URL for videos is adapted to chat in the same region', async () => {
    const vendor = startVendor(whole(fixture('alibaba', 'whole.json')))
    started.push(vendor)
    const { provider } = provide({ kind: 'alibaba', base_url: `${vendor.origin}/api/v1`, key: KEY })
    await wholeOf(provider, callOf(caseOf('alibaba')))
    expect(vendor.requests[0]?.path).toBe('/compatible-mode/v1/chat/completions')
  })

  test('the model list leaves out models that are not for chat', async () => {
    const list = { object: 'list', data: [{ id: 'b', created: 7 }, { id: 'text-embed-1' }, { id: 'a', type: 'image' }] }
    for (const kind of ['mistral', 'groq', 'deepinfra', 'xai', 'deepseek', 'alibaba'] as const) {
      const given = caseOf(kind)
      const { vendor, provider } = open(given, whole(list), whole({ error: 'no' }, { status: 401 }), whole('<html>'))
      const drawn = kind === 'xai' ? [{ model: 'a', families: ['image-generation'] }] : [] // it makes those too
      expect(await provider.listModels?.(NEVER)).toEqual([...drawn, { model: 'b', created: 7 }] as DiscoveredModel[])
      const base = kind === 'deepinfra' ? '/v1/openai' : given.base
      expect([vendor.requests[0]?.path, vendor.requests[0]?.headers.authorization]).toEqual([
        `${base}/models`,
        `Bearer ${KEY}`,
      ])
      expect(await errorOf(Promise.resolve(provider.listModels?.(NEVER)))).toMatchObject({ code: 'upstream_auth' })
      expect(await errorOf(Promise.resolve(provider.listModels?.(NEVER)))).toMatchObject({
        code: 'bad_upstream_response',
      })
    }
  })

  test('bedrock and cohere get the bytes of an image that was given by URL', async () => {
    const address = 'https://pictures.example/kite.png'
    for (const kind of ['amazon-bedrock', 'cohere'] as const) {
      const given = caseOf(kind)
      const vendor = startVendor(whole(fixture(kind, 'whole.json')))
      started.push(vendor)
      const fetched: string[] = []
      const media: Media = {
        async read(value) {
          fetched.push(value)
          return { bytes: new Uint8Array([137, 80, 78, 71]), content_type: 'image/png' }
        },
        check: async () => {},
      }
      const { provider } = provide({ kind, base_url: vendor.origin + given.base, key: KEY }, {}, media)
      const content = [{ type: 'image_url' as const, image_url: { url: address } }]
      await wholeOf(provider, callOf(given, { messages: [{ role: 'user', content }] }))
      expect(fetched).toEqual([address])
      expect(vendor.requests[0]?.body).toContain('iVBORw==')
    }
  })
})

test('the manual has a line for every vendor', () => {
  const page = manualPage('provider-kinds.md')
  const rows = [...page.matchAll(/^- `([a-z-]+)` \(chat[^)]*\): .*(?:_KEY|HF_TOKEN|BEDROCK)/gm)].map(([, kind]) => kind)
  expect(rows.sort()).toEqual(CASES.map(({ kind }) => kind as string).sort())
})

test('clients of two APIs are served by such vendors through the whole gateway', async () => {
  for (const kind of ['amazon-bedrock', 'xai', 'cohere'] as const) {
    const given = caseOf(kind)
    const vendor = startVendor()
    started.push(vendor)
    await using gateway = await startGateway({
      providers: { acme: { kind, key: KEY, base_url: vendor.origin + given.base } },
      models: { [`acme/${given.model}`]: {} },
    })
    const messages = [{ role: 'user', content: 'Say hello.' }]
    const ask = async (path: string, more: object = {}) => {
      const answer = await gateway.call(path, {
        json: { model: `acme/${given.model}`, messages, max_tokens: 50, ...more },
      })
      return { status: answer.status, text: await answer.text() }
    }
    vendor.answer(whole(fixture(kind, 'whole.json')), streamed(kind, eventsOf(kind, 'stream')))
    expect(JSON.parse((await ask('/v1/chat/completions')).text)).toMatchObject({
      model: `acme/${given.model}`,
      choices: [{ message: { content: 'Hello there' } }],
      usage: { prompt_tokens: 12 },
    })
    const { text } = await ask('/v1/messages', { stream: true })
    expect(text).toContain('"text_delta","text":"Hello"')
    expect(text).toContain('event: message_stop')
    vendor.answer(streamed(kind, eventsOf(kind, 'stream'), { cutAfter: 8 }), whole({ message: 'x' }, { status: 401 }))
    const cut = await ask('/v1/chat/completions', { stream: true })
    expect(cut.text).toContain('"code":"upstream_cut"')
    expect(cut.text).not.toContain('[DONE]')
    expect((await ask('/v1/chat/completions', { stream: true })).status).toBe(502)
  }
})
