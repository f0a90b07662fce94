/** The `@google/genai` package, this major and the one before it, and the `ai` package's provider of that API. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createGoogle } from '@ai-sdk/google'
import { type ApiError, FunctionCallingConfigMode, GoogleGenAI, Type } from '@google/genai'
import { generateText, jsonSchema, type ModelMessage, Output, stepCountIs, streamText, tool } from 'ai'
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2'
import { openPort, type Port, watchUnhandled } from './kit/served.ts'
import {
  chunk,
  chunks,
  completion,
  failure,
  startVendor,
  stream,
  usageChunk,
  type Vendor,
  whole,
} from './kit/vendor.ts'

// One test for both: the methods used here have the same types in both majors, which TypeScript cannot know.
const MAJORS = { 'sdk 3': GoogleGenAI, 'sdk 2': GoogleGenAI2 as unknown as typeof GoogleGenAI }

let port: Port
let chats: Vendor
let claude: Vendor
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  unhandled = watchUnhandled()
  chats = startVendor()
  claude = startVendor()
  port = await openPort({
    providers: {
      v: { base_url: chats.url },
      c: { kind: 'messages-compat', base_url: claude.url },
    },
    models: {
      'v/m': { fields: ['thinking_enabled'] },
      'gemini-2.5-flash': { targets: [{ provider: 'v', model: 'm' }] },
      'c/m': { targets: [{ provider: 'c', model: 'claude-sonnet-4-6' }] },
    },
  })
})
afterEach(() => {
  chats.requests.length = 0
  claude.requests.length = 0
})
afterAll(async () => {
  await port.close()
  await chats.stop()
  await claude.stop()
  expect(unhandled.stop()).toEqual([])
})

const origin = () => port.url.replace(/\/v1$/, '')

/** The error that a promise of the package rejects with. */
async function errorOf(answer: PromiseLike<unknown>): Promise<Partial<ApiError>> {
  try {
    await answer
  } catch (error) {
    return error as Partial<ApiError>
  }
  throw new Error('It was answered.')
}

async function allOf<T>(pieces: Promise<AsyncGenerator<T>>): Promise<T[]> {
  const all: T[] = []
  for await (const piece of await pieces) all.push(piece)
  return all
}

const PARAMETERS = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] }
const WEATHER = { name: 'get_weather', description: 'The weather in a city', parameters: PARAMETERS }

const callChunk = (index: number, text: string, more: object = {}) =>
  chunk({ tool_calls: [{ index, ...more, function: { arguments: text } }] })
const callStart = (index: number, city: string) =>
  chunk({
    tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'get_weather', arguments: city } }],
  })

/** Blocks of a vendor that signs its thoughts, as a stream. */
const thoughtful = (...blocks: object[]) =>
  stream(
    [
      event('message_start', {
        message: {
          id: 'msg_1',
          role: 'assistant',
          content: [],
          model: 'claude',
          usage: { input_tokens: 20, output_tokens: 1 },
        },
      }),
      ...blocks.flatMap((block, index) => blockEvents(block as Record<string, string>, index)),
      event('message_delta', {
        delta: { stop_reason: blocks.some((block) => 'input' in block) ? 'tool_use' : 'end_turn', stop_sequence: null },
        usage: { output_tokens: 9 },
      }),
      event('message_stop', {}),
    ],
    { done: false },
  )
const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

function blockEvents({ type, thinking, signature, text, input, ...rest }: Record<string, string>, index: number) {
  const empty =
    type === 'thinking' ? { thinking: '', signature: '' } : type === 'text' ? { text: '' } : { ...rest, input: {} }
  const delta = (one: object) => event('content_block_delta', { index, delta: one })
  return [
    event('content_block_start', { index, content_block: { type, ...empty } }),
    ...(thinking ? [delta({ type: 'thinking_delta', thinking }), delta({ type: 'signature_delta', signature })] : []),
    ...(text ? [delta({ type: 'text_delta', text })] : []),
    ...(input ? [delta({ type: 'input_json_delta', partial_json: input })] : []),
    event('content_block_stop', { index }),
  ]
}
const THOUGHT = { type: 'thinking', thinking: 'Where is it?', signature: 'U0lHTkVE' }
const USE = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: '{"city":"Oslo"}' }

describe.each(Object.entries(MAJORS))('%s', (_, Client) => {
  const client = (apiKey = port.token, more: object = {}) =>
    new Client({ apiKey, httpOptions: { baseUrl: origin() }, ...more })

  test('the sandbox responds, whole and streamed, with the same metadata', async () => {
    const request = { model: 'sandbox/general', contents: 'What is Gatehouse?' }
    const answer = await client().models.generateContent(request)
    expect(answer.text).toContain('Gatehouse')
    expect([answer.modelVersion, answer.candidates?.[0]?.finishReason]).toEqual(['sandbox/general', 'STOP' as never])
    const { promptTokenCount = 0, candidatesTokenCount = 0, totalTokenCount } = answer.usageMetadata ?? {}
    expect(promptTokenCount).toBeGreaterThan(0)
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount)
    const pieces = await allOf(client().models.generateContentStream(request))
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.map(({ text = '' }) => text).join('')).toContain('Gatehouse')
    expect(new Set(pieces.map(({ responseId }) => responseId)).size).toBe(1)
    expect(pieces.flatMap(({ candidates }) => candidates?.[0]?.finishReason ?? [])).toEqual(['STOP' as never])
    expect(pieces.at(-1)?.usageMetadata?.totalTokenCount).toBeGreaterThan(0)
  })

  test.each(['v1', 'v1beta', 'v1alpha'])('the path version %s is supported', async (apiVersion) => {
    const ai = client(port.token, { apiVersion })
    expect((await ai.models.generateContent({ model: 'general', contents: 'Hi' })).text).not.toBeEmpty()
    expect(
      (await ai.models.countTokens({ model: 'models/sandbox/general', contents: 'Hi there' })).totalTokens,
    ).toBeGreaterThan(1)
  })

  test('a client of Vertex AI names the provider as the publisher', async () => {
    const ai = client(port.token, { vertexai: true })
    for (const model of ['sandbox/general', 'general', 'publishers/sandbox/models/general']) {
      const answer = await ai.models.generateContent({ model, contents: 'What is Gatehouse?' })
      expect([answer.text, answer.modelVersion]).toEqual([expect.stringContaining('Gatehouse'), 'sandbox/general'])
      const pieces = await allOf(ai.models.generateContentStream({ model, contents: 'What is Gatehouse?' }))
      expect(pieces.map(({ text = '' }) => text).join('')).toContain('Gatehouse')
      expect((await ai.models.countTokens({ model, contents: 'Hi there' })).totalTokens).toBeGreaterThan(1)
    }
    const error = await errorOf(ai.models.generateContent({ model: 'sandbox/nothing', contents: 'Hi' }))
    expect([error.status, error.message]).toEqual([404, expect.stringContaining('sandbox/nothing')])
  })

  test('a chat keeps its history, whole and streamed', async () => {
    for (const send of ['sendMessage', 'sendMessageStream'] as const) {
      const chat = client().chats.create({ model: 'v/m', config: { systemInstruction: 'Be brief.' } })
      const say = async (message: string) => {
        if (send === 'sendMessage') return (await chat.sendMessage({ message })).text
        return (await allOf(chat.sendMessageStream({ message }))).map(({ text = '' }) => text).join('')
      }
      const isWhole = send === 'sendMessage'
      chats.answer(isWhole ? whole(completion('Good day.')) : stream(chunks('Good', ' day.')))
      chats.answer(isWhole ? whole(completion('Fine.')) : stream(chunks('Fi', 'ne.')))
      expect(await say('Hello')).toBe('Good day.')
      expect(await say('How are you?')).toBe('Fine.')
      expect(chats.requests.at(-1)?.json().messages).toEqual([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Good day.' },
        { role: 'user', content: 'How are you?' },
      ])
    }
  })

  test('parallel function calls are returned whole, and their results are sent back', async () => {
    chats.answer(
      stream([
        callStart(0, '{"ci'),
        callStart(1, ''),
        callChunk(0, 'ty":"Oslo"}'),
        callChunk(1, '{"city":"Rome"}'),
        chunk({}, 'tool_calls'),
        usageChunk(),
      ]),
      stream(chunks('Cold', ' and warm.')),
    )
    const config = {
      tools: [{ functionDeclarations: [WEATHER] }],
      toolConfig: {
        functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['get_weather'] },
      },
    }
    const chat = client().chats.create({ model: 'v/m', config })
    const pieces = await allOf(chat.sendMessageStream({ message: 'Where is it warmer?' }))
    const calls = pieces.flatMap(({ functionCalls = [] }) => functionCalls)
    expect(calls).toEqual([
      { id: 'call_0', name: 'get_weather', args: { city: 'Oslo' } },
      { id: 'call_1', name: 'get_weather', args: { city: 'Rome' } },
    ])
    expect(chats.requests[0]?.json()).toMatchObject({
      tools: [
        {
          function: {
            name: 'get_weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
    })
    const message = calls.map(({ id, name }, index) => ({
      functionResponse: {
        id: id ?? '',
        name: name ?? '',
        response: index === 0 ? { output: '2 C' } : { error: 'No idea' },
      },
    }))
    const answer = await allOf(chat.sendMessageStream({ message }))
    expect(answer.map(({ text = '' }) => text).join('')).toBe('Cold and warm.')
    expect(chats.requests[1]?.json().messages).toMatchObject([
      { role: 'user', content: 'Where is it warmer?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_0', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
          { id: 'call_1', function: { name: 'get_weather', arguments: '{"city":"Rome"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_0', content: '2 C' },
      { role: 'tool', tool_call_id: 'call_1', content: 'No idea' },
    ])
  })

  test('the package calls functions automatically', async () => {
    const use = { id: 'call_0', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }
    chats.answer(
      whole({
        ...completion(''),
        choices: [
          { index: 0, message: { role: 'assistant', content: null, tool_calls: [use] }, finish_reason: 'tool_calls' },
        ],
      }),
      whole(completion('It is cold.')),
    )
    const callable = {
      tool: async () => ({ functionDeclarations: [WEATHER] }),
      callTool: async (called: { id?: string; name?: string }[]) =>
        called.map(({ id = '', name = '' }) => ({ functionResponse: { id, name, response: { celsius: -2 } } })),
    }
    const answer = await client().models.generateContent({
      model: 'v/m',
      contents: 'How is the weather in Oslo?',
      config: { tools: [callable] },
    })
    expect(answer.text).toBe('It is cold.')
    expect(chats.requests[1]?.json().messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [use] },
      { role: 'tool', tool_call_id: 'call_0', content: '{"celsius":-2}' },
    ])
  })

  test('structured output by a schema of the package', async () => {
    chats.answer(whole(completion('{"name":"Ada","age":36}')))
    const answer = await client().models.generateContent({
      model: 'v/m',
      contents: 'Who?',
      config: {
        responseMimeType: 'application/json',
        responseSchema: {
          type: Type.OBJECT,
          properties: { age: { type: Type.INTEGER, nullable: true }, name: { type: Type.STRING, minLength: '1' } },
          propertyOrdering: ['name', 'age'],
          required: ['name'],
        },
      },
    })
    expect(JSON.parse(answer.text ?? '')).toEqual({ name: 'Ada', age: 36 })
    const { response_format } = chats.requests[0]?.json() ?? {}
    expect(JSON.stringify(response_format)).toBe(
      JSON.stringify({
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          schema: {
            type: 'object',
            properties: { name: { type: 'string', minLength: 1 }, age: { type: ['integer', 'null'] } },
            required: ['name'],
          },
        },
      }),
    )
  })

  test.each([true, false])('signed thoughts are sent back to the vendor, shown or not: %p', async (includeThoughts) => {
    claude.answer(
      thoughtful(THOUGHT, { type: 'text', text: 'Let me look.' }, USE),
      thoughtful({ type: 'text', text: 'Cold.' }),
    )
    const config = {
      tools: [{ functionDeclarations: [WEATHER] }],
      thinkingConfig: { includeThoughts, thinkingBudget: 1024 },
      maxOutputTokens: 4000,
    }
    const chat = client().chats.create({ model: 'c/m', config })
    const pieces = await allOf(chat.sendMessageStream({ message: 'How is the weather in Oslo?' }))
    const parts = pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    const thoughts = parts.filter(({ thought }) => thought).map(({ text = '' }) => text)
    expect(thoughts.join('')).toBe(includeThoughts ? 'Where is it?' : '')
    const words = parts.filter(({ thought }) => !thought).map(({ text = '' }) => text)
    expect(words.join('')).toBe('Let me look.')
    const functionResponse = { id: 'toolu_1', name: 'get_weather', response: { output: '2 C' } }
    await allOf(chat.sendMessageStream({ message: [{ functionResponse }] }))
    expect(claude.requests[1]?.json().messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Where is it?', signature: 'U0lHTkVE' },
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 'toolu_1', input: { city: 'Oslo' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '2 C' }] },
    ])
  })

  test("errors are the package's own, with their status", async () => {
    const unknown = await errorOf(client().models.generateContent({ model: 'nope', contents: 'x' }))
    expect([unknown.name, unknown.status]).toEqual(['ApiError', 404])
    expect(JSON.parse(unknown.message ?? '')).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } })
    const unauthorized = await errorOf(client('nobody').models.generateContent({ model: 'general', contents: 'x' }))
    expect([unauthorized.status, JSON.parse(unauthorized.message ?? '').error.status]).toEqual([401, 'UNAUTHENTICATED'])
    chats.answer(failure(429, {}, { 'retry-after': '7' }))
    const limited = await errorOf(client().models.generateContentStream({ model: 'v/m', contents: 'x' }))
    expect(limited.status).toBe(429)
    expect(JSON.parse(limited.message ?? '').error.details).toContainEqual({
      '@type': 'type.googleapis.com/google.rpc.RetryInfo',
      retryDelay: '7s',
    })
  })

  test('a stream that breaks is an error of the package, and never ends normally', async () => {
    chats.answer(stream(chunks('Hel', 'lo'), { cutAfter: 2 }))
    const broken = await errorOf(allOf(client().models.generateContentStream({ model: 'v/m', contents: 'x' })))
    expect([broken.name, broken.status]).toEqual(['ApiError', 502])
  })

  test('a refused prompt is prompt feedback, not an error', async () => {
    const refusal = failure(400, { code: 'content_policy_violation', message: 'Not that.' })
    chats.answer(refusal, refusal)
    const request = { model: 'v/m', contents: 'x' }
    const answer = await client().models.generateContent(request)
    expect(answer.promptFeedback?.blockReason).toBe('SAFETY' as never)
    const [piece, ...rest] = await allOf(client().models.generateContentStream(request))
    expect([piece?.promptFeedback?.blockReason, rest.length]).toEqual(['SAFETY' as never, 0])
  })
})

describe('the provider of the ai package', () => {
  const google = (more: object = {}) => createGoogle({ apiKey: port.token, baseURL: `${origin()}/v1beta`, ...more })
  const weather = tool({
    description: 'The weather in a city',
    inputSchema: jsonSchema<{ city: string }>({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    }),
    execute: async ({ city }) => `2 C in ${city}`,
  })

  test.each(['v1beta', 'v1', 'v1alpha'])('responds, whole and streamed, under %s', async (version) => {
    const model = google({ baseURL: `${origin()}/${version}` })('sandbox/general')
    const answer = await generateText({ model, prompt: 'What is Gatehouse?', maxRetries: 0 })
    expect([answer.text.includes('Gatehouse'), answer.finishReason]).toEqual([true, 'stop'])
    const { inputTokens, outputTokens, totalTokens } = answer.usage
    expect(totalTokens).toBe((inputTokens ?? 0) + (outputTokens ?? 0))
    const running = streamText({ model, prompt: 'What is Gatehouse?', maxRetries: 0 })
    expect(await running.text).toContain('Gatehouse')
    expect([await running.finishReason, (await running.usage).inputTokens]).toEqual(['stop', inputTokens])
  })

  test.each(['whole', 'stream'])(
    'runs tools in steps, with thoughts and signatures, against a vendor that signs: %s',
    async (form) => {
      const isWhole = form === 'whole'
      const { input, ...use } = USE
      const message = (content: object[], stop_reason: string) =>
        whole({
          id: 'm',
          type: 'message',
          role: 'assistant',
          content,
          stop_reason,
          usage: { input_tokens: 9, output_tokens: 9 },
        })
      if (isWhole)
        claude.answer(
          message([THOUGHT, { ...use, input: JSON.parse(input) }], 'tool_use'),
          message([{ type: 'text', text: 'Cold.' }], 'end_turn'),
        )
      else claude.answer(thoughtful(THOUGHT, USE), thoughtful({ type: 'text', text: 'Cold.' }))
      const request = {
        model: google()('c/m'),
        prompt: 'How is the weather in Oslo?',
        tools: { get_weather: weather },
        stopWhen: stepCountIs(2),
        maxOutputTokens: 4000,
        maxRetries: 0,
        providerOptions: { google: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } },
      }
      const running = isWhole ? await generateText(request) : streamText(request)
      expect(await running.text).toBe('Cold.')
      const [first] = await running.steps
      expect([first?.reasoningText, first?.finishReason]).toEqual(['Where is it?', 'tool-calls'])
      expect(claude.requests[1]?.json().messages).toMatchObject([
        { role: 'user' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Where is it?', signature: 'U0lHTkVE' },
            { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Oslo' } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '2 C in Oslo' }] },
      ])
    },
  )

  test('generates an object by a schema', async () => {
    chats.answer(whole(completion('{"name":"Ada"}')))
    const schema = jsonSchema<{ name: string }>({
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    })
    const request = { model: google()('v/m'), prompt: 'Who?', maxRetries: 0 }
    const { output } = await generateText({ ...request, output: Output.object({ schema }) })
    expect(output).toEqual({ name: 'Ada' })
    expect(chats.requests[0]?.json().response_format).toMatchObject({
      type: 'json_schema',
      json_schema: { name: 'answer' },
    })
  })

  test('sends images, audio and text', async () => {
    chats.answer(whole(completion('A dot.')))
    const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const content: Extract<ModelMessage, { role: 'user' }>['content'] = [
      { type: 'text', text: 'What is this?' },
      { type: 'file', mediaType: 'image/png', data },
      { type: 'file', mediaType: 'audio/mpeg', data: 'AAAA' },
      { type: 'file', mediaType: 'text/plain', data: Buffer.from('Größe').toString('base64') },
    ]
    await generateText({ model: google()('v/m'), messages: [{ role: 'user', content }], maxRetries: 0 })
    expect(chats.requests[0]?.json().messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
          { type: 'text', text: 'Größe' },
        ],
      },
    ])
  })

  test('returns the sources of an answer', async () => {
    const url_citation = { url: 'https://a.example/x', title: 'A', start_index: 0, end_index: 5 }
    const message = {
      role: 'assistant',
      content: 'Größe zählt.',
      annotations: [{ type: 'url_citation', url_citation }],
    }
    chats.answer(whole({ ...completion(''), choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    const own = google()
    const { sources } = await generateText({
      model: own('gemini-2.5-flash'),
      prompt: 'x',
      tools: { google_search: own.tools.googleSearch({}) },
      maxRetries: 0,
    })
    expect(sources).toMatchObject([{ sourceType: 'url', url: 'https://a.example/x', title: 'A' }])
    expect(chats.requests[0]?.json()).toMatchObject({ web_search_options: {} })
  })

  test('reads errors before and in the middle of a stream', async () => {
    const refused = await generateText({ model: google()('nope'), prompt: 'x', maxRetries: 0 }).catch((error) => error)
    expect([refused.statusCode, refused.message]).toEqual([404, expect.stringContaining('no model "nope"')])
    chats.answer(stream(chunks('Hel', 'lo'), { cutAfter: 2 }))
    const errors: unknown[] = []
    const running = streamText({
      model: google()('v/m'),
      prompt: 'x',
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    })
    for await (const _ of running.textStream);
    expect(errors).toHaveLength(1)
  })
})
