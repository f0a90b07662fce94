/** Responses known to break real clients, each in a test of its own; others are with the client's own tests. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { ChatOpenAI, customTool, OpenAIEmbeddings } from '@langchain/openai'
import { generateText } from 'ai'
import Anthropic0 from 'anthropic-sdk-0'
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { startGateway } from './kit/gateway.ts'
import { openPort, type Port } from './kit/served.ts'
import { chunk, chunks, startVendor, stream, usageChunk, type Vendor } from './kit/vendor.ts'

let vendor: Vendor
let port: Port
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  vendor = startVendor()
  port = await openPort({ providers: { v: { base_url: vendor.url, key: 'k' } }, models: { 'v/m': {} } })
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
})

const origin = () => port.url.replace(/\/v1$/, '')

/** The dialects as they stand on the wire: where a stream is asked for, and what its events must be. */
type Face = {
  path: string
  body: Record<string, unknown>
  /** Whether events have names, which then are those in their data. */
  isNamed: boolean
  /** The end that clients wait for. */
  end: RegExp
  /** How a failure in mid-stream begins. */
  failure: RegExp
  /** What is sent in silence. */
  keepAlive: string
}
const QUESTION = [{ role: 'user', parts: [{ text: 'Hello' }] }]
const FACES: Record<string, Face> = {
  chatcompat: {
    path: '/v1/chat/completions',
    body: { model: 'v/m', messages: [{ role: 'user', content: 'Hello' }], stream: true },
    isNamed: false,
    end: /data: \[DONE\]\n\n$/,
    failure: /^data: \{"error":\{"message":"/,
    keepAlive: ': keep-alive\n\n',
  },
  'messages-compat': {
    path: '/v1/messages',
    body: { model: 'v/m', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }], stream: true },
    isNamed: true,
    end: /event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/,
    failure: /^event: error\ndata: \{"type":"error","error":\{"type":"\w+","message":"/,
    keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  },
  'chatcompat-response': {
    path: '/v1/responses',
    body: { model: 'v/m', input: 'Hello', stream: true, store: false },
    isNamed: true,
    end: /event: response\.completed\ndata: [^\n]+\n\n$/,
    failure: /^event: response\.failed\ndata: \{"type":"response\.failed","sequence_number":\d+,"response":\{/,
    keepAlive: ': keep-alive\n\n',
  },
  'contentgen-compat': {
    path: '/v1beta/models/v/m:streamGenerateContent?alt=sse',
    body: { contents: QUESTION },
    isNamed: false,
    end: /data: \{[^\n]*"finishReason":"STOP"[^\n]*\}\n\n$/,
    failure: /^data: \{"error":\{"code":5\d\d,"message":"/,
    keepAlive: ': keep-alive\n\n',
  },
}
const NAMES = Object.keys(FACES)
const formatOf = (name: string): Face => {
  const face = FACES[name]
  if (!face) throw new Error(`There is no dialect ${name}.`)
  return face
}
const ask = (name: string, more: object = {}) => {
  const { path, body } = formatOf(name)
  return port.gateway.call(path, { json: { ...body, ...more } })
}
const blocksOf = (text: string): string[] => text.split('\n\n').filter(Boolean)
const dataOf = (block: string): string => /^data: (.*)$/m.exec(block)?.[1] ?? ''

describe.each(NAMES)('a stream of %s', (name) => {
  const { isNamed, end, failure, keepAlive } = formatOf(name)

  test('has complete events: an optional name and one line of JSON, without id and retry', async () => {
    vendor.answer(stream([': comment\n\nid: 7\nretry: 5\n', ...chunks('Hel', 'lo\n\nyou', '')]))
    const response = await ask(name)
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const blocks = blocksOf(await response.text()).filter((block) => block !== 'data: [DONE]')
    expect(blocks.length).toBeGreaterThan(1)
    for (const block of blocks) {
      expect(block).toMatch(isNamed ? /^event: [\w.]+\ndata: \{[^\n]*\}$/ : /^data: \{[^\n]*\}$/)
      const { type, error } = JSON.parse(dataOf(block)) as { type?: string; error?: unknown }
      if (isNamed) expect(block).toStartWith(`event: ${type}\n`)
      // The Python client takes any event for a failure whose `error` is true to it.
      expect(error ?? null).toBeNull()
    }
  })

  test(`has [DONE] ${name === 'chatcompat' ? 'at its end' : 'nowhere, because its clients parse it as JSON'}`, async () => {
    const text = await (await ask(name)).text()
    expect(text).toMatch(end)
    expect(text.split('[DONE]').length - 1).toBe(name === 'chatcompat' ? 1 : 0)
  })

  test('that fails midway has an error event of its API and no regular end', async () => {
    vendor.answer(stream([chunk({ role: 'assistant', content: 'Hel' }), { error: { message: 'broken' } }]))
    const blocks = blocksOf(await (await ask(name)).text())
    expect(blocks.at(-1)).toMatch(failure)
    expect(blocks.join('\n\n')).not.toMatch(/\[DONE\]|message_stop|response\.completed|finishReason/)
  })

  test('gets keep-alives as separate blocks before and after its first event', async () => {
    const opened = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const [role, word, ...rest] = chunks('Hello')
    const slow = startVendor(stream([opened.promise, role ?? {}, word ?? {}, closed.promise, ...rest]))
    const gateway = await startGateway({ providers: { v: { base_url: slow.url } }, models: { 'v/m': {} } })
    const { path, body } = formatOf(name)
    const coming = gateway.call(path, { json: body })
    await slow.request()
    gateway.clock.advance(14_999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(Bun.peek.status(coming)).toBe('pending')
    gateway.clock.advance(1)
    const reader = ((await coming).body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    const next = async () => decoder.decode((await reader.read()).value)
    expect(await next()).toBe(keepAlive)
    const waiting = next()
    gateway.clock.advance(14_999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(Bun.peek.status(waiting)).toBe('pending')
    gateway.clock.advance(1)
    expect(await waiting).toBe(keepAlive)
    opened.resolve()
    let said = ''
    while (!said.includes('Hello')) said += await next()
    expect(said).not.toContain(': keep-alive')
    const silent = next()
    gateway.clock.advance(15_000)
    expect(await silent).toBe(keepAlive)
    closed.resolve()
    let text = ''
    for (let piece = await next(); piece !== ''; piece = await next()) text += piece
    expect(text).toMatch(end)
    await gateway[Symbol.asyncDispose]()
    await slow.stop()
  })
})

test('a chat completions client without include_usage gets no usage chunk', async () => {
  vendor.answer(stream([chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop'), usageChunk()]))
  expect(await (await ask('chatcompat')).text()).not.toContain('"usage":{')
  vendor.answer(stream([chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop'), usageChunk()]))
  const text = await (await ask('chatcompat', { stream_options: { include_usage: true } })).text()
  expect(text.split('"usage":{').length - 1).toBe(1)
})

/** Every family's own path, and a body that it refuses. */
const FAMILIES: [path: string, body: object][] = [
  ['/v1/chat/completions', {}],
  ['/v1/responses', {}],
  ['/v1/messages', {}],
  ['/v1/messages/count_tokens', {}],
  ['/v1/responses/input_tokens', {}],
  ['/v1beta/models/v/m:generateContent', {}],
  ['/v1/models/v%2Fm:countTokens', {}],
  ['/v1/embeddings', {}],
  ['/v1/rerank', {}],
  ['/v1/moderations', {}],
  ['/v1/images/generations', {}],
  ['/v1/3d/generations', {}],
  ['/v1/video/generations', {}],
  ['/v1/videos', {}],
]
test.each(FAMILIES)(
  '%s tells a refusal in an object "error" with a message, and so a wrong token',
  async (path, json) => {
    for (const [status, headers] of [
      [400, {}],
      [401, { authorization: 'Bearer sk-wrong' }],
    ] as const) {
      const response = await port.gateway.call(path, { json, headers })
      const { error } = (await response.json()) as { error: { message: string } }
      expect([response.status, typeof error.message, error.message.length > 10]).toEqual([status, 'string', true])
      expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    }
  },
)

describe('the client packages of the Messages API', () => {
  const MAJORS = [
    ['1', Anthropic, { authorization: 'Bearer', 'anthropic-version': '2026-10-21' }],
    ['0', Anthropic0 as unknown as typeof Anthropic, { 'x-api-key': 'sk-', 'anthropic-version': '2023-06-01' }],
  ] as const

  test.each(MAJORS)(
    'major %s brings its key and its version in its own way, and reads its request id',
    async (_, Sdk, says) => {
      port.requests.length = 0
      const client = new Sdk({ apiKey: port.token, baseURL: origin(), maxRetries: 0 })
      const message = { model: 'v/m', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hello' }] }
      const { data, request_id } = await client.messages.create(message).withResponse()
      expect([data.content[0]?.type, request_id]).toEqual(['text', expect.stringMatching(/^req_/)])
      await client.beta.messages.create(message)
      expect(port.requests.map(({ path }) => path)).toEqual(['/v1/messages', '/v1/messages'])
      for (const { headers } of port.requests) {
        for (const [name, value] of Object.entries(says)) expect(headers.get(name)).toStartWith(value)
      }
    },
  )

  test('@ai-sdk/anthropic requests 4096 tokens from an unknown model, and the provider gets that limit', async () => {
    const provider = createAnthropic({ baseURL: port.url, apiKey: port.token })
    const count = vendor.requests.length
    await generateText({ model: provider('v/m'), prompt: 'Hello', maxRetries: 0 })
    expect(vendor.requests[count]?.json()).toMatchObject({ max_tokens: 4096 })
  })
})

describe('the client packages of contentgen', () => {
  const asked = { model: 'v/m', contents: 'Hello' }
  const http = () => ({ apiKey: port.token, httpOptions: { baseUrl: origin() } })
  const google = () => createGoogleGenerativeAI({ baseURL: `${origin()}/v1beta`, apiKey: port.token })
  const CALLS: [name: string, call: () => Promise<unknown>, path: string][] = [
    ['@google/genai 3', () => new GoogleGenAI(http()).models.generateContent(asked), '/v1/models/v/m:generateContent'],
    [
      '@google/genai 2',
      () => new GoogleGenAI2(http()).models.generateContent(asked),
      '/v1beta/models/v/m:generateContent',
    ],
    [
      '@ai-sdk/google',
      () => generateText({ model: google()('v/m'), prompt: 'Hello', maxRetries: 0 }),
      '/v1beta/v/m:generateContent',
    ],
  ]

  test.each(CALLS)('%s gets a response at its own path', async (_, call, path) => {
    port.requests.length = 0
    expect(await call()).toMatchObject({ text: 'Hello' })
    expect(port.requests.map((came) => came.path)).toEqual([path])
  })

  test.each([
    '/v1/models/v%2Fm:generateContent',
    '/v1beta/models/v%2Fm:generateContent',
    '/v1alpha/models/v/m:generateContent',
    '/v1beta/v%2Fm:generateContent',
  ])('%s is equal with a raw or encoded slash', async (path) => {
    const response = await port.gateway.call(path, { json: { contents: QUESTION } })
    expect([response.status, JSON.stringify(await response.json()).includes('"Hello"')]).toEqual([200, true])
  })

  test('receive an error with a numeric code and a status name', async () => {
    const none = await port.gateway.call('/v1beta/models/none:generateContent', { json: { contents: QUESTION } })
    expect(await none.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND', message: expect.any(String) } })
  })
})

test('@langchain/openai switches to the Responses API for a custom tool', async () => {
  port.requests.length = 0
  const model = new ChatOpenAI({
    model: 'sandbox/general',
    apiKey: port.token,
    configuration: { baseURL: port.url },
    maxRetries: 0,
  })
  const tool = customTool(async () => 'noted', { name: 'note', description: 'Takes a note.' })
  const { tool_calls } = await model.bindTools([tool]).invoke('Please call note with a word.')
  expect(port.requests.map(({ path }) => path)).toEqual(['/v1/responses'])
  expect(tool_calls?.map(({ name }) => name)).toEqual(['note'])
})

describe('embeddings, which the packages request as base64 by default', () => {
  const TEXTS = ['a gate', 'a house of five floors']
  const MAJORS = [
    ['7', OpenAI],
    ['6', OpenAI6 as unknown as typeof OpenAI],
  ] as const
  const wanted = async () => {
    const response = await port.gateway.call('/v1/embeddings', {
      json: { model: 'sandbox/embedding', input: TEXTS, encoding_format: 'float' },
    })
    const { data } = (await response.json()) as { data: { embedding: number[] }[] }
    return data.map(({ embedding }) => [...new Float32Array(embedding)])
  }

  test.each(MAJORS)('openai %s decodes the right numbers', async (_, Sdk) => {
    const client = new Sdk({ baseURL: port.url, apiKey: port.token, maxRetries: 0 })
    const { data } = await client.embeddings.create({ model: 'sandbox/embedding', input: TEXTS })
    expect(data[0]?.embedding.length).toBeGreaterThan(10)
    expect(data.map(({ embedding }) => [...embedding])).toEqual(await wanted())
  })

  test('@langchain/openai decodes the right numbers', async () => {
    const embeddings = new OpenAIEmbeddings({
      model: 'sandbox/embedding',
      apiKey: port.token,
      configuration: { baseURL: port.url },
      maxRetries: 0,
    })
    expect(await embeddings.embedDocuments(TEXTS)).toEqual(await wanted())
  })

  test('the bytes are little-endian 32-bit floats', async () => {
    const response = await port.gateway.call('/v1/embeddings', {
      json: { model: 'sandbox/embedding', input: TEXTS[0], encoding_format: 'base64' },
    })
    const { data } = (await response.json()) as { data: { embedding: string }[] }
    const bytes = Buffer.from(data[0]?.embedding ?? '', 'base64')
    const [first] = await wanted()
    expect(first?.map((_, index) => bytes.readFloatLE(index * 4))).toEqual(first)
  })
})

test('a task that fails for lack of quota is a FAILURE with status 200, never 402 or 429', async () => {
  const order = {
    model: 'sandbox/text-to-video',
    prompt: 'A boat.\n@sandbox fail=insufficient_quota queue_ms=0 render_ms=1',
  }
  const submitted = await port.gateway.call('/v1/video/generations', { json: order })
  const { task_id } = ((await submitted.json()) as { data: { task_id: string } }).data
  const statuses = new Set<number>()
  let task: { status: string; fail_code?: string } = { status: '' }
  while (task.status !== 'FAILURE' && task.status !== 'SUCCESS') {
    const response = await port.gateway.call(`/v1/video/generations/${task_id}?wait=20`)
    statuses.add(response.status)
    task = ((await response.json()) as { data: typeof task }).data
  }
  expect([task.status, task.fail_code, [...statuses]]).toEqual(['FAILURE', 'insufficient_quota', [200]])
})

test('a short retry-after is rounded up to whole seconds, which every client honours', async () => {
  const answers = await Promise.all(
    ['7', '1.2', '0'].map(async (seconds) => {
      const limited = startVendor()
      limited.otherwise(async (wire) => {
        const body = '{"error":{"message":"slow"}}'
        await wire.write(
          `HTTP/1.1 429 Too Many\r\nretry-after: ${seconds}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        )
      })
      const gateway = await startGateway({ providers: { v: { base_url: limited.url } }, models: { 'v/m': {} } })
      const response = await gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: 'x' }] })
      await gateway[Symbol.asyncDispose]()
      await limited.stop()
      return [response.status, response.headers.get('retry-after')]
    }),
  )
  for (const [status, seconds] of answers) {
    expect(status).toBe(429)
    expect(seconds).toMatch(/^\d+$/)
  }
})
