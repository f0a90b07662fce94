/** The `openai` package, this major and the one before it, as a client of the gateway: every feature and every error. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Ajv from 'ajv'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { GENERAL, openPort, type Served, serve, VISION, watchedFetch, watchUnhandled } from './kit/served.ts'
import { chunk, chunks, completion, failure, hang, stream, usageChunk, whole } from './kit/vendor.ts'

// One test for both: the methods used here have the same types in both majors, which TypeScript cannot know.
const MAJORS = { 'openai 7': OpenAI, 'openai 6': OpenAI6 as unknown as typeof OpenAI }
const MAX_BODY = 100_000

type Request = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>
type Options = NonNullable<ConstructorParameters<typeof OpenAI>[0]>

let served: Served
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  unhandled = watchUnhandled()
  served = await serve({ server: { max_body_bytes: MAX_BODY } })
})
beforeEach(() => {
  served.requests.length = 0
})
afterAll(async () => {
  await served.close()
  expect(unhandled.stop()).toEqual([])
})

const requestOf = (content: string, more: Partial<Request> = {}): Request => ({
  model: 'sandbox/general',
  messages: [{ role: 'user', content }],
  ...more,
})
const streamed = (content: string, more: Partial<Request> = {}) => ({
  ...requestOf(content, more),
  stream: true as const,
})

const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    strict: true,
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
      required: ['city', 'days'],
      additionalProperties: false,
    },
  },
}
const TIME = {
  type: 'function' as const,
  function: { name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } },
}
const PERSON = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    age: { type: 'integer', minimum: 0, maximum: 130 },
    tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 },
  },
  required: ['name', 'age', 'tags'],
  additionalProperties: false,
}
const PERSON_FORMAT = {
  type: 'json_schema' as const,
  json_schema: { name: 'person', strict: true, schema: PERSON },
}
const fits = (schema: object, value: unknown) => new Ajv().compile(schema)(value)
/** The smallest image: one transparent pixel. */
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const withPicture = (model: string): Request => ({
  model,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is on the picture?' },
        { type: 'image_url', image_url: { url: PIXEL } },
      ],
    },
  ],
})

/** The error that a promise rejects with. */
async function rejection<T extends Error>(promise: Promise<unknown>): Promise<T> {
  try {
    await promise
  } catch (error) {
    return error as T
  }
  throw new Error('nothing was refused')
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = []
  for await (const item of items) out.push(item)
  return out
}
const textOf = (list: OpenAI.ChatCompletionChunk[]) => list.map((one) => one.choices[0]?.delta.content ?? '').join('')

for (const [name, Sdk] of Object.entries(MAJORS)) {
  const client = (options: Options = {}) =>
    new Sdk({ baseURL: served.url, apiKey: served.token, maxRetries: 0, logLevel: 'off', ...options })
  const create = (request: Request, options: Options = {}) => client(options).chat.completions.create(request)

  describe(`${name}: models`, () => {
    test('list is a page, and iterating it yields every model of the token', async () => {
      const page = await client().models.list()
      const ids = (await all(client().models.list())).map((model) => model.id)
      expect(page.data.map((model) => model.id)).toEqual(ids)
      expect(ids).toEqual([...ids].sort())
      expect(ids).toContain('sandbox/general')
      expect(ids).toContain('v/m')
      expect(page.data[0]).toMatchObject({ object: 'model', owned_by: 'far', created: expect.any(Number) })
    })

    test('retrieve sends the slash as %2F, and gets the model itself', async () => {
      const model = await client().models.retrieve('sandbox/general')
      expect(served.requests[0]?.path).toBe('/v1/models/sandbox%2Fgeneral')
      expect(model).toMatchObject({ id: 'sandbox/general', object: 'model', owned_by: 'sandbox' })
      expect(model._request_id).toMatch(/^req_/)
    })

    test('retrieve accepts a short name, unless it is ambiguous', async () => {
      expect((await client().models.retrieve('compact')).id).toBe('sandbox/compact')
      const error = await rejection<InstanceType<typeof Sdk.APIError>>(client().models.retrieve('general'))
      expect(error).toBeInstanceOf(Sdk.BadRequestError)
      expect(error).toMatchObject({ code: 'ambiguous_model', param: 'model' })
      expect(error.message).toMatch(/name one of: .*(sandbox|far)\/general, (sandbox|far)\/general\./)
    })

    test('retrieve of an unknown model is a NotFoundError', async () => {
      const error = await rejection(client().models.retrieve('sandbox/none'))
      expect(error).toBeInstanceOf(Sdk.NotFoundError)
      expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
    })

    test('a token lists its own models only', async () => {
      const apiKey = await served.tokenFor(['sandbox/c*'])
      expect((await client({ apiKey }).models.list()).data.map((model) => model.id)).toEqual(['sandbox/compact'])
    })
  })

  for (const model of GENERAL) {
    describe(`${name}: ${model}`, () => {
      test('a whole response has its message, usage, model and request id', async () => {
        const { data, request_id } = await client()
          .chat.completions.create(requestOf('Hello there', { model }))
          .withResponse()
        expect(data).toMatchObject({ object: 'chat.completion', model, system_fingerprint: expect.anything() })
        expect(data.choices).toHaveLength(1)
        expect(data.choices[0]).toMatchObject({ index: 0, finish_reason: 'stop', logprobs: null })
        expect(data.choices[0]?.message).toMatchObject({ role: 'assistant', refusal: null })
        expect(data.choices[0]?.message.content).toContain('simulated')
        expect(data.choices[0]?.message.tool_calls).toBeUndefined()
        const { prompt_tokens = 0, completion_tokens = 0, total_tokens } = data.usage ?? {}
        expect(prompt_tokens).toBeGreaterThan(0)
        expect(total_tokens).toBe(prompt_tokens + completion_tokens)
        expect(request_id).toMatch(/^req_/)
        expect(data).toHaveProperty('_request_id', request_id)
      })

      test('a stream has the same message as the whole response', async () => {
        const whole = await create(requestOf('Hello there', { model }))
        const list = await all(await client().chat.completions.create(streamed('Hello there', { model })))
        expect(textOf(list)).toBe(whole.choices[0]?.message.content ?? '')
        expect(list.length).toBeGreaterThan(5)
        expect(list[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' })
        expect(list.at(-1)?.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' })
        expect(list.filter((one) => one.choices[0]?.finish_reason).length).toBe(1)
        for (const { id, created, model: name, object } of list) {
          expect({ id, created, name, object }).toEqual({
            id: list[0]?.id as string,
            created: list[0]?.created as number,
            name: model,
            object: 'chat.completion.chunk',
          })
        }
      })

      test('no chunk is without choices, and none has usage, unless usage was requested', async () => {
        const list = await all(await client().chat.completions.create(streamed('Hello there', { model })))
        expect(list.filter((one) => one.choices.length === 0 || one.usage)).toEqual([])
      })

      test('include_usage adds the usage of the whole response to the last chunk only', async () => {
        const whole = await create(requestOf('Hello there', { model }))
        const request = { ...streamed('Hello there', { model }), stream_options: { include_usage: true } }
        const list = await all(await client().chat.completions.create(request))
        const last = list.pop()
        expect(last?.choices).toEqual([])
        expect(last?.usage).toEqual(whole.usage as OpenAI.CompletionUsage)
        expect(last).toMatchObject({ id: list[0]?.id, created: list[0]?.created, model })
        expect(list.filter((one) => one.usage !== null)).toEqual([])
      })

      test('the .stream() helper emits events and ends with the whole completion', async () => {
        const whole = await create(requestOf('Hello there', { model }))
        const content = whole.choices[0]?.message.content as string
        const request = { ...requestOf('Hello there', { model }), stream_options: { include_usage: true } }
        const helper = client().chat.completions.stream(request)
        let [text, snapshots, pieces] = ['', 0, 0]
        helper.on('content', (delta, snapshot) => {
          text += delta
          if (snapshot === text) snapshots++
          pieces++
        })
        let done = ''
        helper.on('content.done', (event) => {
          done = event.content
        })
        const final = await helper.finalChatCompletion()
        expect([text, done]).toEqual([content, content])
        expect([snapshots > 0, snapshots]).toEqual([true, pieces])
        expect(final.choices[0]).toMatchObject({ finish_reason: 'stop', message: { role: 'assistant', content } })
        expect((await helper.finalMessage()).content).toBe(content)
        expect(await helper.finalContent()).toBe(content)
        expect(await helper.totalUsage()).toMatchObject({ total_tokens: whole.usage?.total_tokens as number })
        expect(final.model).toBe(model)
      })

      test('n=2 returns two different choices, whole and through .stream()', async () => {
        const whole = await create(requestOf('Tell me something', { model, n: 2 }))
        expect(whole.choices.map((choice) => choice.index)).toEqual([0, 1])
        const texts = whole.choices.map((choice) => choice.message.content)
        expect(new Set(texts).size).toBe(2)
        const helper = client().chat.completions.stream(requestOf('Tell me something', { model, n: 2 }))
        const final = await helper.finalChatCompletion()
        expect(final.choices.map((choice) => choice.message.content)).toEqual(texts)
        expect(final.choices.map((choice) => choice.finish_reason)).toEqual(['stop', 'stop'])
      })

      test('max_tokens and max_completion_tokens end with finish_reason length', async () => {
        for (const more of [{ max_tokens: 3 }, { max_completion_tokens: 3 }]) {
          const { choices, usage } = await create(requestOf('Hello there', { model, ...more }))
          expect([choices[0]?.finish_reason, usage?.completion_tokens]).toEqual(['length', 3])
        }
      })

      test('fields that are null count as absent, and current roles and names are accepted', async () => {
        const request = {
          model,
          messages: [
            { role: 'developer', content: 'Be brief.' },
            { role: 'user', content: 'Hello', name: 'ann' },
            { role: 'assistant', content: 'Hi', tool_calls: null, refusal: null, audio: null },
            { role: 'user', content: [{ type: 'text', text: 'Again' }] },
          ],
          ...{
            temperature: null,
            stop: null,
            tools: null,
            response_format: null,
            n: null,
            max_tokens: null,
            user: 'ann',
          },
        } as unknown as Request
        expect((await create(request)).choices[0]?.finish_reason).toBe('stop')
      })

      test('a whole tool call has content null, arguments that fit its schema, and finish_reason tool_calls', async () => {
        const { choices } = await create(requestOf('What is the weather in Paris?', { model, tools: [WEATHER, TIME] }))
        expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
        const [call, ...more] = choices[0]?.message.tool_calls ?? []
        expect(more).toEqual([])
        if (call?.type !== 'function') throw new Error('no function is called')
        expect(call.function.name).toBe('get_weather')
        expect(call.id).toMatch(/^call_/)
        expect(fits(WEATHER.function.parameters, JSON.parse(call.function.arguments))).toBe(true)
      })

      test('a streamed tool call has its name once, and never changes its id', async () => {
        const request = streamed('What is the weather in Paris?', { model, tools: [WEATHER] })
        const list = await all(await client().chat.completions.create(request))
        const deltas = list.flatMap((one) => one.choices[0]?.delta.tool_calls ?? [])
        const [first, ...rest] = deltas
        expect(first).toEqual({
          index: 0,
          id: expect.stringMatching(/^call_/),
          type: 'function',
          function: { name: 'get_weather', arguments: '' },
        })
        expect(rest.length).toBeGreaterThan(0)
        for (const delta of rest) {
          expect(delta).toEqual({ index: 0, function: { arguments: expect.any(String) } })
        }
        const text = deltas.map((delta) => delta.function?.arguments).join('')
        expect(fits(WEATHER.function.parameters, JSON.parse(text))).toBe(true)
        expect(list.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls')
      })

      test('.stream() with strict tools ends with parsed arguments', async () => {
        const request = requestOf('What is the weather in Paris?', { model, tools: [WEATHER] })
        const helper = client().chat.completions.stream(request)
        let done = 0
        helper.on('tool_calls.function.arguments.done', () => done++)
        const { choices } = await helper.finalChatCompletion()
        const [call] = choices[0]?.message.tool_calls ?? []
        if (call?.type !== 'function') throw new Error('no function is called')
        expect(fits(WEATHER.function.parameters, call.function.parsed_arguments)).toBe(true)
        expect(done).toBe(1)
      })

      test('several tools are called at once, unless parallel_tool_calls is false', async () => {
        const question = 'Call get_weather for Paris and get_time for its zone.'
        const whole = await create(requestOf(question, { model, tools: [WEATHER, TIME] }))
        const calls = (whole.choices[0]?.message.tool_calls ?? []) as OpenAI.ChatCompletionMessageFunctionToolCall[]
        expect(calls.map((call) => call.function.name)).toEqual(['get_weather', 'get_time'])
        expect(new Set(calls.map((call) => call.id)).size).toBe(2)
        const request = requestOf(question, { model, tools: [WEATHER, TIME] })
        const final = await client().chat.completions.stream(request).finalChatCompletion()
        expect(final.choices[0]?.message.tool_calls).toMatchObject(
          calls.map((call) => ({ function: { name: call.function.name, arguments: call.function.arguments } })),
        )
        const single = await create({ ...request, parallel_tool_calls: false })
        expect(single.choices[0]?.message.tool_calls).toHaveLength(1)
      })

      test('tool_choice applies: required, one by name, none', async () => {
        const ask = (tool_choice: Request['tool_choice']) =>
          create(requestOf('Hello', { model, tools: [WEATHER, TIME], ...(tool_choice ? { tool_choice } : {}) }))
        const names = (answer: OpenAI.ChatCompletion) =>
          (answer.choices[0]?.message.tool_calls ?? []).map((call) =>
            call.type === 'function' ? call.function.name : '',
          )
        expect(names(await ask('required'))).toHaveLength(1)
        expect(names(await ask({ type: 'function', function: { name: 'get_time' } }))).toEqual(['get_time'])
        expect(names(await ask('none'))).toEqual([])
        expect(names(await ask(undefined))).toEqual([])
      })

      test('a tool loop ends with an answer from the result', async () => {
        const asked = requestOf('What is the weather in Paris?', { model, tools: [WEATHER] })
        const first = (await create(asked)).choices[0]?.message as OpenAI.ChatCompletionMessage
        const results = (first.tool_calls ?? []).map(({ id }) => ({
          role: 'tool' as const,
          tool_call_id: id,
          content: 'Sunny, 21 degrees',
        }))
        const second = await create({ ...asked, messages: [...asked.messages, first, ...results] })
        expect(second.choices[0]).toMatchObject({ finish_reason: 'stop' })
        expect(second.choices[0]?.message.content).toContain('Sunny, 21 degrees')
      })

      test('runTools runs the loop, streamed and not', async () => {
        const asked: string[] = []
        const tool = {
          type: 'function' as const,
          function: {
            name: 'get_weather',
            description: 'The weather in a city',
            parameters: WEATHER.function.parameters,
            parse: JSON.parse,
            function: (args: { city: string }) => {
              asked.push(args.city)
              return 'Sunny, 21 degrees'
            },
          },
        }
        const request = { model, messages: requestOf('What is the weather in Paris?').messages, tools: [tool] }
        const runner = client().chat.completions.runTools(request)
        expect(await runner.finalContent()).toContain('Sunny, 21 degrees')
        const streaming = client().chat.completions.runTools({ ...request, stream: true })
        expect(await streaming.finalContent()).toContain('Sunny, 21 degrees')
        expect(asked).toEqual(['Paris', 'Paris'])
      })

      test('.parse() and .stream() return an object that fits the JSON schema', async () => {
        const request = requestOf('Describe Ann', { model, response_format: PERSON_FORMAT })
        const parsed = await client().chat.completions.parse(request)
        const value = parsed.choices[0]?.message.parsed
        expect(fits(PERSON, value)).toBe(true)
        const final = await client().chat.completions.stream(request).finalChatCompletion()
        expect(JSON.parse(final.choices[0]?.message.content ?? '')).toEqual(value)
        // The older major parses here only what its own zod helper marked.
        if (Sdk === OpenAI) expect(final.choices[0]?.message.parsed).toEqual(value as null)
      })

      test('JSON mode returns a JSON object', async () => {
        const { choices } = await create(requestOf('Describe Ann', { model, response_format: { type: 'json_object' } }))
        expect(JSON.parse(choices[0]?.message.content ?? '')).toBeObject()
      })

      test('an image is accepted', async () => {
        const { choices, usage } = await create(withPicture(model))
        expect(choices[0]?.message.content).toContain('1 x 1')
        expect(usage?.prompt_tokens_details).toMatchObject({ image_tokens: expect.any(Number) })
      })

      test('there is one log probability per token', async () => {
        const request = requestOf('Hello there', { model, logprobs: true, top_logprobs: 2, max_tokens: 4 })
        const { choices } = await create(request)
        expect(choices[0]?.logprobs?.content).toHaveLength(4)
        const final = await client().chat.completions.stream(request).finalChatCompletion()
        expect(final.choices[0]?.logprobs?.content).toEqual(choices[0]?.logprobs?.content as [])
      })
    })
  }

  for (const model of VISION) {
    describe(`${name}: ${model}`, () => {
      type Thinking = { reasoning_content?: string; content?: string | null }

      test('has reasoning_content with thinking_enabled, streamed before the content', async () => {
        const request = { ...requestOf('Why is the sky blue?', { model }), thinking_enabled: true }
        const { choices, usage } = await create(request)
        const said = choices[0]?.message as Thinking
        expect(said.reasoning_content?.length).toBeGreaterThan(0)
        expect(usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
        const list = await all(await client().chat.completions.create({ ...request, stream: true }))
        const deltas = list.map((one) => one.choices[0]?.delta as Thinking)
        expect(deltas.map((delta) => delta.reasoning_content ?? '').join('')).toBe(said.reasoning_content as string)
        const firstContent = deltas.findIndex((delta) => delta.content)
        expect(firstContent).toBeGreaterThan(deltas.findLastIndex((delta) => delta.reasoning_content))
        const without = await create(requestOf('Why is the sky blue?', { model }))
        expect(without.choices[0]?.message).not.toHaveProperty('reasoning_content')
      })

      test('has annotations after a web search', async () => {
        const request = { ...requestOf('Why is the sky blue?', { model }), web_search: { enable: true } }
        const message = (await create(request)).choices[0]?.message
        const [annotation] = message?.annotations ?? []
        expect(annotation).toMatchObject({ type: 'url_citation' })
        const { start_index = 0, end_index = 0, url = '' } = annotation?.url_citation ?? {}
        expect(message?.content?.slice(start_index, end_index)).toContain(url)
        expect(
          (await create(requestOf('Why is the sky blue?', { model }))).choices[0]?.message.annotations,
        ).toBeUndefined()
      })
    })
  }

  describe(`${name}: aborting`, () => {
    /** The upstream request that this causes. */
    async function causing(work: () => Promise<unknown>) {
      const count = served.vendor.requests.length + 1
      await work()
      return served.vendor.request(count)
    }

    test('in the middle of a stream, by abort, aborts the upstream request', async () => {
      served.vendor.answer(stream(chunks('a', 'b', 'c'), { hangAfter: 2 }))
      let said = ''
      const request = await causing(async () => {
        const answer = await client().chat.completions.create(streamed('Hello', { model: 'v/m' }))
        for await (const one of answer) {
          said += one.choices[0]?.delta.content ?? ''
          if (said === 'a') answer.controller.abort()
        }
      })
      await request.aborted
      expect(said).toBe('a') // and the loop just ended: that is this package's way
    })

    test('in the middle of a stream, by leaving the loop, aborts the upstream request', async () => {
      served.vendor.answer(stream(chunks('a', 'b', 'c'), { hangAfter: 2 }))
      const request = await causing(async () => {
        const answer = await client().chat.completions.create(streamed('Hello', { model: 'v/m' }))
        for await (const one of answer) if (one.choices[0]?.delta.content) break
      })
      await request.aborted
    })

    test('in the middle of .stream() is an APIUserAbortError and aborts the upstream request', async () => {
      served.vendor.answer(stream(chunks('a', 'b', 'c'), { hangAfter: 2 }))
      const request = await causing(async () => {
        const helper = client().chat.completions.stream(requestOf('Hello', { model: 'v/m' }))
        helper.on('content', () => helper.abort())
        expect(await rejection(helper.finalChatCompletion())).toBeInstanceOf(Sdk.APIUserAbortError)
        expect(helper.aborted).toBe(true)
      })
      await request.aborted
    })

    for (const isStreamed of [true, false]) {
      test(`before the first byte of ${isStreamed ? 'a stream' : 'a whole response'} aborts the upstream request`, async () => {
        served.vendor.answer(hang())
        const leaving = new AbortController()
        const request = await causing(async () => {
          const coming = served.vendor.request(served.vendor.requests.length + 1)
          const asked = client().chat.completions.create(
            { ...requestOf('Hello', { model: 'v/m' }), stream: isStreamed },
            { signal: leaving.signal },
          )
          const refused = rejection(asked)
          await coming
          leaving.abort()
          expect(await refused).toBeInstanceOf(Sdk.APIUserAbortError)
        })
        await request.aborted
      })
    }

    test('leaves no rejection unhandled', async () => {
      Bun.gc(true)
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
      expect(unhandled.seen).toEqual([])
    })
  })

  describe(`${name}: errors`, () => {
    type Case = {
      status: number
      Class: new (...args: never[]) => Error
      code: string
      type: string
      param: string | null
      requestOf: RegExp
      cause: () => Promise<unknown>
    }
    const told = (line: string, model = 'sandbox/general') => create(requestOf(`Hello\n@sandbox ${line}`, { model }))
    const invalid = 'invalid_request_error'
    const cases: [string, () => Case][] = [
      [
        '400, a value out of the range of its model',
        () => ({
          status: 400,
          Class: Sdk.BadRequestError,
          code: 'invalid_value',
          type: invalid,
          param: 'max_tokens',
          requestOf: /from 1 to 32768.*not 32769/,
          cause: () => create(requestOf('Hello', { max_tokens: 32_769 })),
        }),
      ],
      [
        '400, a field of the wrong type',
        () => ({
          status: 400,
          Class: Sdk.BadRequestError,
          code: 'invalid_type',
          type: invalid,
          param: 'temperature',
          requestOf: /must be a number, not the string "1"/,
          cause: () => create({ ...requestOf('Hello'), temperature: '1' as unknown as number }),
        }),
      ],
      [
        '400, no messages',
        () => ({
          status: 400,
          Class: Sdk.BadRequestError,
          code: 'missing_required_parameter',
          type: invalid,
          param: 'messages',
          requestOf: /"messages" is required/,
          cause: () => create({ model: 'sandbox/general' } as Request),
        }),
      ],
      [
        '400, an image for a model that accepts text only',
        () => ({
          status: 400,
          Class: Sdk.BadRequestError,
          code: 'unsupported_value',
          type: invalid,
          param: 'messages[0].content[1].type',
          requestOf: /must be "text", not the string "image_url"/,
          cause: () => create(withPicture('sandbox/compact')),
        }),
      ],
      [
        '400, tools for a model that has none',
        () => ({
          status: 400,
          Class: Sdk.BadRequestError,
          code: 'unsupported_parameter',
          type: invalid,
          param: 'tools',
          requestOf: /has no tools/,
          cause: () => create(requestOf('Hello', { model: 'v/narrow', tools: [WEATHER] })),
        }),
      ],
      [
        '401, a wrong token',
        () => ({
          status: 401,
          Class: Sdk.AuthenticationError,
          code: 'invalid_api_key',
          type: 'authentication_error',
          param: null,
          requestOf: /token/i,
          cause: () => create(requestOf('Hello'), { apiKey: 'sk-wrong' }),
        }),
      ],
      [
        '403, a model that the token may not use',
        () => ({
          status: 403,
          Class: Sdk.PermissionDeniedError,
          code: 'model_not_allowed',
          type: 'permission_error',
          param: 'model',
          requestOf: /may not use the model "sandbox\/general"/,
          cause: async () => create(requestOf('Hello'), { apiKey: await served.tokenFor(['sandbox/compact']) }),
        }),
      ],
      [
        '404, an unknown model',
        () => ({
          status: 404,
          Class: Sdk.NotFoundError,
          code: 'model_not_found',
          type: invalid,
          param: 'model',
          requestOf: /no model "sandbox\/none"/,
          cause: () => create(requestOf('Hello', { model: 'sandbox/none' })),
        }),
      ],
      [
        '404, an unknown path',
        () => ({
          status: 404,
          Class: Sdk.NotFoundError,
          code: 'unknown_url',
          type: invalid,
          param: null,
          requestOf: /Invalid URL \(GET \/v1\/fine_tuning\/jobs\)/,
          cause: () => client().fineTuning.jobs.list(),
        }),
      ],
      [
        '405, a method that the path does not support',
        () => ({
          status: 405,
          Class: Sdk.APIError,
          code: 'method_not_allowed',
          type: invalid,
          param: null,
          requestOf: /DELETE is not a method of/,
          cause: () => client().models.delete('sandbox/general'),
        }),
      ],
      [
        '410, a retired model',
        () => ({
          status: 410,
          Class: Sdk.APIError,
          code: 'model_retired',
          type: invalid,
          param: 'model',
          requestOf: /Use "sandbox\/general" instead/,
          cause: () => create(requestOf('Hello', { model: 'sandbox/retired' })),
        }),
      ],
      [
        '413, a body over the limit',
        () => ({
          status: 413,
          Class: Sdk.APIError,
          code: 'request_too_large',
          type: invalid,
          param: null,
          requestOf: /at most 100000 bytes/,
          cause: () => create(requestOf('a'.repeat(MAX_BODY))),
        }),
      ],
      [
        '415, a body that is not JSON',
        () => ({
          status: 415,
          Class: Sdk.APIError,
          code: 'unsupported_media_type',
          type: invalid,
          param: null,
          requestOf: /application\/json, not "text\/plain"/,
          cause: () =>
            client().chat.completions.create(requestOf('Hello'), { headers: { 'content-type': 'text/plain' } }),
        }),
      ],
      [
        '429, the vendor limits requests',
        () => ({
          status: 429,
          Class: Sdk.RateLimitError,
          code: 'rate_limit_exceeded',
          type: 'rate_limit_error',
          param: null,
          requestOf: /limiting requests/,
          cause: () => told('status=429'),
        }),
      ],
      [
        '502, the vendor failed',
        () => ({
          status: 502,
          Class: Sdk.InternalServerError,
          code: 'bad_upstream_response',
          type: 'upstream_error',
          param: null,
          requestOf: /upstream "far" failed \(502\)/,
          cause: () => told('status=500', 'far/general'),
        }),
      ],
      [
        '503, the vendor is overloaded',
        () => ({
          status: 503,
          Class: Sdk.InternalServerError,
          code: 'server_is_overloaded',
          type: 'service_unavailable_error',
          param: null,
          requestOf: /overloaded/,
          cause: () => told('status=503'),
        }),
      ],
      [
        '504, the vendor timed out',
        () => ({
          status: 504,
          Class: Sdk.InternalServerError,
          code: 'upstream_timeout',
          type: 'timeout_error',
          param: null,
          requestOf: /timed out/,
          cause: () => told('status=504'),
        }),
      ],
    ]
    for (const [what, of] of cases) {
      test(`${what}: the error has its class, code, type, param, message and request id`, async () => {
        const { status, Class, code, type, param, requestOf: wording, cause } = of()
        const error = await rejection<InstanceType<typeof Sdk.APIError>>(cause())
        expect(error).toBeInstanceOf(Sdk.APIError)
        expect(error).toBeInstanceOf(Class)
        const { status: got, code: gotCode, type: gotType, param: gotParam } = error
        expect({ got, gotCode, gotType, gotParam }).toEqual({
          got: status,
          gotCode: code,
          gotType: type,
          gotParam: param,
        })
        expect(error.message).toMatch(wording)
        expect(error.message).toStartWith(`${status} `)
        expect(error.requestID).toMatch(/^req_/)
        expect(served.requests).toHaveLength(1)
      })
    }

    test('500, an internal error, reveals only the request id', async () => {
      const manual = () => Promise.reject(new Error('a secret of ours'))
      const broken = await openPort({}, { manual })
      try {
        const options = { baseURL: broken.url, apiKey: broken.token }
        const error = await rejection<InstanceType<typeof Sdk.APIError>>(
          create(requestOf('How do I create a token?'), options),
        )
        expect(error).toBeInstanceOf(Sdk.InternalServerError)
        expect(error).toMatchObject({ status: 500, code: 'internal_error', type: 'server_error' })
        expect(error.message).toContain(error.requestID as string)
        expect(error.message).not.toContain('secret')
      } finally {
        await broken.close()
      }
    })

    test('a request id of the client is echoed', async () => {
      const error = await rejection<InstanceType<typeof Sdk.APIError>>(
        create(requestOf('Hello', { n: 0 }), { defaultHeaders: { 'x-request-id': 'my-id' } }),
      )
      expect(error.requestID).toBe('my-id')
    })

    test('a refused stream has an error status', async () => {
      for (const model of GENERAL) {
        const request = streamed('Hello\n@sandbox status=429', { model })
        expect(await rejection(client().chat.completions.create(request))).toBeInstanceOf(Sdk.RateLimitError)
      }
    })

    test('a missing server is an APIConnectionError', async () => {
      const gone = await openPort()
      await gone.close()
      expect(await rejection(create(requestOf('Hello'), { baseURL: gone.url }))).toBeInstanceOf(Sdk.APIConnectionError)
    })
  })

  describe(`${name}: retries`, () => {
    const patient = { maxRetries: 2 }
    const counted = async (work: Promise<unknown>) => {
      await rejection(work)
      return served.requests.map(({ headers }) => Number(headers.get('x-stainless-retry-count')))
    }

    test('are sent for 429 and 503, after the vendor’s retry-after', async () => {
      for (const status of [429, 503]) {
        served.requests.length = 0
        const request = requestOf(`Hello\n@sandbox status=${status} retry_after=0`)
        expect(await counted(create(request, patient))).toEqual([0, 1, 2])
      }
    })

    test('succeed once the vendor does', async () => {
      served.vendor.answer(failure(429, {}, { 'retry-after': '0' }), whole(completion('At last')))
      const { choices } = await create(requestOf('Hello', { model: 'v/m' }), patient)
      expect(choices[0]?.message.content).toBe('At last')
      expect(served.requests).toHaveLength(2)
    })

    test('are sent for 502 and 504, after the client’s own delay', async () => {
      for (const status of [500, 504]) {
        served.requests.length = 0
        const request = requestOf(`Hello\n@sandbox status=${status}`)
        expect(await counted(create(request, { maxRetries: 1 }))).toEqual([0, 1])
      }
    })

    test('are not sent where they would not help', async () => {
      const hopeless: (() => Promise<unknown>)[] = [
        () => create(requestOf('Hello', { n: 0 }), patient),
        () => create(requestOf('Hello'), { ...patient, apiKey: 'sk-wrong' }),
        () => create(requestOf('Hello', { model: 'sandbox/none' }), patient),
        () => create(requestOf('Hello', { model: 'sandbox/retired' }), patient),
        () => create(requestOf('a'.repeat(MAX_BODY)), patient),
      ]
      for (const ask of hopeless) {
        served.requests.length = 0
        const error = await rejection<InstanceType<typeof Sdk.APIError>>(ask())
        expect([error.status, error.headers?.get('x-should-retry')]).toEqual([error.status, 'false'])
        expect(served.requests).toHaveLength(1)
      }
    })

    test('are not sent for a 502 with x-should-retry: false', async () => {
      served.vendor.answer(failure(401))
      const asked = create(requestOf('Hello', { model: 'v/m' }), patient)
      const error = await rejection<InstanceType<typeof Sdk.APIError>>(asked)
      expect(error).toMatchObject({ status: 502, code: 'upstream_auth' })
      expect(error.headers?.get('x-should-retry')).toBe('false')
      expect(served.requests).toHaveLength(1)
    })
  })

  describe(`${name}: a stream that breaks`, () => {
    // A break reported by the gateway behind is an upstream failure here.
    const faults: [string, string, Record<string, string>][] = [
      [
        'an error of the vendor',
        'error_after=4',
        { 'sandbox/general': 'bad_upstream_response', 'far/general': 'bad_upstream_response' },
      ],
      [
        'a connection cut by the vendor',
        'cut_after=4',
        { 'sandbox/general': 'upstream_cut', 'far/general': 'bad_upstream_response' },
      ],
    ]
    for (const [what, line, codes] of faults) {
      const code = codes['sandbox/general'] as string
      for (const [model, code] of Object.entries(codes)) {
        test(`by ${what} throws after the chunks before it, at ${model}`, async () => {
          const { fetch, seen } = watchedFetch()
          const request = streamed(`Hello\n@sandbox ${line}`, { model })
          const answer = await client({ fetch }).chat.completions.create(request)
          const list: OpenAI.ChatCompletionChunk[] = []
          const error = await rejection<InstanceType<typeof Sdk.APIError>>(
            (async () => {
              for await (const one of answer) list.push(one)
            })(),
          )
          expect(error).toBeInstanceOf(Sdk.APIError)
          expect(error).toMatchObject({ code, type: 'upstream_error' })
          expect(error.message.length).toBeGreaterThan(20)
          expect(textOf(list).length).toBeGreaterThan(0)
          expect(list.every((one) => !one.choices[0]?.finish_reason)).toBe(true)
          expect(seen()).not.toContain('[DONE]')
        })
      }

      test(`by ${what} rejects .stream()`, async () => {
        const helper = client().chat.completions.stream(requestOf(`Hello\n@sandbox ${line}`))
        expect(await rejection(helper.finalChatCompletion())).toMatchObject({ code })
      })

      test(`by ${what}: the same response, whole, is a 502`, async () => {
        const error = await rejection(create(requestOf(`Hello\n@sandbox ${line}`)))
        expect(error).toBeInstanceOf(Sdk.InternalServerError)
        expect(error).toMatchObject({ status: 502, code })
      })
    }

    test('by the shutdown of the gateway throws too', async () => {
      const port = await openPort()
      const { fetch, until } = watchedFetch()
      const ends = client({ baseURL: port.url, apiKey: port.token, fetch })
      const answer = await ends.chat.completions.create(streamed('Hello\n@sandbox hang_after=4'))
      const error = rejection(all(answer))
      await until('"content":"')
      await port.close()
      expect(await error).toMatchObject({ code: 'shutting_down' })
    })
  })

  describe(`${name}: vendor behaviour that would break it`, () => {
    /** The text that a plain HTTP client reads, and the completion that the helper assembles from the same stream. */
    async function through(items: Parameters<typeof stream>[0], options: Parameters<typeof stream>[1] = {}) {
      served.vendor.answer(stream(items, options))
      const { fetch, seen } = watchedFetch()
      const request = { ...requestOf('Hello', { model: 'v/m' }), tools: [WEATHER] }
      const final = await client({ fetch }).chat.completions.stream(request).finalChatCompletion()
      return { final, text: seen() }
    }
    const call = (fields: object) => chunk({ tool_calls: [{ index: 0, ...fields }] })

    test('a tool call with a repeated or empty id keeps the first', async () => {
      for (const again of [
        { id: 'call_1', type: 'function', name: 'get_weather' },
        { id: '', type: null, name: '' },
        { id: 'null', type: null, name: null },
      ]) {
        const { id, type, name: said } = again
        const { final } = await through([
          call({ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } }),
          call({ id, type, function: { name: said, arguments: '{"city":"Rome",' } }),
          call({ id, type, function: { name: said, arguments: '"days":1}' } }),
          chunk({}, 'tool_calls'),
        ])
        expect(final.choices[0]?.message.tool_calls).toMatchObject([
          {
            id: 'call_1',
            type: 'function',
            function: { name: 'get_weather', parsed_arguments: { city: 'Rome', days: 1 } },
          },
        ])
      }
    })

    test('a call that ends with finish_reason stop ends with tool_calls', async () => {
      const { final } = await through([
        call({
          id: 'call_1',
          type: 'function',
          function: { name: 'get_weather', arguments: '{"city":"Rome","days":1}' },
        }),
        chunk({}, 'stop'),
      ])
      expect(final.choices[0]?.finish_reason).toBe('tool_calls')
    })

    test('a stream without a finish_reason but with [DONE] gets one: no "missing finish_reason for choice 0"', async () => {
      const { final } = await through([chunk({ role: 'assistant', content: 'Hi' })])
      expect(final.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Hi' } })
    })

    test('a stream without [DONE] gets one', async () => {
      const { final, text } = await through(chunks('Hi'), { done: false })
      expect(final.choices[0]?.message.content).toBe('Hi')
      expect(text).toEndWith('data: [DONE]\n\n')
    })

    test('an unrequested usage chunk, event ids, retry fields and comments in data are removed', async () => {
      const { final, text } = await through([
        'id: 1\nretry: 10\n: ping\n\n',
        chunk({ role: 'assistant', content: '' }),
        'data:\n\n',
        ': glued\n',
        chunk({ content: 'Hi' }),
        chunk({}, 'stop'),
        usageChunk(),
      ])
      expect(final.choices[0]?.message.content).toBe('Hi')
      expect(text.split('\n\n').filter((block) => block && !/^data: (\{.*\}|\[DONE\])$/.test(block))).toEqual([])
      expect(text).not.toContain('"usage"')
      expect(text).not.toContain('"choices":[]')
    })

    test('chunks with an empty id and model get the gateway’s', async () => {
      const { final, text } = await through(chunks('Hi').map((one) => ({ ...one, id: '', model: '', created: 0 })))
      expect(final).toMatchObject({ model: 'v/m', id: expect.stringMatching(/^chatcmpl-/) })
      expect(text).not.toMatch(/"(id|model)":""/)
    })

    test('a response without role, object or fingerprint is a completion', async () => {
      served.vendor.answer(whole({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] }))
      const answer = await create(requestOf('Hello', { model: 'v/m' }))
      expect(answer).toMatchObject({ object: 'chat.completion', model: 'v/m' })
      expect(answer.choices[0]).toMatchObject({ index: 0, message: { role: 'assistant', content: 'Hi' } })
    })

    test('a whole response has its message, and the same as delta', async () => {
      const answer = await create(requestOf('Hello', { model: 'v/m' }))
      expect(answer.choices[0]).toMatchObject({ message: { content: 'Hello' }, delta: { content: 'Hello' } })
    })

    test('a flat error and an HTML page become nested errors', async () => {
      served.vendor.answer(
        whole({ code: 'bad', message: 'Never heard of it' }, { status: 400 }),
        whole('<html>no</html>', { status: 400, headers: { 'content-type': 'text/html' } }),
      )
      const first = await rejection(create(requestOf('Hello', { model: 'v/m' })))
      expect(first).toMatchObject({ status: 400, code: 'upstream_invalid_request', message: '400 Never heard of it' })
      const second = await rejection(create(requestOf('Hello', { model: 'v/m' })))
      expect(second).toMatchObject({ status: 400, code: 'upstream_invalid_request' })
      expect(second.message).not.toContain('(no body)')
    })
  })

  test(`${name}: a keep-alive comment, before the first chunk and between chunks, is not an event for the client`, async () => {
    const port = await serve({ server: { keep_alive_seconds: 0.02 } })
    try {
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      port.vendor.answer(
        stream([
          first.promise,
          chunk({ role: 'assistant', content: 'a' }),
          second.promise,
          chunk({ content: 'b' }, 'stop'),
        ]),
      )
      const { fetch, seen, until } = watchedFetch()
      const helper = client({ baseURL: port.url, apiKey: port.token, fetch }).chat.completions.stream(
        requestOf('Hello', { model: 'v/m' }),
      )
      await until(': keep-alive\n\n')
      expect(seen()).not.toContain('data:')
      first.resolve()
      await until('"content":"a"')
      await until(': keep-alive\n\n', seen().length)
      second.resolve()
      expect(await helper.finalContent()).toBe('ab')
    } finally {
      await port.close()
    }
  })
}

test('retry-after is honoured in whole seconds by both', async () => {
  const asked = Object.values(MAJORS).map(async (Sdk) => {
    const start = performance.now()
    const client = new Sdk({ baseURL: served.url, apiKey: served.token, maxRetries: 1 })
    const request = requestOf('Hello\n@sandbox status=429 retry_after=1')
    const error = await rejection<InstanceType<typeof Sdk.APIError>>(client.chat.completions.create(request))
    expect(error.headers?.get('retry-after')).toBe('1')
    return performance.now() - start
  })
  // Its own first delay would be half a second at most.
  for (const passed of await Promise.all(asked)) expect(passed).toBeGreaterThanOrEqual(990)
})
