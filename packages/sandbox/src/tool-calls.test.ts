import { describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ChatChunk, ChatCompletion, ChatRequest } from '../../../src/providers/provider.ts'
import { createLazySandbox } from '../../../src/providers/sandbox.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { manualClock } from '../../../test/kit/clock.ts'
import { countTokens, splitTokens } from './tokens.ts'

const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Get the forecast for a city.',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        unit: { enum: ['celsius', 'fahrenheit'] },
        days: { type: 'integer', minimum: 1, maximum: 7 },
      },
      required: ['city', 'unit'],
      additionalProperties: false,
    },
  },
}
const mail = {
  type: 'function' as const,
  function: {
    name: 'sendMail',
    description: 'Deliver a letter to a recipient.',
    parameters: { type: 'object', properties: { to: { type: 'string', format: 'email' } }, required: ['to'] },
  },
}
const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })

const sandbox = (pages = [] as { name: string; text: string }[]) => {
  const { chat } = createLazySandbox({ id: 'sandbox', clock: manualClock(), manual: async () => pages })
  if (!chat) throw new Error('no chat')
  return chat
}
const chat = sandbox()

type Rest = Partial<ChatRequest>
const callOf = (text: string, rest: Rest = {}) => ({
  model: 'general',
  request_id: 'req_1',
  request: { model: 'sandbox/general', messages: [{ role: 'user' as const, content: text }], ...rest },
})
const never = () => new AbortController().signal
const whole = (text: string, rest: Rest = {}) => chat.complete(callOf(text, rest), never())

async function stream(text: string, rest: Rest = {}): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = []
  for await (const batch of chat.chunks(callOf(text, rest), never())) chunks.push(...batch)
  return chunks
}

const contentOf = (completion: ChatCompletion) => completion.choices[0]?.message.content ?? ''
const finishOf = (completion: ChatCompletion) => completion.choices[0]?.finish_reason
const callsOf = (completion: ChatCompletion) => completion.choices[0]?.message.tool_calls ?? []
const outputOf = (completion: ChatCompletion) => completion.usage?.completion_tokens

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => new Error('it was answered'),
    (reason) => reason,
  )
  if (error instanceof GatewayError) return error
  throw error
}

describe('tools', () => {
  const tools = [weather, mail]
  const namesOf = async (text: string, rest: Rest = {}) =>
    callsOf(await whole(text, { tools, ...rest })).map((call) => call.function.name)

  test('a call has an id, arguments that fit the schema, null content and the right finish_reason', async () => {
    const completion = await whole('What is the weather in Paris for 3 days?', { tools })
    const [call] = callsOf(completion)
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } })
    expect(call?.id).toMatch(/^call_\w{24}$/)
    const given = JSON.parse(call?.function.arguments ?? '')
    expect(ajv.validate(weather.function.parameters, given)).toBe(true)
    expect(given).toMatchObject({ city: 'Paris', days: 3 })
    expect([finishOf(completion), completion.choices[0]?.message.content]).toEqual(['tool_calls', null])
    expect(outputOf(completion)).toBe(1 + countTokens(call?.function.arguments ?? ''))
  })

  test.each([
    ['What is the weather like?', ['get_weather']],
    ['Please run get_weather', ['get_weather']],
    ['Give me the forecast of the city', ['get_weather']],
    ['send mail to ann', ['sendMail']],
    ['SENDMAIL and then get_weather', ['sendMail', 'get_weather']],
    ['Hello!', []],
    ['Tell me about rivers', []],
  ])('auto: %j calls %j', async (text, names) => {
    expect(await namesOf(text)).toEqual(names)
  })

  test('tool_choice requires a call, names a tool, forbids calls and limits the tools', async () => {
    expect(await namesOf('Hello!', { tool_choice: 'required' })).toEqual(['get_weather'])
    expect(await namesOf('send mail', { tool_choice: 'required' })).toEqual(['sendMail'])
    const named = { type: 'function' as const, function: { name: 'sendMail' } }
    expect(await namesOf('the weather', { tool_choice: named })).toEqual(['sendMail'])
    expect(await namesOf('the weather', { tool_choice: 'none' })).toEqual([])
    const allowed = (mode: 'auto' | 'required') => ({
      tool_choice: {
        type: 'allowed_tools' as const,
        allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'sendMail' } }] },
      },
    })
    expect(await namesOf('the weather', allowed('auto'))).toEqual([])
    expect(await namesOf('the weather', allowed('required'))).toEqual(['sendMail'])
  })

  test('parallel_tool_calls: false allows one call only', async () => {
    expect(await namesOf('weather, then send mail', { parallel_tool_calls: false })).toEqual(['get_weather'])
    expect(await namesOf('weather, then send mail', { parallel_tool_calls: true })).toHaveLength(2)
  })

  test.each([
    [{ tool_choice: { type: 'function' as const, function: { name: 'absent' } } }, 'tool_choice'],
    [{ tools: [], tool_choice: 'required' as const }, 'tool_choice'],
    [
      { tool_choice: { type: 'allowed_tools' as const, allowed_tools: { mode: 'required' as const, tools: [] } } },
      'tool_choice',
    ],
    [
      {
        tools: [
          {
            type: 'function' as const,
            function: { name: 'f', parameters: { properties: { a: false }, required: ['a'] } },
          },
        ],
        tool_choice: 'required' as const,
      },
      'tools[0].function.parameters',
    ],
  ])('%j is rejected', async (rest, param) => {
    const error = await refusal(whole('x', { tools, ...rest }))
    expect([error.code, error.detail.param]).toEqual(['upstream_invalid_request', param])
  })

  test('a stream has the id and name of a call first, then its arguments in pieces, without the id again', async () => {
    const chunks = await stream('weather, then send mail', { tools })
    const deltas = chunks.flatMap(({ choices: [choice] }) => choice?.delta.tool_calls ?? [])
    const heads = deltas.filter((call) => call.id !== undefined)
    expect(heads.map(({ index, type, function: { name, arguments: text } }) => [index, type, name, text])).toEqual([
      [0, 'function', 'get_weather', ''],
      [1, 'function', 'sendMail', ''],
    ])
    for (const call of deltas.filter(({ id }) => id === undefined)) {
      expect(Object.keys(call)).toEqual(['index', 'function'])
      expect(Object.keys(call.function)).toEqual(['arguments'])
    }
    const same = callsOf(await whole('weather, then send mail', { tools }))
    const joined = [0, 1].map((at) => deltas.flatMap((call) => (call.index === at ? [call.function.arguments] : [])))
    expect(joined.map((pieces) => pieces.join(''))).toEqual(same.map((call) => call.function.arguments))
    expect(joined.flat().filter(Boolean)).toEqual(joined.flatMap((pieces) => splitTokens(pieces.join(''))))
    expect(chunks.at(-2)?.choices).toMatchObject([{ delta: {}, finish_reason: 'tool_calls' }])
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(deltas.length)
  })

  test('a tool result is answered by text that quotes the result', async () => {
    const messages: ChatRequest['messages'] = [
      { role: 'user', content: 'the weather in Paris' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'Rain, 12 degrees' },
    ]
    const completion = await whole('', { messages, tools })
    expect(contentOf(completion)).toContain('The tool "get_weather" answered: Rain, 12 degrees')
    expect(finishOf(completion)).toBe('stop')
    const again = await whole('', {
      messages: [...messages, { role: 'user', content: 'and the weather in Rome' }],
      tools,
    })
    expect(callsOf(again)).toHaveLength(1)
  })

  test('the older functions are answered with tool_calls', async () => {
    const functions = [weather.function]
    expect(callsOf(await whole('the weather', { functions }))).toHaveLength(1)
    expect(callsOf(await whole('the weather', { functions, function_call: 'none' }))).toHaveLength(0)
    expect(callsOf(await whole('hello', { functions, function_call: { name: 'get_weather' } }))).toHaveLength(1)
  })
})
