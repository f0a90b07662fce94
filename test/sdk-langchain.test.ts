/** `@langchain/openai` as a client of the gateway. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { AIMessageChunk, HumanMessage, SystemMessage, ToolMessage, type UsageMetadata } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { GENERAL, type Served, serve, VISION, watchUnhandled } from './kit/served.ts'
import { chunk, chunks, failure, hang, stream, whole } from './kit/vendor.ts'

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

type Options = NonNullable<ConstructorParameters<typeof ChatOpenAI>[0]>
const chat = (model: string, options: Options = {}) =>
  new ChatOpenAI({
    model,
    apiKey: served.token,
    configuration: { baseURL: served.url },
    maxRetries: 0,
    ...options,
  })

const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const PERSON = {
  title: 'person',
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0, maximum: 130 } },
  required: ['name', 'age'],
  additionalProperties: false,
}
const isPerson = ({ name, age, ...more }: Record<string, unknown>) =>
  typeof name === 'string' && Number.isInteger(age) && Object.keys(more).length === 0

async function together(pieces: AsyncIterable<AIMessageChunk>): Promise<{ all: AIMessageChunk; count: number }> {
  let all: AIMessageChunk | undefined
  let count = 0
  for await (const piece of pieces) {
    all = all ? all.concat(piece) : piece
    count++
  }
  return { all: all ?? new AIMessageChunk(''), count }
}
/** Its own type lacks it under this project's compiler options. */
const usageOf = ({ usage_metadata }: AIMessageChunk) => usage_metadata as UsageMetadata | undefined
async function rejection(promise: Promise<unknown>): Promise<Record<string, unknown> & Error> {
  try {
    await promise
  } catch (error) {
    return error as Record<string, unknown> & Error
  }
  throw new Error('nothing was refused')
}

for (const id of GENERAL) {
  describe(`langchain: ${id}`, () => {
    test('invoke has content, usage_metadata and the finish reason: with delta alone the content would be ""', async () => {
      const answer = await chat(id).invoke([new SystemMessage('Be brief.'), new HumanMessage('Hello there')])
      expect(answer.content).toContain('simulated')
      const { input_tokens, output_tokens, total_tokens } = usageOf(answer) as UsageMetadata
      expect([input_tokens > 0, output_tokens > 0, total_tokens]).toEqual([true, true, input_tokens + output_tokens])
      expect(answer.response_metadata).toMatchObject({ finish_reason: 'stop', model_name: id })
    })

    test('stream has the same; the usage that it always requests is there once', async () => {
      const whole = await chat(id).invoke('Hello there')
      const { all, count } = await together(await chat(id).stream('Hello there'))
      expect(all.content).toBe(whole.content as string)
      expect(count).toBeGreaterThan(5)
      const { input_tokens, output_tokens } = usageOf(whole) as UsageMetadata
      expect(usageOf(all)).toMatchObject({ input_tokens, output_tokens })
      expect(all.response_metadata.finish_reason).toBe('stop')
    })

    test('bindTools calls the tool, streamed too, and continues with its result', async () => {
      const bound = chat(id).bindTools([WEATHER])
      const question = new HumanMessage('What is the weather in Paris?')
      const first = await bound.invoke([question])
      expect(first.tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Paris' } }])
      const { all } = await together(await bound.stream([question]))
      expect(all.tool_calls).toMatchObject([
        { name: 'get_weather', args: { city: 'Paris' }, id: expect.stringMatching(/^call_/) },
      ])
      expect(all.response_metadata.finish_reason).toBe('tool_calls')
      const result = new ToolMessage({ content: 'Sunny, 21 degrees', tool_call_id: first.tool_calls?.[0]?.id ?? '' })
      const second = await bound.invoke([question, first, result])
      expect(second.content).toContain('Sunny, 21 degrees')
    })

    for (const method of ['jsonSchema', 'functionCalling', 'jsonMode'] as const) {
      test(`withStructuredOutput by ${method} returns an object`, async () => {
        const answer = await chat(id).withStructuredOutput(PERSON, { method, name: 'person' }).invoke('Describe Ann')
        expect(answer).toBeObject()
        if (method !== 'jsonMode') expect(isPerson(answer)).toBe(true) // that mode knows no schema
      })
    }
  })
}

for (const id of VISION) {
  test(`langchain: ${id} has reasoning_content, whole and streamed`, async () => {
    const thinking = chat(id, { modelKwargs: { thinking_enabled: true } })
    const answer = await thinking.invoke('Why is the sky blue?')
    expect(String(answer.additional_kwargs.reasoning_content).length).toBeGreaterThan(20)
    const { all } = await together(await thinking.stream('Why is the sky blue?'))
    expect(all.additional_kwargs.reasoning_content).toBe(answer.additional_kwargs.reasoning_content as string)
    expect(all.content).toBe(answer.content as string)
  })
}

describe('langchain: errors', () => {
  const named: [number, string, string, () => Promise<unknown>][] = [
    [
      401,
      'invalid_api_key',
      'MODEL_AUTHENTICATION',
      () => chat('sandbox/general', { apiKey: 'sk-wrong' }).invoke('Hello'),
    ],
    [404, 'model_not_found', 'MODEL_NOT_FOUND', () => chat('sandbox/none').invoke('Hello')],
    [429, 'rate_limit_exceeded', 'MODEL_RATE_LIMIT', () => chat('sandbox/general').invoke('@sandbox status=429')],
  ]
  for (const [status, code, lc_error_code, ask] of named) {
    test(`${status} is ${lc_error_code}`, async () => {
      expect(await rejection(ask())).toMatchObject({ status, code, lc_error_code })
    })
  }

  test('403 and 410 have their status, code and message', async () => {
    const apiKey = await served.tokenFor(['sandbox/compact'])
    expect(await rejection(chat('sandbox/general', { apiKey }).invoke('Hello'))).toMatchObject({ status: 403 })
    const retired = await rejection(chat('sandbox/retired').invoke('Hello'))
    expect(retired).toMatchObject({ status: 410, code: 'model_retired' })
    expect(retired.message).toContain('sandbox/general')
  })

  test('an input that is too long, in any vendor’s wording, is its ContextOverflowError', async () => {
    for (const message of ['This model’s maximum context length is 8 tokens.', 'prompt is too long: 9 > 8']) {
      served.vendor.answer(failure(400, { message }))
      expect(await rejection(chat('v/m').invoke('Hello'))).toMatchObject({ name: 'ContextOverflowError' })
    }
  })

  test('a stream that breaks throws its code', async () => {
    for (const [line, code] of [
      ['error_after=4', 'bad_upstream_response'],
      ['cut_after=4', 'upstream_cut'],
    ]) {
      const pieces = await chat('sandbox/general').stream(`Hello\n@sandbox ${line}`)
      expect(await rejection(together(pieces))).toMatchObject({ code })
    }
  })
})

describe('langchain: aborting', () => {
  test('in the middle of a stream aborts the upstream request', async () => {
    served.vendor.answer(stream(chunks('a', 'b'), { hangAfter: 2 }))
    const coming = served.vendor.request(served.vendor.requests.length + 1)
    const leaving = new AbortController()
    const pieces = await chat('v/m').stream('Hello', { signal: leaving.signal })
    const error = await rejection(
      (async () => {
        for await (const { content } of pieces) if (content) leaving.abort()
      })(),
    )
    expect(error.message).toMatch(/abort/i)
    await (await coming).aborted
  })

  test('before the first byte aborts the upstream request', async () => {
    served.vendor.answer(hang())
    const coming = served.vendor.request(served.vendor.requests.length + 1)
    const leaving = new AbortController()
    const error = rejection(chat('v/m').invoke('Hello', { signal: leaving.signal }))
    const request = await coming
    leaving.abort()
    expect((await error).message).toMatch(/abort/i)
    await request.aborted
  })
})

describe('langchain: vendor behaviour that would break it', () => {
  test('a response with delta in place of message still has its content', async () => {
    served.vendor.answer(whole({ id: 'x', choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] }))
    expect((await chat('v/m').invoke('Hello')).content).toBe('Hi')
  })

  test('placeholder ids in later tool deltas do not corrupt the merged id', async () => {
    const call = (fields: object) => chunk({ tool_calls: [{ index: 0, ...fields }] })
    served.vendor.answer(
      stream([
        call({ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } }),
        call({ id: 'null', type: 'function', function: { name: 'null', arguments: '{"city":' } }),
        call({ id: '', type: null, function: { name: '', arguments: '"Rome"}' } }),
        chunk({}, 'tool_calls'),
      ]),
    )
    const { all } = await together(await chat('v/m').bindTools([WEATHER]).stream('Hello'))
    expect(all.tool_calls).toMatchObject([{ id: 'call_1', name: 'get_weather', args: { city: 'Rome' } }])
  })

  test('usage that the vendor did not report is estimated', async () => {
    served.vendor.answer(stream([chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop')]))
    const { all } = await together(await chat('v/m').stream('Hello'))
    expect(usageOf(all)?.output_tokens).toBe(1)
  })
})

test('langchain: no rejection is left unhandled', async () => {
  Bun.gc(true)
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled.seen).toEqual([])
})
