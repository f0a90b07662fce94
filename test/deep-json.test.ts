/** JSON nested too deeply for recursion: from a provider it is an upstream error, whatever the client and the request. */
import { describe, expect, test } from 'bun:test'
import { startGateway } from './kit/gateway.ts'

const DEPTH = 200_000
const DEEP = '['.repeat(DEPTH) + ']'.repeat(DEPTH)

type Kind = 'chatcompat' | 'messages-compat' | 'contentgen-compat' | 'responses-compat' | 'perplexity' | 'cohere'
const KINDS: Kind[] = ['chatcompat', 'messages-compat', 'contentgen-compat', 'responses-compat', 'perplexity', 'cohere']

const CLIENTS: Record<string, { path(stream: boolean): string; body(stream: boolean): object }> = {
  chatcompat: {
    path: () => '/v1/chat/completions',
    body: (stream) => ({ model: 'vendor/m', messages: [{ role: 'user', content: 'x' }], stream }),
  },
  messages: {
    path: () => '/v1/messages',
    body: (stream) => ({ model: 'vendor/m', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], stream }),
  },
  responses: {
    path: () => '/v1/responses',
    body: (stream) => ({ model: 'vendor/m', input: 'x', store: false, stream }),
  },
  contentgen: {
    path: (stream) => `/v1beta/models/vendor/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'x' }] }] }),
  },
}

/** The members of the responses of all kinds, each with a value that is nested too deeply. */
const deepBody = `{"id":"x","type":"message","object":"response","role":"assistant","status":"completed","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"content":[{"type":"text","text":"x"}],"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"output":[],"usage":{},"extra":${DEEP}}`

/** Tool calls in the format of each kind, with arguments that are nested too deeply: as text or as an object. */
const ARGUMENTS = `{"a":${DEEP}}`
const TEXT = JSON.stringify(ARGUMENTS)
const CALLS: Partial<Record<Kind, string>> = {
  chatcompat: `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${TEXT}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
  'messages-compat': `{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"f","input":${ARGUMENTS}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
  'contentgen-compat': `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":${ARGUMENTS}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`,
  'responses-compat': `{"id":"resp_x","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":${TEXT},"status":"completed"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
}

async function gatewayWith(kind: Kind | 'rerank-compat', upstream: { body: string; type: string; status?: number }) {
  const vendor = Bun.serve({
    port: 0,
    fetch: () =>
      new Response(upstream.body, { status: upstream.status ?? 200, headers: { 'content-type': upstream.type } }),
  })
  const base_url = `http://127.0.0.1:${vendor.port}/v1`
  const families = ['chatcompat', 'messages-compat', 'chatcompat-response', 'contentgen-compat', 'embeddings', 'rerank']
  const gateway = await startGateway({
    providers: { vendor: { kind, base_url, key: 'sk-canary-0123456789' } },
    models: { 'vendor/m': { families: families as never } },
  })
  return {
    call: (path: string, json: object) => gateway.call(path, { json }),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]()
      await vendor.stop(true)
    },
  }
}

for (const kind of KINDS) {
  describe(`deeply nested JSON of a ${kind} provider`, () => {
    for (const [client, { path, body }] of Object.entries(CLIENTS)) {
      test(`in a response is an upstream error for a client of ${client}`, async () => {
        await using gateway = await gatewayWith(kind, { body: deepBody, type: 'application/json' })
        const response = await gateway.call(path(false), body(false))
        expect([response.status, await response.text()]).toEqual([502, expect.not.stringContaining('Something went')])
      })

      test(`in a stream is reported in the stream to a client of ${client}`, async () => {
        const events = `event: message_start\ndata: ${deepBody}\n\ndata: ${deepBody}\n\n`
        await using gateway = await gatewayWith(kind, { body: events, type: 'text/event-stream' })
        const response = await gateway.call(path(true), body(true))
        const text = await response.text()
        expect(text).not.toContain('Something went')
        expect(text).toContain('error')
        if (response.status !== 200) expect(response.status).toBe(502)
      })

      test(`in an error keeps the status of the error for a client of ${client}`, async () => {
        await using gateway = await gatewayWith(kind, {
          body: `{"error":{"message":"no","x":${DEEP}}}`,
          type: 'application/json',
          status: 422,
        })
        const response = await gateway.call(path(false), body(false))
        expect([response.status, await response.text()]).toEqual([400, expect.not.stringContaining('Something went')])
      })

      const call = CALLS[kind]
      if (call !== undefined) {
        test(`in a tool call causes no 500 for a client of ${client}`, async () => {
          await using gateway = await gatewayWith(kind, { body: call, type: 'application/json' })
          const response = await gateway.call(path(false), body(false))
          expect(await response.text()).not.toContain('Something went')
          expect([200, 502]).toContain(response.status)
        })
      }
    }
  })
}

test('deeply nested JSON in an embeddings response is an upstream error', async () => {
  await using gateway = await gatewayWith('chatcompat', { body: `{"data":${DEEP}}`, type: 'application/json' })
  const response = await gateway.call('/v1/embeddings', { model: 'vendor/m', input: 'x' })
  expect([response.status, await response.text()]).toEqual([502, expect.not.stringContaining('Something went')])
})

test('deeply nested JSON in a rerank response is an upstream error', async () => {
  await using gateway = await gatewayWith('rerank-compat', { body: `{"results":${DEEP}}`, type: 'application/json' })
  const response = await gateway.call('/v1/rerank', { model: 'vendor/m', query: 'x', documents: ['x'] })
  expect([response.status, await response.text()]).toEqual([502, expect.not.stringContaining('Something went')])
})

describe("deeply nested JSON in the arguments of a client's tool call", () => {
  for (const kind of KINDS) {
    test(`causes no 500 with a ${kind} provider`, async () => {
      await using gateway = await gatewayWith(kind, {
        body: '{"error":{"message":"no"}}',
        type: 'application/json',
        status: 422,
      })
      const call = { id: 'c', type: 'function', function: { name: 'f', arguments: ARGUMENTS } }
      const response = await gateway.call('/v1/chat/completions', {
        model: 'vendor/m',
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: 'c', content: ARGUMENTS },
        ],
      })
      expect([response.status, await response.text()]).toEqual([400, expect.not.stringContaining('Something went')])
    })
  }
})
