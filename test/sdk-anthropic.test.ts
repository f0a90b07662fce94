/** The `@anthropic-ai/sdk` package, this major and the one before it, and the `ai` package's provider of that API. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import Anthropic0 from 'anthropic-sdk-0'
import { GENERAL, type Served, serve, watchedFetch, watchUnhandled } from './kit/served.ts'
import { chunk, chunks, completion, failure, stream, usageChunk, whole } from './kit/vendor.ts'

// One test for both: the methods used here have the same types in both majors, which TypeScript cannot know.
const MAJORS = { 'sdk 1': Anthropic, 'sdk 0': Anthropic0 as unknown as typeof Anthropic }

let served: Served
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
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

const WEATHER = {
  name: 'get_weather',
  description: 'The weather in a city',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}
const requestOf = (model: string, content: string) => ({
  model,
  max_tokens: 200,
  messages: [{ role: 'user' as const, content }],
})

/** The error that a promise of the package rejects with; it is not a plain promise. */
async function errorOf(answer: PromiseLike<unknown>): Promise<unknown> {
  try {
    await answer
  } catch (error) {
    return error
  }
  throw new Error('the promise was fulfilled')
}

/** Since this major its helpers start a thread at the server; a vendor without threads must not be asked for one twice. */
describe('a tool runner that starts a thread', () => {
  const call = (id: string, city: string) => {
    const function_ = { name: 'get_weather', arguments: JSON.stringify({ city }) }
    return stream([
      chunk({ role: 'assistant', tool_calls: [{ index: 0, id, type: 'function', function: function_ }] }),
      chunk({}, 'tool_calls'),
      usageChunk(),
    ])
  }

  test('continues without it through three turns', async () => {
    served.vendor.requests.length = 0
    served.vendor.answer(call('call_1', 'Paris'), call('call_2', 'Rome'), stream(chunks('Both ', 'sunny.')))
    const client = new Anthropic({ apiKey: served.token, baseURL: served.url.replace(/\/v1$/, ''), maxRetries: 0 })
    const run = async ({ city }: { city: string }) => `sunny in ${city}`
    const weather = { ...WEATHER, run, parse: (input: unknown) => input as { city: string } }
    const runner = client.beta.messages.toolRunner({
      ...requestOf('v/m', 'Paris, Rome?'),
      tools: [weather],
      stream: true,
    })
    const reasons: (string | null)[] = []
    for await (const message of runner) reasons.push((await message.finalMessage()).stop_reason)
    expect(reasons).toEqual(['tool_use', 'tool_use', 'end_turn'])
    expect(served.vendor.requests.map((request) => (request.json().messages as unknown[]).length)).toEqual([1, 3, 5])
    // The first was refused, with the code after which the client continues.
    expect(served.requests.length).toBe(4)
  })
})

describe.each(Object.entries(MAJORS))('%s', (_, Client) => {
  const client = (apiKey = served.token, maxRetries = 0) =>
    new Client({ apiKey, baseURL: served.url.replace(/\/v1$/, ''), maxRetries })

  test.each(GENERAL)('%s returns a whole message', async (model) => {
    const message = await client().messages.create(requestOf(model, 'What is Gatehouse?'))
    expect([message.type, message.role, message.model, message.stop_reason]).toEqual([
      'message',
      'assistant',
      model,
      'end_turn',
    ])
    expect(message.id).toStartWith('msg_')
    expect(message.content[0]).toMatchObject({ type: 'text', text: expect.stringContaining('Gatehouse') })
    expect(message.usage.input_tokens).toBeGreaterThan(0)
    expect(message.usage.output_tokens).toBeGreaterThan(0)
  })

  test.each(GENERAL)('%s streams a message that the helper assembles', async (model) => {
    const running = client().messages.stream(requestOf(model, 'What is Gatehouse?'))
    let text = ''
    running.on('text', (piece) => {
      text += piece
    })
    const message = await running.finalMessage()
    expect(message.content).toMatchObject([{ type: 'text', text }])
    expect([message.stop_reason, message.usage.output_tokens > 0]).toEqual(['end_turn', true])
  })

  test.each(GENERAL)('%s calls a tool, and reads its result', async (model) => {
    const order = {
      ...requestOf(model, 'What is the weather in Paris?'),
      tools: [WEATHER],
      tool_choice: { type: 'any' as const },
    }
    const first = await client().messages.create(order)
    const call = first.content.find((block) => block.type === 'tool_use')
    if (call?.type !== 'tool_use') throw new Error('no call')
    expect([first.stop_reason, call.name, typeof call.input]).toEqual(['tool_use', 'get_weather', 'object'])
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'Rain, 12 degrees' }
    const second = await client().messages.create({
      ...requestOf(model, ''),
      tools: [WEATHER],
      messages: [...order.messages, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }],
    })
    expect([second.stop_reason, second.content[0]?.type]).toEqual(['end_turn', 'text'])
  })

  test('parallel calls with interleaved arguments become one block after the other', async () => {
    const call = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] })
    const named = (id: string) => ({ id, type: 'function', function: { name: 'get_weather', arguments: '' } })
    const argumentsDelta = (text: string) => ({ function: { arguments: text } })
    served.vendor.answer(
      stream([
        chunk({ role: 'assistant', content: '' }),
        call(0, named('a')),
        call(1, named('b')),
        call(0, argumentsDelta('{"city":')),
        call(1, argumentsDelta('{"city":"Rome"}')),
        call(0, argumentsDelta('"Paris"}')),
        chunk({}, 'tool_calls'),
        usageChunk(),
      ]),
    )
    const message = await client()
      .messages.stream({ ...requestOf('v/m', 'Both?'), tools: [WEATHER] })
      .finalMessage()
    expect(message.content).toMatchObject([
      { type: 'tool_use', id: 'a', input: { city: 'Paris' } },
      { type: 'tool_use', id: 'b', input: { city: 'Rome' } },
    ])
    expect(message.usage).toMatchObject({ input_tokens: 9, output_tokens: 3 })
  })

  test('counts tokens, and lists its models', async () => {
    const { max_tokens: _, ...countRequest } = requestOf('sandbox/general', 'What is Gatehouse?')
    expect((await client().messages.countTokens(countRequest)).input_tokens).toBeGreaterThan(3)
    const ids: string[] = []
    for await (const model of client().models.list()) ids.push(model.id)
    expect(ids).toContain('sandbox/general')
    expect((await client().models.retrieve('sandbox/general')).id).toBe('sandbox/general')
  })

  test('a failure is the error class of its status, with its request id', async () => {
    const kinds = { wrong: Client.AuthenticationError, busy: Client.RateLimitError, bad: Client.BadRequestError }
    expect(await errorOf(client('sk-wrong').messages.create(requestOf('v/m', 'x')))).toBeInstanceOf(kinds.wrong)
    served.vendor.answer(failure(429, {}, { 'retry-after': '7' }))
    expect(await errorOf(client().messages.create(requestOf('v/m', 'x')))).toBeInstanceOf(kinds.busy)
    const wild = { ...requestOf('sandbox/general', 'x'), temperature: 7 } as ReturnType<typeof requestOf>
    const error = await errorOf(client().messages.create(wild))
    expect(error).toBeInstanceOf(kinds.bad)
    expect(error).toMatchObject({
      requestID: expect.stringMatching(/^req_/),
      error: {
        type: 'error',
        error: { type: 'invalid_request_error', message: expect.stringContaining('temperature') },
      },
    })
  })

  test('a request is retried only where a retry can help', async () => {
    const wild = { ...requestOf('sandbox/general', 'x'), temperature: 7 } as ReturnType<typeof requestOf>
    const narrow = await served.tokenFor(['sandbox/vision'])
    const permanent: [number, string, ReturnType<typeof requestOf>][] = [
      [400, served.token, wild],
      [401, 'sk-wrong', requestOf('v/m', 'x')],
      [404, served.token, requestOf('sandbox/none', 'x')],
      [403, narrow, requestOf('v/m', 'x')],
      [410, served.token, requestOf('sandbox/retired', 'x')],
    ]
    for (const [status, key, request] of permanent) {
      served.requests.length = 0
      const error = await errorOf(client(key, 2).messages.create(request))
      expect(error).toMatchObject({ status })
      expect((error as InstanceType<typeof Client.APIError>).headers?.get('x-should-retry')).toBe('false')
      expect(served.requests).toHaveLength(1)
    }
    served.requests.length = 0
    served.vendor.answer(failure(429, {}, { 'retry-after': '0' }), whole(completion('At last')))
    const { content } = await client(served.token, 2).messages.create(requestOf('v/m', 'x'))
    expect(content).toMatchObject([{ text: 'At last' }])
    expect(served.requests).toHaveLength(2)
  })

  test('pings, before the first event and between events, are not events for the client', async () => {
    const silent = await serve({ server: { keep_alive_seconds: 0.02 } })
    try {
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const [role = {}, word = {}, ...rest] = chunks('Hel', 'lo')
      silent.vendor.answer(stream([first.promise, role, word, second.promise, ...rest]))
      const { fetch, seen, until } = watchedFetch()
      const baseURL = silent.url.replace(/\/v1$/, '')
      const running = new Client({ apiKey: silent.token, baseURL, maxRetries: 0, fetch }).messages.stream(
        requestOf('v/m', 'x'),
      )
      await until('event: ping\n')
      expect(seen()).not.toContain('message_start')
      first.resolve()
      await until('"text":"Hel"')
      await until('event: ping\n', seen().length)
      second.resolve()
      expect(await running.finalText()).toBe('Hello')
    } finally {
      await silent.close()
    }
  })

  test('a stream that breaks throws an error, and never ends normally', async () => {
    served.vendor.answer(stream(chunks('Hel', 'lo'), { cutAfter: 2 }))
    expect(await errorOf(client().messages.stream(requestOf('v/m', 'x')).finalMessage())).toBeInstanceOf(Error)
  })
})

describe('ai with @ai-sdk/anthropic', () => {
  const model = (id: string) => createAnthropic({ baseURL: served.url, apiKey: served.token })(id)

  test.each(GENERAL)('%s returns a message, whole and streamed', async (id) => {
    const { text, finishReason } = await generateText({ model: model(id), prompt: 'What is Gatehouse?' })
    expect([text.includes('Gatehouse'), finishReason]).toEqual([true, 'stop'])
    const streamed = streamText({ model: model(id), prompt: 'What is Gatehouse?' })
    expect(await streamed.text).toContain('Gatehouse')
    expect((await streamed.usage).outputTokens).toBeGreaterThan(0)
  })

  test('uses tools until it has an answer', async () => {
    const call = { id: 'a', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    const choice = { index: 0, message, logprobs: null, finish_reason: 'tool_calls' }
    served.vendor.answer(whole({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice] }))
    const countRequest: unknown[] = []
    const weather = tool({
      inputSchema: jsonSchema<{ city: string }>(WEATHER.input_schema as never),
      execute: async (input) => {
        countRequest.push(input)
        return 'Rain'
      },
    })
    const { text } = await generateText({
      model: model('v/m'),
      prompt: 'Weather?',
      tools: { get_weather: weather },
      stopWhen: stepCountIs(2),
    })
    expect([countRequest, text]).toEqual([[{ city: 'Paris' }], 'Hello'])
  })
})
