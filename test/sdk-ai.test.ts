/** The `ai` package with `@ai-sdk/openai-compatible`, as a client of the gateway. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import {
  APICallError,
  generateObject,
  generateText,
  jsonSchema,
  Output,
  stepCountIs,
  streamObject,
  streamText,
  tool,
} from 'ai'
import { GENERAL, type Served, serve, VISION, watchedFetch, watchUnhandled } from './kit/served.ts'
import { chunk, chunks, completion, failure, hang, stream, usageChunk, whole } from './kit/vendor.ts'

let served: Served
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  unhandled = watchUnhandled()
  served = await serve()
})
beforeEach(() => {
  served.requests.length = 0
})
afterAll(async () => {
  await served.close()
  expect(unhandled.stop()).toEqual([])
})

type Options = Partial<Parameters<typeof createOpenAICompatible>[0]>
const modelOf = (id: string, options: Options = {}) =>
  createOpenAICompatible({
    name: 'gatehouse',
    baseURL: served.url,
    apiKey: served.token,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...options,
  }).chatModel(id)
const callOf = (id: string, prompt: string, options: Options = {}) => ({
  model: modelOf(id, options),
  prompt,
  maxRetries: 0,
  onError: () => {}, // it would print what the tests look at
})

const CITY = jsonSchema<{ city: string }>({
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
})
const weather = (cities: string[]) => ({
  get_weather: tool({
    description: 'The weather in a city',
    inputSchema: CITY,
    execute: async ({ city }) => {
      cities.push(city)
      return 'Sunny, 21 degrees'
    },
  }),
})
type Person = { name: string; age: number }
const PERSON = jsonSchema<Person>({
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0, maximum: 130 } },
  required: ['name', 'age'],
  additionalProperties: false,
})
const isPerson = ({ name, age, ...more }: Person) =>
  typeof name === 'string' && Number.isInteger(age) && Object.keys(more).length === 0

/** The smallest image: one transparent pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = []
  for await (const item of items) out.push(item)
  return out
}
async function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('nothing was refused')
}

for (const id of GENERAL) {
  describe(`ai: ${id}`, () => {
    test('generateText has text, finish reason and usage: a response without message would be "Invalid JSON response"', async () => {
      const { text, finishReason, usage, response, warnings } = await generateText(callOf(id, 'Hello there'))
      expect(text).toContain('simulated')
      expect(finishReason).toBe('stop')
      expect(warnings ?? []).toEqual([])
      const { inputTokens = 0, outputTokens = 0, totalTokens } = usage
      expect([inputTokens > 0, outputTokens > 0, totalTokens]).toEqual([true, true, inputTokens + outputTokens])
      expect(response.modelId).toBe(id)
      expect(response.headers?.['x-request-id']).toMatch(/^req_/)
    })

    test('streamText has the same, and usage with includeUsage', async () => {
      const whole = await generateText(callOf(id, 'Hello there'))
      const streaming = streamText(callOf(id, 'Hello there'))
      const pieces = await all(streaming.textStream)
      expect(pieces.join('')).toBe(whole.text)
      expect(pieces.length).toBeGreaterThan(3)
      expect(await streaming.finishReason).toBe('stop')
      expect(await streaming.usage).toMatchObject({
        inputTokens: whole.usage.inputTokens,
        outputTokens: whole.usage.outputTokens,
      })
    })

    test('streamText without includeUsage has no usage, and ends normally', async () => {
      const { fetch, seen } = watchedFetch()
      const streaming = streamText(callOf(id, 'Hello there', { includeUsage: false, fetch }))
      await streaming.consumeStream()
      expect(await streaming.finishReason).toBe('stop')
      expect((await streaming.usage).outputTokens).toBeUndefined()
      expect(seen()).not.toContain('"usage"')
    })

    test('max tokens end with finish reason length', async () => {
      const { finishReason, usage } = await generateText({ ...callOf(id, 'Hello there'), maxOutputTokens: 3 })
      expect([finishReason, usage.outputTokens]).toEqual(['length', 3])
    })

    test('a tool loop calls the tool and ends with an answer from its result', async () => {
      const cities: string[] = []
      const options = {
        ...callOf(id, 'What is the weather in Paris?'),
        tools: weather(cities),
        stopWhen: stepCountIs(3),
      }
      const { text, steps } = await generateText(options)
      expect(steps.map((step) => step.finishReason)).toEqual(['tool-calls', 'stop'])
      expect(text).toContain('Sunny, 21 degrees')
      const streaming = streamText(options)
      expect(await streaming.text).toContain('Sunny, 21 degrees')
      expect(cities).toEqual(['Paris', 'Paris'])
    })

    test('a streamed tool call has a start, deltas and one end', async () => {
      const streaming = streamText({
        ...callOf(id, 'What is the weather in Paris?'),
        tools: { get_weather: tool({ inputSchema: CITY }) },
      })
      const parts = await all(streaming.fullStream)
      const kinds = parts.map((part) => part.type).filter((kind) => kind.startsWith('tool'))
      expect(kinds[0]).toBe('tool-input-start')
      expect(kinds.filter((kind) => kind !== 'tool-input-delta')).toEqual([
        'tool-input-start',
        'tool-input-end',
        'tool-call',
      ])
      const [call] = await streaming.toolCalls
      expect(call).toMatchObject({ toolName: 'get_weather', input: { city: 'Paris' } })
      expect(await streaming.finishReason).toBe('tool-calls')
    })

    test('toolChoice applies', async () => {
      const tools = weather([])
      const required = await generateText({ ...callOf(id, 'Hello'), tools, toolChoice: 'required' })
      expect(required.toolCalls).toHaveLength(1)
      const none = await generateText({ ...callOf(id, 'What is the weather in Paris?'), tools, toolChoice: 'none' })
      expect(none.toolCalls).toEqual([])
    })

    test('structured output fits its schema: generateObject, streamObject and Output.object', async () => {
      const { object } = await generateObject({ ...callOf(id, 'Describe Ann'), schema: PERSON })
      expect(isPerson(object)).toBe(true)
      const streaming = streamObject({ ...callOf(id, 'Describe Ann'), schema: PERSON })
      await all(streaming.partialObjectStream)
      expect(await streaming.object).toEqual(object)
      const { output } = await generateText({
        ...callOf(id, 'Describe Ann'),
        output: Output.object({ schema: PERSON }),
      })
      expect(output).toEqual(object)
    })

    test('JSON mode, for models without schemas, returns an object', async () => {
      const { object } = await generateObject({
        ...callOf(id, 'Describe Ann', { supportsStructuredOutputs: false }),
        output: 'no-schema',
      })
      expect(object).toBeObject()
    })

    test('an image is accepted', async () => {
      const { model } = callOf(id, '')
      const content = [
        { type: 'text' as const, text: 'What is this?' },
        { type: 'file' as const, data: PIXEL, mediaType: 'image/png' },
      ]
      const { text } = await generateText({ model, messages: [{ role: 'user', content }], maxRetries: 0 })
      expect(text).toContain('1 x 1')
    })
  })
}

for (const id of VISION) {
  test(`ai: ${id} has reasoning parts before its text`, async () => {
    const options = {
      ...callOf(id, 'Why is the sky blue?'),
      providerOptions: { gatehouse: { thinking_enabled: true } },
    }
    const { reasoningText = '', text, usage } = await generateText(options)
    expect(reasoningText.length).toBeGreaterThan(0)
    expect(usage.outputTokenDetails?.reasoningTokens).toBeGreaterThan(0)
    const parts = await all(streamText(options).fullStream)
    const said = (type: 'reasoning-delta' | 'text-delta') =>
      parts.map((part) => (part.type === type ? part.text : '')).join('')
    expect(said('reasoning-delta')).toBe(reasoningText)
    expect(said('text-delta')).toBe(text)
    const kinds = parts.map((part) => part.type)
    expect(kinds.lastIndexOf('reasoning-end')).toBeLessThan(kinds.indexOf('text-delta'))
    expect(kinds.filter((kind) => kind === 'reasoning-start')).toHaveLength(1)
  })
}

describe('ai: aborting', () => {
  test('in the middle of a stream gives an abort part, and aborts the upstream request', async () => {
    served.vendor.answer(stream(chunks('a', 'b'), { hangAfter: 2 }))
    const coming = served.vendor.request(served.vendor.requests.length + 1)
    const leaving = new AbortController()
    const streaming = streamText({ ...callOf('v/m', 'Hello'), abortSignal: leaving.signal })
    const kinds: string[] = []
    for await (const part of streaming.fullStream) {
      kinds.push(part.type)
      if (part.type === 'text-delta') leaving.abort()
    }
    expect(kinds.at(-1)).toBe('abort')
    await (await coming).aborted
  })

  test('before the first byte aborts the upstream request', async () => {
    served.vendor.answer(hang())
    const coming = served.vendor.request(served.vendor.requests.length + 1)
    const leaving = new AbortController()
    const error = rejection(generateText({ ...callOf('v/m', 'Hello'), abortSignal: leaving.signal }))
    const request = await coming
    leaving.abort()
    expect(await error).toMatchObject({ name: 'AbortError' })
    await request.aborted
  })
})

describe('ai: errors', () => {
  const cases: [number, string, () => Promise<unknown>, RegExp][] = [
    [
      400,
      'invalid_value',
      () => generateText({ ...callOf('sandbox/general', 'Hello'), temperature: 3 }),
      /from 0 to 2/,
    ],
    [401, 'invalid_api_key', () => generateText(callOf('sandbox/general', 'Hello', { apiKey: 'sk-wrong' })), /API key/],
    [404, 'model_not_found', () => generateText(callOf('sandbox/none', 'Hello')), /no model "sandbox\/none"/],
    [410, 'model_retired', () => generateText(callOf('sandbox/retired', 'Hello')), /is retired/],
    [429, 'rate_limit_exceeded', () => generateText(callOf('sandbox/general', '@sandbox status=429')), /limiting/],
    [502, 'bad_upstream_response', () => generateText(callOf('far/general', '@sandbox status=500')), /failed \(502\)/],
    [503, 'server_is_overloaded', () => generateText(callOf('sandbox/general', '@sandbox status=503')), /overloaded/],
    [504, 'upstream_timeout', () => generateText(callOf('sandbox/general', '@sandbox status=504')), /timed out/],
  ]
  for (const [status, code, ask, says] of cases) {
    test(`${status} is an APICallError with the status, the message and the body`, async () => {
      const error = await rejection(ask())
      if (!APICallError.isInstance(error)) throw error
      expect(error.statusCode).toBe(status)
      expect(error.message).toMatch(says) // only a nested `error.message` is shown
      expect(JSON.parse(error.responseBody ?? '').error.code).toBe(code)
      expect(error.isRetryable).toBe(status === 429 || status >= 500)
      expect(error.responseHeaders?.['x-request-id']).toMatch(/^req_/)
    })
  }

  test('403 for a model that the token may not use', async () => {
    const apiKey = await served.tokenFor(['sandbox/compact'])
    const error = await rejection(generateText(callOf('sandbox/general', 'Hello', { apiKey })))
    expect(error).toMatchObject({ statusCode: 403, isRetryable: false })
  })

  test('a refused stream has an error part with the same error', async () => {
    const parts = await all(streamText(callOf('sandbox/general', '@sandbox status=429')).fullStream)
    const [error] = parts.flatMap((part) => (part.type === 'error' ? [part.error] : []))
    expect(error).toMatchObject({ statusCode: 429 })
  })

  test('are retried after retry-after, and the retry succeeds when the vendor recovers', async () => {
    served.vendor.answer(failure(429, {}, { 'retry-after': '0' }), whole(completion('At last')))
    const { text } = await generateText({ ...callOf('v/m', 'Hello'), maxRetries: 1 })
    expect(text).toBe('At last')
    expect(served.requests).toHaveLength(2)
  })

  const faults = { error_after: 'sent an error within its answer', cut_after: 'broke off its answer' }
  for (const [key, says] of Object.entries(faults)) {
    test(`a stream that breaks (${key}) has an error part after its text, and no finish part`, async () => {
      const streaming = streamText(callOf('sandbox/general', `Hello\n@sandbox ${key}=4`))
      const parts = await all(streaming.fullStream)
      const errors = parts.flatMap((part) => (part.type === 'error' ? [part.error] : []))
      expect(errors).toHaveLength(1)
      expect(errors[0] instanceof Error ? errors[0].message : JSON.stringify(errors[0])).toContain(says)
      expect(parts.some((part) => part.type === 'text-delta')).toBe(true)
      expect(parts.flatMap((part) => (part.type === 'finish' ? [part.finishReason] : []))).not.toContain('stop')
    })
  }
})

describe('ai: vendor behaviour that would break it', () => {
  const through = async (items: Parameters<typeof stream>[0], options: Parameters<typeof stream>[1] = {}) => {
    served.vendor.answer(stream(items, options))
    const streaming = streamText({ ...callOf('v/m', 'Hello'), tools: { get_weather: tool({ inputSchema: CITY }) } })
    const parts = await all(streaming.fullStream)
    expect(parts.filter((part) => part.type === 'error')).toEqual([])
    return streaming
  }

  test('a stream without finish_reason ends normally', async () => {
    const streaming = await through([chunk({ role: 'assistant', content: 'Hi' })])
    expect([await streaming.text, await streaming.finishReason]).toEqual(['Hi', 'stop'])
  })

  test('a role in a delta that is not the assistant’s does not break its schema', async () => {
    const streaming = await through([chunk({ role: 'model', content: 'Hi' }), chunk({ role: null }, 'stop')])
    expect(await streaming.text).toBe('Hi')
  })

  test('comments joined to data, in data, and empty data are left out', async () => {
    const streaming = await through([
      ': ping\n',
      chunk({ role: 'assistant', content: 'H' }),
      'data:\n\n',
      ': OPENROUTER PROCESSING\n\n',
      chunk({ content: 'i' }, 'stop'),
      usageChunk(),
    ])
    expect(await streaming.text).toBe('Hi')
    expect((await streaming.usage).outputTokens).toBe(3)
  })

  test('a tool call with an empty or repeated identity is one call', async () => {
    const call = (fields: object) => chunk({ tool_calls: [{ index: 0, ...fields }] })
    const streaming = await through([
      call({ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } }),
      call({ id: '', type: null, function: { name: '', arguments: '{"city":' } }),
      call({ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '"Rome"}' } }),
      chunk({}, 'tool_calls'),
    ])
    const [first, ...more] = await streaming.toolCalls
    expect(more).toEqual([])
    expect(first).toMatchObject({ toolCallId: 'call_1', toolName: 'get_weather', input: { city: 'Rome' } })
  })

  test('reasoning under its other name is read, once', async () => {
    const streaming = await through([
      chunk({ role: 'assistant', reasoning: 'Hm.' }),
      chunk({ content: 'Hi' }),
      chunk({}, 'stop'),
    ])
    expect([await streaming.reasoningText, await streaming.text]).toEqual(['Hm.', 'Hi'])
  })
})

test('ai: no rejection is left unhandled', async () => {
  Bun.gc(true)
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled.seen).toEqual([])
})
