/** The `openai` package's responses, this major and the one before it, and the `ai` package's default OpenAI model. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { GENERAL, type Served, serve, watchUnhandled } from './kit/served.ts'
import { chunk, chunks, completion, failure, stream, usageChunk, whole } from './kit/vendor.ts'

// One test for both: the methods used here have the same types in both majors, which TypeScript cannot know.
const MAJORS = { 'openai 7': OpenAI, 'openai 6': OpenAI6 as unknown as typeof OpenAI }

let served: Served
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  unhandled = watchUnhandled()
  served = await serve()
})
beforeEach(() => {
  served.requests.length = 0
  served.vendor.requests.length = 0
})
afterAll(async () => {
  await served.close()
  expect(unhandled.stop()).toEqual([])
})

const WEATHER = {
  type: 'function' as const,
  name: 'get_weather',
  description: 'The weather in a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}
const PIXEL = 'data:image/png;base64,iVBORw0KGgo='

/** Two calls with interleaved arguments, after text. */
const PARALLEL = [
  chunk({ role: 'assistant', content: 'I look.' }),
  chunk({
    tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'get_weather', arguments: '' } }],
  }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }),
  chunk({
    tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'get_weather', arguments: '{"city"' } }],
  }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Bern"}' } }] }),
  chunk({ tool_calls: [{ index: 1, function: { arguments: ':"Rome"}' } }] }),
  chunk({}, 'tool_calls'),
  usageChunk(),
]

/** The error that a promise of the package rejects with; it is not a plain promise. */
async function errorOf(answer: PromiseLike<unknown>): Promise<unknown> {
  try {
    await answer
  } catch (error) {
    return error
  }
  throw new Error('It was answered.')
}

const lastAsked = () =>
  served.vendor.requests.at(-1)?.json() as { messages: Record<string, unknown>[] } & Record<string, unknown>

describe.each(Object.entries(MAJORS))('%s', (_, Client) => {
  const client = (apiKey = served.token) => new Client({ apiKey, baseURL: served.url, maxRetries: 0 })

  test.each(GENERAL)('%s returns a whole response', async (model) => {
    const response = await client().responses.create({ model, input: 'What is Gatehouse?', instructions: 'Be brief.' })
    expect([response.object, response.status, response.model, response.error]).toEqual([
      'response',
      'completed',
      model,
      null,
    ])
    expect(response.id).toStartWith('resp_')
    expect(response.output_text.length).toBeGreaterThan(20)
    expect(response.instructions).toBe('Be brief.')
    expect(response.usage?.total_tokens).toBe(
      (response.usage?.input_tokens ?? 0) + (response.usage?.output_tokens ?? 0),
    )
  })

  test.each(GENERAL)('%s streams a response that the helper assembles', async (model) => {
    const running = client().responses.stream({ model, input: 'What is Gatehouse?' })
    const numbers: number[] = []
    let text = ''
    for await (const event of running) {
      numbers.push(event.sequence_number)
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    const response = await running.finalResponse()
    expect(numbers).toEqual(numbers.map((_number, index) => index))
    expect([response.status, response.output_text]).toEqual(['completed', text])
    expect(text.length).toBeGreaterThan(20)
  })

  test('parallel calls with interleaved arguments are returned whole, and their results are sent to the vendor', async () => {
    served.vendor.answer(stream(PARALLEL))
    const running = client().responses.stream({ model: 'v/m', input: 'Weather?', tools: [WEATHER] })
    const callArguments: string[] = []
    for await (const event of running) {
      if (event.type === 'response.function_call_arguments.done') callArguments.push(event.arguments)
    }
    const first = await running.finalResponse()
    expect(callArguments).toEqual(['{"city":"Bern"}', '{"city":"Rome"}'])
    expect(first.output.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call'])
    const results = first.output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: `Sun in ${item.arguments}` }]
        : [],
    )
    served.vendor.answer(whole(completion('Sun everywhere.')))
    const second = await client().responses.create({
      model: 'v/m',
      previous_response_id: first.id,
      input: results,
      tools: [WEATHER],
    })
    expect([second.output_text, second.previous_response_id]).toEqual(['Sun everywhere.', first.id])
    expect(lastAsked().messages).toEqual([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [
          { id: 'call_a', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Bern"}' } },
          { id: 'call_b', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Rome"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_a', content: 'Sun in {"city":"Bern"}' },
      { role: 'tool', tool_call_id: 'call_b', content: 'Sun in {"city":"Rome"}' },
    ])
  })

  test('structured output is requested and parsed', async () => {
    served.vendor.answer(whole(completion('{"city":"Bern"}')))
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    }
    const response = await client().responses.parse({
      model: 'v/m',
      input: 'Where?',
      text: { format: { type: 'json_schema', name: 'place', schema, strict: true } },
    })
    expect(response.output_text).toBe('{"city":"Bern"}')
    expect(lastAsked().response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'place', schema, strict: true },
    })
  })

  test('images and files reach the vendor', async () => {
    await client().responses.create({
      model: 'v/m',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', image_url: PIXEL, detail: 'low' },
            { type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' },
          ],
        },
      ],
    })
    expect(lastAsked().messages[0]?.content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: PIXEL, detail: 'low' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' } },
    ])
  })

  test('a response at its limit is incomplete, whole and streamed', async () => {
    const cut = completion('Half', {
      choices: [{ index: 0, message: { role: 'assistant', content: 'Half' }, finish_reason: 'length' }],
    })
    served.vendor.answer(whole(cut))
    const asked = { model: 'v/m', input: 'Long?', max_output_tokens: 16 }
    const response = await client().responses.create(asked)
    expect([response.status, response.incomplete_details]).toEqual(['incomplete', { reason: 'max_output_tokens' }])
    expect(lastAsked().max_tokens ?? lastAsked().max_completion_tokens).toBe(16)
    served.vendor.answer(stream([chunk({ content: 'Half' }), chunk({}, 'length'), usageChunk()]))
    const streamed = await client().responses.stream(asked).finalResponse()
    expect([streamed.status, streamed.output[0]]).toMatchObject(['incomplete', { status: 'incomplete' }])
  })

  test('reasoning is returned as a summary, counted, and assembled by the helper', async () => {
    served.vendor.answer(
      stream([
        chunk({ role: 'assistant', reasoning_content: 'Let me ' }),
        chunk({ reasoning_content: 'think.' }),
        chunk({ content: 'Done.' }),
        chunk({}, 'stop'),
        usageChunk({
          prompt_tokens: 9,
          completion_tokens: 5,
          total_tokens: 14,
          prompt_tokens_details: { cached_tokens: 4 },
          completion_tokens_details: { reasoning_tokens: 2 },
        }),
      ]),
    )
    const response = await client().responses.stream({ model: 'v/m', input: 'Think.' }).finalResponse()
    expect(response.output).toMatchObject([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me think.' }] },
      { type: 'message', content: [{ type: 'output_text', text: 'Done.' }] },
    ])
    expect(response.usage).toMatchObject({
      input_tokens: 9,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 14,
    })
  })

  test('a refusal of the model is a refusal part', async () => {
    served.vendor.answer(
      stream([
        chunk({ role: 'assistant', refusal: 'I will ' }),
        chunk({ refusal: 'not.' }),
        chunk({}, 'stop'),
        usageChunk(),
      ]),
    )
    const response = await client().responses.stream({ model: 'v/m', input: 'Do it.' }).finalResponse()
    expect(response.output[0]).toMatchObject({
      type: 'message',
      content: [{ type: 'refusal', refusal: 'I will not.' }],
    })
  })

  test('a custom tool is called with free text', async () => {
    const patch = '*** Begin Patch\n"x"\n*** End Patch'
    const call = (text: string, id?: string) =>
      chunk({
        tool_calls: [
          {
            index: 0,
            ...(id ? { id, type: 'function' } : {}),
            function: { ...(id ? { name: 'apply_patch' } : {}), arguments: text },
          },
        ],
      })
    const text = JSON.stringify({ input: patch })
    served.vendor.answer(
      stream([call('', 'call_p'), call(text.slice(0, 9)), call(text.slice(9)), chunk({}, 'tool_calls'), usageChunk()]),
    )
    const tools = [
      {
        type: 'custom' as const,
        name: 'apply_patch',
        format: { type: 'grammar' as const, syntax: 'lark' as const, definition: 'start: "x"' },
      },
    ]
    const response = await client().responses.stream({ model: 'v/m', input: 'Patch it.', tools }).finalResponse()
    expect(response.output).toMatchObject([
      { type: 'custom_tool_call', name: 'apply_patch', call_id: 'call_p', input: patch },
    ])
    const [asked] = lastAsked().tools as { function: { parameters: object; description: string } }[]
    expect(asked?.function.description).toContain('start: "x"')
    await client().responses.create({
      model: 'v/m',
      tools,
      input: [
        { role: 'user', content: 'Patch it.' },
        { type: 'custom_tool_call', call_id: 'call_p', name: 'apply_patch', input: patch },
        { type: 'custom_tool_call_output', call_id: 'call_p', output: 'Done' },
      ],
    })
    expect(lastAsked().messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_p', type: 'function', function: { name: 'apply_patch', arguments: text } }],
      },
      { role: 'tool', tool_call_id: 'call_p', content: 'Done' },
    ])
  })

  test('a stored response is read, its input listed, and deleted; another token does not find it', async () => {
    const { responses } = client()
    const first = await responses.create({ model: 'sandbox/general', input: 'One' })
    const second = await responses.create({ model: 'sandbox/general', input: 'Two', previous_response_id: first.id })
    expect((await responses.retrieve(second.id)).output_text).toBe(second.output_text)
    const texts: unknown[] = []
    for await (const item of responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) {
      texts.push(item.type === 'message' ? item.content[0] : item)
    }
    expect(texts).toMatchObject([
      { type: 'input_text', text: 'One' },
      { type: 'output_text', text: first.output_text },
      { type: 'input_text', text: 'Two' },
    ])
    const otherToken = client(await served.tokenFor(['*'])).responses
    expect(await errorOf(otherToken.retrieve(first.id))).toMatchObject({ status: 404, code: 'response_not_found' })
    expect(
      await errorOf(otherToken.create({ model: 'sandbox/general', input: 'x', previous_response_id: first.id })),
    ).toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
      param: 'previous_response_id',
    })
    await responses.delete(second.id)
    expect(await errorOf(responses.retrieve(second.id))).toMatchObject({ status: 404 })
    expect(await errorOf(responses.delete(second.id))).toMatchObject({ status: 404 })
  })

  test('errors have their status and param', async () => {
    const { responses } = client()
    expect(await errorOf(responses.create({ model: 'no/such', input: 'x' }))).toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
    expect(await errorOf(responses.create({ model: 'v/m', input: 'x', tools: [{ type: 'computer' }] }))).toMatchObject({
      status: 400,
      code: 'unsupported_parameter',
      param: 'tools[0].type',
    })
    served.vendor.answer(failure(429, { error: { message: 'Slow down.' } }))
    expect(await errorOf(responses.stream({ model: 'v/m', input: 'x' }).finalResponse())).toMatchObject({ status: 429 })
  })

  test('a stream that breaks is an error', async () => {
    const heard = Promise.withResolvers<void>()
    served.vendor.answer(stream([chunk({ content: 'Hel' }), heard.promise], { cutAfter: 1 }))
    const seen: string[] = []
    const running = await client().responses.create({ model: 'v/m', input: 'x', stream: true })
    const error = await errorOf(
      (async () => {
        for await (const event of running) {
          seen.push(event.type)
          if (event.type === 'response.output_text.delta') heard.resolve()
        }
      })(),
    )
    expect(error).toMatchObject({ code: 'server_error' })
    expect(seen).toContain('response.output_text.delta')
  })
})

describe('the ai package', () => {
  const model = (id: string) => createOpenAI({ apiKey: served.token, baseURL: served.url })(id)
  const weather = tool({
    description: 'The weather in a city',
    inputSchema: jsonSchema<{ city: string }>({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    }),
    execute: async ({ city }) => `Sun in ${city}`,
  })

  test.each(GENERAL)('%s responds, whole and streamed', async (id) => {
    const { text, usage, finishReason, warnings } = await generateText({
      model: model(id),
      prompt: 'What is Gatehouse?',
    })
    expect([text.length > 20, finishReason, warnings ?? []]).toEqual([true, 'stop', []])
    expect(usage.totalTokens).toBeGreaterThan(0)
    const streamed = streamText({ model: model(id), prompt: 'What is Gatehouse?' })
    expect((await streamed.text).length).toBeGreaterThan(20)
    expect(await streamed.finishReason).toBe('stop')
  })

  // With and without stored responses: the package then refers to items by their ids, or sends them again.
  test.each([true, false])('steps with parallel tools continue automatically (store: %p)', async (store) => {
    served.vendor.answer(
      stream([chunk({ role: 'assistant', reasoning_content: 'Two cities.' }), ...PARALLEL]),
      stream(chunks('Sun ', 'everywhere.')),
    )
    const streamed = streamText({
      model: model('v/m'),
      prompt: 'Weather?',
      tools: { get_weather: weather },
      stopWhen: stepCountIs(3),
      providerOptions: { openai: { store, include: ['reasoning.encrypted_content'] } },
    })
    expect(await streamed.text).toBe('Sun everywhere.')
    const [first] = await streamed.steps
    expect(first?.reasoningText).toBe('Two cities.')
    expect(first?.toolResults.map(({ output }) => output)).toEqual(['Sun in Bern', 'Sun in Rome'])
    expect(lastAsked().messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: 'I look.',
        reasoning_content: 'Two cities.',
        tool_calls: [{ id: 'call_a' }, { id: 'call_b' }],
      },
      { role: 'tool', tool_call_id: 'call_a', content: 'Sun in Bern' },
      { role: 'tool', tool_call_id: 'call_b', content: 'Sun in Rome' },
    ])
  })

  test('structured output is parsed', async () => {
    served.vendor.answer(whole(completion('{"city":"Bern"}')))
    const { output } = await generateText({
      model: model('v/m'),
      prompt: 'Where?',
      output: Output.object({
        schema: jsonSchema<{ city: string }>({
          type: 'object',
          properties: { city: { type: 'string' } },
          required: ['city'],
        }),
      }),
    })
    expect(output).toEqual({ city: 'Bern' })
  })

  test('citations become sources', async () => {
    const annotations = [
      { type: 'url_citation', url_citation: { start_index: 0, end_index: 3, url: 'https://a.example', title: 'A' } },
    ]
    served.vendor.answer(stream([chunk({ content: 'See' }), chunk({ annotations }), chunk({}, 'stop'), usageChunk()]))
    const streamed = streamText({ model: model('v/m'), prompt: 'x' })
    expect(await streamed.text).toBe('See')
    expect(await streamed.sources).toMatchObject([{ sourceType: 'url', url: 'https://a.example', title: 'A' }])
  })

  test('a stream that breaks is one error part', async () => {
    const heard = Promise.withResolvers<void>()
    served.vendor.answer(stream([chunk({ content: 'Hel' }), heard.promise], { cutAfter: 1 }))
    const errors: unknown[] = []
    const streamed = streamText({
      model: model('v/m'),
      prompt: 'x',
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    })
    for await (const part of streamed.fullStream) {
      if (part.type === 'text-delta') heard.resolve()
    }
    expect(errors).toHaveLength(1)
    expect(await streamed.finishReason).toBe('error')
  })
})
