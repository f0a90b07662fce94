/** The kind `contentgen-compat` against a provider on loopback, alone and behind the whole gateway. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import type { ChatRequest } from '../src/protocols/shared/canonical.ts'
import type { ChatCall } from '../src/providers/provider.ts'
import { openPort, type Port } from './kit/served.ts'
import { createStandaloneProvider, NEVER } from './kit/standalone-provider.ts'
import { hang, raw, reset, startVendor, stream, whole } from './kit/vendor.ts'

const fixture = (name: string) => readFileSync(new URL(`./fixtures/contentgen-compat/${name}`, import.meta.url), 'utf8')
const streamed = (name: string) => stream([fixture(name)], { done: false })

const KEY = 'AIzaSecretSecretSecret'
const CALL: ChatCall = {
  model: 'gemini-2.5-flash',
  request: { model: 'v/gemini-2.5-flash', messages: [{ role: 'user', content: 'Hello' }] },
  request_id: 'req-7',
}
const { providerAt, chunksFrom, logged } = createStandaloneProvider({ kind: 'contentgen-compat', key: KEY }, CALL)

const vendor = startVendor()
afterAll(() => vendor.stop())
afterEach(() => {
  vendor.requests.length = 0
})

const provider = providerAt(`${vendor.origin}/v1beta`)

describe('a contentgen provider on loopback', () => {
  test('receives requests at its path, with its key in a header and our request id', async () => {
    vendor.answer(whole(fixture('whole.json')), streamed('stream.sse'))
    expect((await provider.chat?.complete(CALL, NEVER))?.choices[0]?.message.content).toBe('Guten Tag')
    expect(await chunksFrom(provider)).not.toBeEmpty()
    const paths = ['generateContent', 'streamGenerateContent?alt=sse']
    for (const [index, path] of paths.entries()) {
      const requested = vendor.requests[index]
      expect(requested).toMatchObject({ method: 'POST', path: `/v1beta/models/gemini-2.5-flash:${path}` })
      expect(requested?.headers).toMatchObject({ 'x-goog-api-key': KEY, 'x-request-id': 'req-7' })
      expect(requested?.headers.authorization).toBeUndefined()
      expect(requested?.json()).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] })
    }
  })

  test.each([
    ['tunedModels/mine-1', 'tunedModels/mine-1'],
    ['models/x', 'models/x'],
    ['a?b', 'models/a%3Fb'],
  ])('has the model %s at %s', async (model, path) => {
    vendor.answer(whole(fixture('whole.json')))
    await provider.chat?.complete({ ...CALL, model }, NEVER)
    expect(vendor.requests[0]?.path).toBe(`/v1beta/${path}:generateContent`)
  })

  test('receives the same request as from the vendor’s own client library', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    vendor.answer(whole(fixture('whole.json')), whole(fixture('whole.json')))
    const client = new GoogleGenAI({
      apiKey: KEY,
      httpOptions: { baseUrl: vendor.origin, apiVersion: 'v1beta' },
    })
    await client.models.generateContent({
      model: 'gemini-3-flash-preview',
      contents: [
        { role: 'user', parts: [{ text: 'Where?' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
        {
          role: 'model',
          parts: [{ functionCall: { id: 'c1', name: 'look', args: { city: 'Köln' } }, thoughtSignature: 'c2ln' }],
        },
        { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'look', response: { output: 'Sun.' } } }] },
      ],
      config: {
        systemInstruction: 'Be short.',
        temperature: 0.5,
        topP: 0.9,
        topK: 20,
        maxOutputTokens: 100,
        stopSequences: ['END'],
        seed: 5,
        presencePenalty: 0.5,
        tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks.', parametersJsonSchema: schema }] }],
        toolConfig: { functionCallingConfig: { mode: 'AUTO' as never } },
        thinkingConfig: { thinkingLevel: 'LOW' as never, includeThoughts: true },
        responseMimeType: 'application/json',
        responseJsonSchema: schema,
      },
    })
    const request: ChatRequest = {
      model: 'v/m',
      messages: [
        { role: 'system', content: 'Be short.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Where?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
        {
          role: 'assistant',
          tool_calls: [
            {
              id: 'c1',
              function: { name: 'look', arguments: '{"city":"Köln"}' },
              opaque: { origin: 'contentgen-compat', value: 'c2ln' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'Sun.' },
      ],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 20,
      max_tokens: 100,
      stop: 'END',
      seed: 5,
      presence_penalty: 0.5,
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks.', parameters: schema } }],
      tool_choice: 'auto',
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
    }
    await provider.chat?.complete({ model: 'gemini-3-flash-preview', request, request_id: 'r' }, NEVER)
    const [theirs, ours] = vendor.requests
    expect(ours?.path).toBe(theirs?.path as string)
    const summary = theirs?.json() as { systemInstruction: { role?: string } }
    delete summary.systemInstruction.role
    expect(ours?.json()).toEqual(summary)
  })

  test('lists its models page by page: those for chat or embeddings, without images and audio', async () => {
    vendor.answer(whole(fixture('models-1.json')), whole(fixture('models-2.json')))
    const known = providerAt(`${vendor.origin}/v1beta`, { preset: 'gemini' })
    expect(await known.listModels?.(NEVER)).toEqual([
      { model: 'gemini-2.5-flash' },
      { model: 'gemini-3-pro-preview' },
      { model: 'gemini-embedding-001', families: ['embeddings'] },
      { model: 'gemma-3-27b-it' },
    ])
    expect(vendor.requests.map(({ path }) => path)).toEqual([
      '/v1beta/models?pageSize=1000',
      '/v1beta/models?pageSize=1000&pageToken=Ch9tb2RlbHM%3D',
    ])
  })

  test('ends a list with a repeated page token, and treats an invalid list as empty', async () => {
    vendor.answer(whole(fixture('models-1.json')), whole(fixture('models-1.json')), whole({ data: [] }), whole({}))
    expect(await provider.listModels?.(NEVER)).toHaveLength(3)
    await expect(provider.listModels?.(NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    expect(await provider.listModels?.(NEVER)).toEqual([])
  })

  test('counts tokens', async () => {
    vendor.answer(whole({ totalTokens: 31, promptTokensDetails: [] }), whole({ totalTokens: 'x' }))
    expect(await provider.chat?.countTokens?.(CALL, NEVER)).toBe(31)
    expect(vendor.requests[0]).toMatchObject({ path: '/v1beta/models/gemini-2.5-flash:countTokens' })
    await expect(provider.chat?.countTokens?.(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
  })

  test('treats a broken connection after the finish as the end, and before it as an error', async () => {
    const events = fixture('stream.sse').split(/(?<=\r\n\r\n)/)
    // The body ends with the connection: with a broken chunked body the last bytes may be lost.
    const until = (cutAfter: number) => stream(events, { cutAfter, done: false, framing: 'close' })
    vendor.answer(until(events.length), until(3))
    expect((await chunksFrom(provider)).at(-1)?.choices[0]?.finish_reason).toBe('stop')
    await expect(chunksFrom(provider)).rejects.toMatchObject({ code: 'upstream_cut' })
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

describe('provider errors', () => {
  const INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
  const badKey = [{ '@type': INFO, reason: 'API_KEY_INVALID', domain: 'googleapis.com' }]
  const REFUSALS: [status: number, word: string, message: string, code: string, shown: number, details?: object[]][] = [
    [400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', 'upstream_auth', 502, badKey],
    [400, 'INVALID_ARGUMENT', 'Something about a key.', 'upstream_auth', 502, badKey],
    [400, 'INVALID_ARGUMENT', 'Invalid value at temperature', 'upstream_invalid_request', 400],
    [
      400,
      'INVALID_ARGUMENT',
      'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).',
      'context_length_exceeded',
      400,
    ],
    [400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.', 'no_available_channel', 503],
    [400, 'FAILED_PRECONDITION', 'The File x is not in an ACTIVE state.', 'upstream_invalid_request', 400],
    [401, 'UNAUTHENTICATED', 'Request is missing required authentication credential.', 'upstream_auth', 502],
    [403, 'PERMISSION_DENIED', 'Requests to this API are blocked.', 'upstream_auth', 502],
    [
      403,
      'PERMISSION_DENIED',
      'You do not have permission to access the File x or it may not exist.',
      'upstream_invalid_request',
      400,
    ],
    [404, 'NOT_FOUND', 'models/x is not found for API version v1beta', 'bad_upstream_response', 502],
    [429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota, please check your plan', 'no_available_channel', 503],
    [429, 'RESOURCE_EXHAUSTED', 'Resource has been exhausted (e.g. check quota).', 'rate_limit_exceeded', 429],
    [500, 'INTERNAL', 'An internal error has occurred.', 'bad_upstream_response', 502],
    [503, 'UNAVAILABLE', 'The model is overloaded.', 'server_is_overloaded', 503],
    [504, 'DEADLINE_EXCEEDED', 'Late.', 'upstream_timeout', 504],
  ]
  test.each(REFUSALS)('map %d %s (%s) to %s %d', async (status, word, message, code, shown, details) => {
    const body = { error: { code: status, message, status: word, ...(details ? { details } : {}) } }
    const { code: _, ...withoutCode } = body.error
    vendor.answer(whole(body, { status }), whole([body], { status }), whole(body), whole({ error: withoutCode }))
    vendor.answer(stream([body], { done: false }))
    for (let count = 0; count < 4; count++) {
      await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({ code, status: shown })
    }
    await expect(chunksFrom(provider)).rejects.toMatchObject({ code })
  })

  test('include the time to retry for a rate limit, even if the provider calls it a quota', async () => {
    const details = [
      { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaValue: '10' }] },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '26.4s' },
    ]
    const message = 'You exceeded your current quota, please check your plan and billing details.'
    vendor.answer(whole({ error: { code: 429, message, status: 'RESOURCE_EXHAUSTED', details } }, { status: 429 }))
    await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      detail: { retry_after: 27 },
    })
  })

  test('include a web page, an empty response and a broken connection', async () => {
    const html = { headers: { 'content-type': 'text/html' } }
    vendor.answer(whole('<html>', { status: 502, ...html }), whole('', { status: 400 }), whole('<html>', html), reset())
    await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({ code: 'upstream_invalid_request' })
    await expect(chunksFrom(provider)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    await expect(provider.chat?.complete(CALL, NEVER)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    vendor.answer(raw('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"cand', { close: true }))
    await expect(chunksFrom(provider)).rejects.toMatchObject({ code: 'upstream_cut' })
  })

  test('never include the key in a log, an error or a URL', async () => {
    vendor.answer(whole({ error: { code: 500, message: `key ${KEY}`, status: 'INTERNAL' } }, { status: 500 }))
    vendor.answer(whole({ error: { code: 400, message: `key=${KEY}`, status: 'INVALID_ARGUMENT' } }, { status: 400 }))
    const first = await provider.chat?.complete(CALL, NEVER).catch((failure) => failure)
    const second = await provider.chat?.complete(CALL, NEVER).catch((failure) => failure)
    expect(logged()).toContain('upstream error response')
    expect(`${logged()}${first}${second}${vendor.requests.map(({ path }) => path)}`).not.toContain(KEY)
  })
})

describe('a contentgen provider behind the whole gateway', () => {
  let port: Port
  beforeAll(async () => {
    port = await openPort({
      providers: { v: { kind: 'contentgen-compat', base_url: `${vendor.origin}/v1beta`, key: KEY } },
      models: { 'v/gemini-3-flash-preview': {}, 'v/gemini-3-pro-image-preview': {} },
    })
  })
  afterAll(() => port.close())

  const MODEL = 'v/gemini-3-flash-preview'
  const openai = () => new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
  const anthropic = () => new Anthropic({ apiKey: port.token, baseURL: port.url.replace(/\/v1$/, ''), maxRetries: 0 })
  const schema = { type: 'object' as const, properties: { city: { type: 'string' } } }
  const names = ['get_weather', 'get_time']
  /** The contents of the last request, after the response of `tools.json` or `tools.sse`. */
  const sentBack = () => vendor.requests[1]?.json().contents as { role: string; parts: Record<string, unknown>[] }[]

  /** What the provider must receive of its calls in the second turn, and of their results. */
  function expectSignedHistory() {
    const [, summary, results] = sentBack()
    const calls = summary?.parts.filter((part) => part.functionCall)
    expect(calls).toMatchObject([
      { functionCall: { name: 'get_weather', args: { city: 'Köln' } }, thoughtSignature: 'c2lnbmF0dXJlIDE=' },
      { functionCall: { name: 'get_time', args: {} } },
      { functionCall: { name: 'get_time', args: { zone: 'CET' } } },
    ])
    expect(calls?.slice(1).some((part) => part.thoughtSignature)).toBe(false)
    expect(results?.parts.map((part) => part.functionResponse)).toMatchObject([
      { name: 'get_weather', response: { output: 'result 0' } },
      { name: 'get_time', response: { output: 'result 1' } },
      { name: 'get_time', response: { output: 'result 2' } },
    ])
    const ids = (parts: Record<string, unknown>[] = [], member: string) =>
      parts.map((part) => (part[member] as { id?: string }).id)
    expect(ids(results?.parts, 'functionResponse')).toEqual(ids(calls, 'functionCall'))
    expect(new Set(ids(calls, 'functionCall')).size).toBe(3)
  }

  test('completes two turns of tool calls of a chat client, whole, and returns the signature in place', async () => {
    vendor.answer(whole(fixture('tools.json')), whole(fixture('whole.json')))
    const tools = names.map((name) => ({ type: 'function' as const, function: { name, parameters: schema } }))
    const question = { role: 'user' as const, content: 'Weather and time in Köln?' }
    const first = await openai().chat.completions.create({ model: MODEL, messages: [question], tools })
    const message = first.choices[0]?.message
    if (!message) throw new Error('There is no message.')
    expect(first.choices[0]?.finish_reason).toBe('tool_calls')
    expect(first.usage).toMatchObject({ prompt_tokens: 80, completion_tokens: 70, total_tokens: 150 })
    const results = (message.tool_calls ?? []).map(({ id }, index) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: `result ${index}`,
    }))
    const second = await openai().chat.completions.create({
      model: MODEL,
      messages: [question, message, ...results],
      tools,
    })
    expect(second.choices[0]?.message.content).toBe('Guten Tag')
    expectSignedHistory()
  })

  test('completes two turns of tool calls of a Messages client, streamed, and returns the signature in place', async () => {
    vendor.answer(streamed('tools.sse'), streamed('stream.sse'))
    const tools = names.map((name) => ({ name, input_schema: schema }))
    const question = { role: 'user' as const, content: 'Weather and time in Köln?' }
    const requested = { model: MODEL, max_tokens: 500, tools }
    const first = await anthropic()
      .messages.stream({ ...requested, messages: [question] })
      .finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    expect(first.content[0]).toMatchObject({ type: 'thinking', thinking: 'I look it up.' })
    const uses = first.content.filter((block) => block.type === 'tool_use')
    const content = uses.map(({ id }, index) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: `result ${index}`,
    }))
    const messages = [
      question,
      { role: 'assistant' as const, content: first.content as Anthropic.ContentBlockParam[] },
      { role: 'user' as const, content },
    ]
    const second = await anthropic()
      .messages.stream({ ...requested, messages })
      .finalMessage()
    expect(second.content).toMatchObject([{ type: 'thinking' }, { type: 'text', text: 'Guten Tag' }])
    expect(second.usage).toMatchObject({ input_tokens: 11, cache_read_input_tokens: 8, output_tokens: 10 })
    expectSignedHistory()
  })

  test('streams reasoning, citations and usage to a chat client', async () => {
    vendor.answer(streamed('stream.sse'), streamed('grounded.sse'))
    const requested = { model: MODEL, stream: true as const, stream_options: { include_usage: true } }
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    let summary = ''
    let thought = ''
    let total: number | undefined
    for await (const chunk of await openai().chat.completions.create({ ...requested, messages })) {
      summary += chunk.choices[0]?.delta.content ?? ''
      thought += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? ''
      total = chunk.usage?.total_tokens ?? total
    }
    expect([summary, thought, total]).toEqual(['Guten Tag', 'Ein Gruß also.', 29])
    const sources: string[] = []
    for await (const chunk of await openai().chat.completions.create({ ...requested, messages })) {
      const delta = chunk.choices[0]?.delta as { annotations?: { url_citation: { title: string } }[] } | undefined
      for (const { url_citation } of delta?.annotations ?? []) sources.push(url_citation.title)
    }
    expect(sources).toEqual(['koeln.de', 'koeln.de', 'dom.de'])
  })

  test('returns a generated image to a chat client, and receives it again with its signature', async () => {
    vendor.answer(whole(fixture('image.json')), whole(fixture('whole.json')))
    const model = 'v/gemini-3-pro-image-preview'
    const ask = async (messages: unknown[]) =>
      (await port.gateway.chat({ model, messages, modalities: ['text', 'image'] })).json()
    const question = { role: 'user', content: 'Draw.' }
    const { message } = (await ask([question])).choices[0]
    expect(message.images[0].image_url.url).toStartWith('data:image/png;base64,')
    await ask([question, message, { role: 'user', content: 'In blue.' }])
    expect(vendor.requests[0]?.json()).toMatchObject({ generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } })
    expect(sentBack()[1]?.parts[1]).toMatchObject({
      inlineData: { mimeType: 'image/png' },
      thoughtSignature: 'c2lnbmF0dXJlIDM=',
    })
  })

  test('returns errors in each client’s format, and never blames the caller for the gateway’s key', async () => {
    const badKey = { error: { code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT' } }
    vendor.answer(whole(badKey, { status: 400 }), whole({ promptFeedback: { blockReason: 'SAFETY' } }))
    const requested = { model: MODEL, messages: [{ role: 'user' as const, content: 'Hello' }] }
    const key = await openai()
      .chat.completions.create(requested)
      .catch((failure) => failure)
    expect([key.status, key.code]).toEqual([502, 'upstream_auth'])
    const blocked = await anthropic()
      .messages.create({ ...requested, max_tokens: 9 })
      .catch((failure) => failure)
    expect([blocked.status, blocked.error.error.details.error_code]).toEqual([400, 'content_policy_violation'])
  })

  test('counts tokens for a Messages client', async () => {
    vendor.answer(whole({ totalTokens: 31 }))
    const counted = await anthropic().messages.countTokens({
      model: MODEL,
      system: 'Be short.',
      messages: [{ role: 'user', content: 'Hello' }],
    })
    expect(counted.input_tokens).toBe(31)
    expect(vendor.requests[0]?.json()).toMatchObject({
      generateContentRequest: {
        model: 'models/gemini-3-flash-preview',
        systemInstruction: { parts: [{ text: 'Be short.' }] },
      },
    })
  })
})
