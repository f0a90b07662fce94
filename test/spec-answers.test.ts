/**
 * Tables 2.1 and 2.4 of the specification, row by row, in real answers: held to the tables as written, and to the
 * components of the OpenAPI document, which thereby is held to them too.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020'
import { SANDBOX_MODELS } from '../packages/sandbox/src/models.ts'
import type { ChatChunk, ChatCompletion } from '../src/protocols/shared/canonical.ts'
import type { Model, ModelList } from '../src/spec/model.ts'
import type { Usage } from '../src/spec/usage.ts'
import { type Json, readDocument } from './kit/document.ts'
import { startGateway } from './kit/gateway.ts'
import { SPEC_COMPLETION, SPEC_MODEL, SPEC_MODEL_LIST, type SpecSchema } from './kit/spec-schemas.ts'
import { chunk, completion, startVendor, stream, usageChunk, whole } from './kit/vendor.ts'

const provider = (url: string) => ({ kind: 'chatcompat' as const, base_url: url })
const vendor = startVendor()
const gateway = await startGateway({
  providers: { v: provider(vendor.url) },
  models: {
    'v/m': {},
    'v/deep/er': {},
    alone: { targets: [{ provider: 'v', model: 'm' }] },
    'v/none': { families: ['3d-generation'] },
    'v/dated': { created: 1_600_000_000, deprecated_at: 1_700_000_000, retired_at: 4_000_000_000, replaced_by: 'v/m' },
    'v/gone': { retired_at: 1_700_000_000 },
  },
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})
const { document, is } = await readDocument(gateway)

const ajv = new Ajv2020({ strict: false, allErrors: true })
/** `true`, or why a value is not as the table says. */
const fits = (table: SpecSchema, value: unknown) => ajv.validate(table, value) || ajv.errorsText()

/** A component of the document, as its readers see it. */
function component(name: string): { properties: Record<string, Json>; required: string[] } {
  const schema = document.components.schemas[name] as { properties?: Record<string, Json>; required?: string[] }
  return { properties: schema?.properties ?? {}, required: schema?.required ?? [] }
}

describe('2.1, the model', () => {
  const listed = async () => (await (await gateway.call('/v1/models')).json()) as ModelList
  const retrieved = async (id: string) => (await (await gateway.call(`/v1/models/${id}`)).json()) as Model

  test('the list envelope: success, object and data, and nothing else', async () => {
    const list = await listed()
    expect(fits(SPEC_MODEL_LIST, list)).toBe(true)
    expect(is('ModelList', list)).toBe(true)
    expect(Object.keys(list).sort()).toEqual(['data', 'object', 'success'])
    expect([list.success, list.object]).toEqual([true, 'list'])
    expect(list.data.length).toBe(6 + Object.keys(SANDBOX_MODELS).length)
  })

  test('each listed model equals its retrieval, without an envelope', async () => {
    for (const model of (await listed()).data) {
      const alone = await retrieved(model.id)
      expect(alone).toEqual(model)
      expect(fits(SPEC_MODEL, alone)).toBe(true)
      expect(is('Model', alone)).toBe(true)
    }
  })

  test('id: the identifier that request payloads use', async () => {
    vendor.otherwise(whole(completion('Hi')))
    for (const { id, status, supported_endpoint_types } of (await listed()).data) {
      if (status === 'retired' || !supported_endpoint_types.includes('chatcompat')) continue
      const answer = await gateway.chat({ model: id, messages: [{ role: 'user', content: '@sandbox tokens=1' }] })
      expect((await answer.json()).model).toBe(id)
    }
  })

  test('object: always `model`', async () => {
    expect(new Set((await listed()).data.map(({ object }) => object))).toEqual(new Set(['model'] as const))
  })

  test('created: a Unix timestamp, as configured or of entering the catalogue', async () => {
    expect((await retrieved('v/dated')).created).toBe(1_600_000_000)
    expect((await retrieved('v/m')).created).toBe(Math.floor(gateway.clock.now() / 1000))
  })

  test.each([
    ['v/m', 'v'],
    ['v/deep/er', 'v'],
    ['alone', 'alone'],
  ])('owned_by: of %s it is %s', async (id, owner) => {
    expect((await retrieved(id)).owned_by).toBe(owner)
  })

  test('supported_endpoint_types: of the families; empty when no type could be determined', async () => {
    expect((await retrieved('v/m')).supported_endpoint_types).toEqual([
      'chatcompat',
      'chatcompat-response',
      'messages-compat',
      'contentgen-compat',
    ])
    expect((await retrieved('v/none')).supported_endpoint_types).toEqual([])
  })

  test.each([
    ['v/m', 'active'],
    ['v/dated', 'deprecated'],
    ['v/gone', 'retired'],
  ])('status: %s is %s', async (id, status) => {
    expect(String((await retrieved(id)).status)).toBe(status)
  })

  test('deprecated_at, retired_at, replaced_by: present if known, omitted if empty', async () => {
    expect(await retrieved('v/dated')).toMatchObject({
      deprecated_at: 1_700_000_000,
      retired_at: 4_000_000_000,
      replaced_by: 'v/m',
    })
    const always = ['created', 'id', 'object', 'owned_by', 'status', 'supported_endpoint_types']
    expect(Object.keys(await retrieved('v/m')).sort()).toEqual(always)
    expect(Object.keys(await retrieved('v/gone')).sort()).toEqual([...always, 'retired_at'].sort())
  })
})

/** An answer of a model and the same as a stream, as clients get them. */
async function bothOf(body: Json): Promise<{ answer: ChatCompletion; chunks: ChatChunk[] }> {
  const answer = (await (await gateway.chat(body)).json()) as ChatCompletion
  const streamed = await gateway.chat({ ...body, stream: true, stream_options: { include_usage: true } })
  const events = (await streamed.text()).split('\n\n').filter(Boolean)
  expect(events.pop()).toBe('data: [DONE]')
  return { answer, chunks: events.map((event) => JSON.parse(event.replace('data: ', ''))) }
}

/** As the tables say, and as the document says. */
function expectTrue({ answer, chunks }: { answer: ChatCompletion; chunks: ChatChunk[] }) {
  expect(fits(SPEC_COMPLETION, answer)).toBe(true)
  expect(is('ChatCompletion', answer)).toBe(true)
  for (const one of chunks) {
    expect(fits(SPEC_COMPLETION, one)).toBe(true)
    expect(is('ChatChunk', one)).toBe(true)
  }
}

const saying = (content: string, more: Json = {}): Json => ({ messages: [{ role: 'user', content }], ...more })
const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a place.',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
}
const SCENES: Record<string, Json> = {
  'a plain answer': saying('What is Gatehouse?'),
  'an empty answer': saying('@sandbox tokens=0'),
  'two choices': saying('Hello', { n: 2 }),
  'an answer cut by max_tokens': saying('Hello', { max_tokens: 3 }),
  'an answer filtered': saying('@sandbox finish=content_filter'),
  'log probabilities': saying('@sandbox tokens=3', { logprobs: true, top_logprobs: 2 }),
  'a tool call': saying('The weather in Paris?', { tools: [TOOL], tool_choice: 'required' }),
  'JSON by a schema': saying('A place.', {
    response_format: { type: 'json_schema', json_schema: { name: 'place', schema: TOOL.function.parameters } },
  }),
  'reasoning and sources': saying('Why?', { thinking_enabled: true, web_search: { enable: true } }),
  'an answer without usage from the vendor': saying('@sandbox tokens=3 usage=none'),
  'a long history': {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'The weather?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'Rain.' },
    ],
  },
}

describe.each(['sandbox/general', 'sandbox/compact', 'sandbox/vision'])('2.4, responses of %s', (model) => {
  test.each(Object.keys(SCENES))('%s matches the tables and the document, complete and in chunks', async (scene) => {
    const both = await bothOf({ model, ...SCENES[scene] })
    expectTrue(both)
    const { answer, chunks } = both
    expect(chunks.length).toBeGreaterThan(2)

    // id, object, created, model: of the answer, and the same on every chunk.
    const created = Math.floor(gateway.clock.now() / 1000)
    expect(answer).toMatchObject({ object: 'chat.completion', created, model })
    for (const one of chunks) {
      expect(one).toMatchObject({ id: chunks[0]?.id, object: 'chat.completion.chunk', created, model })
    }
    expect(answer.id).toMatch(/^chatcmpl-\w{24}$/)
    expect(chunks[0]?.id).not.toBe(answer.id)

    // choices: those of the answer are what the chunks of one index add up to, and each has its end.
    for (const choice of answer.choices) {
      const parts = chunks.flatMap(({ choices }) => choices.filter(({ index }) => index === choice.index))
      const joined = (field: 'content' | 'reasoning_content') => parts.map(({ delta }) => delta[field] ?? '').join('')
      expect(joined('content')).toBe(choice.message.content ?? '')
      expect(joined('reasoning_content')).toBe(choice.message.reasoning_content ?? '')
      expect(parts.map(({ finish_reason }) => finish_reason).filter(Boolean)).toEqual([choice.finish_reason])
      expect(parts.at(-1)?.finish_reason).toBe(choice.finish_reason)
      expect(parts.map(({ delta }) => delta.role).filter(Boolean)).toEqual(['assistant'])
    }

    // delta of a whole choice: the same as its message.
    for (const { message, delta } of answer.choices) {
      expect(delta?.role).toBe('assistant')
      expect(delta?.content).toBe(message.content ?? undefined)
      expect(delta?.tool_calls?.map(({ index: _, ...call }) => call)).toEqual(message.tool_calls)
    }

    // usage: in the answer and in one last chunk, the same.
    expect(chunks.map(({ usage, choices }) => [Boolean(usage), choices.length === 0])).toEqual(
      chunks.map((_, index) => [index === chunks.length - 1, index === chunks.length - 1]),
    )
    expect(chunks.at(-1)?.usage).toEqual(answer.usage)
    expectSums(answer.usage)
  })
})

/** The sums of 2.4: input and output under both names, the total, and the parts by kind. */
function expectSums(usage: Usage | null | undefined) {
  if (!usage) throw new Error('no usage')
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens)
  expect([usage.input_tokens, usage.output_tokens]).toEqual([usage.prompt_tokens, usage.completion_tokens])
  expect(input.text_tokens + input.audio_tokens + input.image_tokens).toBe(usage.prompt_tokens)
  expect(output.text_tokens + output.audio_tokens + output.reasoning_tokens).toBe(usage.completion_tokens)
}

test('the tables and the document reject a missing field and a field of another type', async () => {
  const { answer } = await bothOf({ model: 'sandbox/general', ...saying('@sandbox tokens=2') })
  const spoilt: [(string | number)[], unknown][] = [
    [['id'], undefined],
    [['created'], 1.5],
    [['choices'], undefined],
    [['choices', 0, 'index'], '0'],
    [['choices', 0, 'finish_reason'], 'tired'],
    [['choices', 0, 'delta', 'role'], 'robot'],
    [['choices', 0, 'delta', 'content'], 1],
    [['usage', 'input_tokens'], undefined],
    [['usage', 'prompt_tokens_details', 'audio_tokens'], undefined],
  ]
  for (const [path, value] of spoilt) {
    const copy = structuredClone(answer)
    const last = path.at(-1) ?? ''
    const holder = path.slice(0, -1).reduce((at: Json, step) => at[step] as Json, copy as unknown as Json)
    expect(last in holder).toBe(true)
    if (value === undefined) delete holder[last]
    else holder[last] = value
    expect([path, fits(SPEC_COMPLETION, copy)]).not.toEqual([path, true])
    expect([path, is('ChatCompletion', copy)]).not.toEqual([path, true])
  }
})

describe('2.4, responses of a provider', () => {
  /** What a vendor says in its own way, whole and in chunks, as clients get it. */
  async function through(said: { message: Json; deltas: Json[]; finish?: unknown; usage?: Json; more?: Json }) {
    const { message, deltas, finish = 'stop', usage, more = {} } = said
    const choices = [{ index: 0, message, finish_reason: finish, logprobs: null }]
    const counted = usage ?? { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }
    const events = [...deltas.map((delta) => chunk(delta)), chunk({}, finish as string), usageChunk(counted)]
    vendor.answer(whole(completion('', { ...more, choices, usage: counted })))
    vendor.answer(stream(events.map((event) => ({ ...event, ...more }))))
    const both = await bothOf({ model: 'v/m', ...saying('Hello') })
    expectTrue(both)
    expectSums(both.answer.usage)
    expect(both.chunks.at(-1)?.usage).toEqual(both.answer.usage)
    const deltasSeen = both.chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
    return { ...both, message: both.answer.choices[0]?.message, deltas: deltasSeen }
  }
  const HELLO = { message: { role: 'assistant', content: 'Hello' }, deltas: [{ role: 'assistant', content: 'Hello' }] }

  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['max_tokens', 'length'],
    ['end_turn', 'stop'],
    ['SAFETY', 'content_filter'],
    ['something else', 'stop'],
  ])('finish_reason: `%s` becomes `%s`', async (finish, expected) => {
    const { answer, chunks } = await through({ ...HELLO, finish })
    expect(String(answer.choices[0]?.finish_reason)).toBe(expected)
    expect(String(chunks.at(-2)?.choices[0]?.finish_reason)).toBe(expected)
  })

  test('delta: `reasoning` and `reasoning_content` of a provider become one field', async () => {
    for (const field of ['reasoning', 'reasoning_content']) {
      const said = { role: 'assistant', [field]: 'Hm.', content: 'Hello' }
      const { message, deltas } = await through({ message: said, deltas: [{ [field]: 'Hm.' }, { content: 'Hello' }] })
      expect(message).toMatchObject({ reasoning_content: 'Hm.', content: 'Hello' })
      expect(deltas.map(({ reasoning_content }) => reasoning_content).filter(Boolean)).toEqual(['Hm.'])
    }
  })

  test('delta: fields that a provider sends as null are omitted, except the content of a complete message', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const empty = { content: null, reasoning: null, reasoning_content: null, refusal: null }
    const { message, deltas, answer } = await through({
      message: { role: 'assistant', ...empty, tool_calls: [call] },
      deltas: [
        { role: 'assistant', ...empty, tool_calls: null },
        { ...empty, tool_calls: [{ index: 0, ...call }] },
      ],
      finish: 'tool_calls',
    })
    expect(message?.content).toBeNull()
    for (const delta of deltas) for (const name of Object.keys(empty)) expect(delta[name as 'content']).not.toBeNull()
    expect(answer.choices[0]?.delta?.content).toBeUndefined()
  })

  test('tool_calls: id, type, function and its arguments as JSON text; index in chunks', async () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
    const { message, deltas, answer } = await through({
      message: { role: 'assistant', content: null, tool_calls: [call] },
      deltas: [
        { role: 'assistant', tool_calls: [{ index: 0, ...call, function: { name: 'f', arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] },
        { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
      ],
      finish: 'tool_calls',
    })
    expect(message?.tool_calls).toEqual([call] as never)
    expect(answer.choices[0]?.delta?.tool_calls).toEqual([{ index: 0, ...call }] as never)
    const calls = deltas.flatMap(({ tool_calls = [] }) => tool_calls)
    expect(calls.map(({ index }) => index)).toEqual([0, 0, 0])
    expect(calls[0]).toMatchObject({ id: 'call_1', type: 'function', function: { name: 'f' } })
    for (const later of calls.slice(1)) expect(Object.keys(later).sort()).toEqual(['function', 'index'])
    expect(calls.map((one) => one.function.arguments).join('')).toBe('{"a":1}')
  })

  test('system_fingerprint: that of the provider, or null', async () => {
    expect((await through({ ...HELLO, more: { system_fingerprint: 'fp_1' } })).answer.system_fingerprint).toBe('fp_1')
    expect((await through({ ...HELLO, more: { system_fingerprint: null } })).answer.system_fingerprint).toBeNull()
  })

  test('usage: every member that a provider reports is returned under its name', async () => {
    const { answer } = await through({
      ...HELLO,
      usage: {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 40, audio_tokens: 5, image_tokens: 15, cache_write_tokens: 7 },
        completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 4 },
      },
    })
    const details = { cached_tokens: 40, text_tokens: 80, audio_tokens: 5, image_tokens: 15, cache_write_tokens: 7 }
    expect(answer.usage).toEqual({
      prompt_tokens: 100,
      completion_tokens: 50,
      total_tokens: 150,
      prompt_tokens_details: details,
      completion_tokens_details: { text_tokens: 26, audio_tokens: 4, reasoning_tokens: 20 },
      input_tokens: 100,
      output_tokens: 50,
      input_tokens_details: null,
      prompt_cache_hit_tokens: 40,
    })
  })

  test('usage: a member that a provider does not report is zero if it is required, and absent otherwise', async () => {
    const { answer } = await through(HELLO)
    expect(answer.usage).toEqual({
      prompt_tokens: 9,
      completion_tokens: 3,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 0, text_tokens: 9, audio_tokens: 0, image_tokens: 0 },
      completion_tokens_details: { text_tokens: 3, audio_tokens: 0, reasoning_tokens: 0 },
      input_tokens: 9,
      output_tokens: 3,
      input_tokens_details: null,
    })
  })
})

/** Component, field, type, whether it is required; a type is told as JSON Schema tells it. */
const ROWS: [string, [string, string, boolean][]][] = [
  [
    'Model',
    [
      ['id', 'string', true],
      ['object', 'const model', true],
      ['created', 'integer', true],
      ['owned_by', 'string', true],
      ['supported_endpoint_types', 'array', true],
      ['status', 'enum active deprecated retired', true],
      ['deprecated_at', 'integer', false],
      ['retired_at', 'integer', false],
      ['replaced_by', 'string', false],
    ],
  ],
  [
    'ModelList',
    [
      ['success', 'boolean', true],
      ['object', 'const list', true],
      ['data', 'array', true],
    ],
  ],
  [
    'ChatRequest',
    [
      ['model', 'string', true],
      ['messages', 'array at least 1', true],
      ['frequency_penalty', 'number -2 to 2', false],
      ['presence_penalty', 'number -2 to 2', false],
      ['temperature', 'number 0 to 2', false],
      ['top_p', 'number 0 to 1', false],
      ['max_tokens', 'integer from 1', false],
      ['stream', 'boolean', false],
      ['repetition_penalty', 'number from 0', false],
      ['thinking_enabled', 'boolean', false],
      ['web_search', 'object', false],
    ],
  ],
  ...['ChatCompletion', 'ChatChunk'].map((name): [string, [string, string, boolean][]] => [
    name,
    [
      ['id', 'string', true],
      ['object', `const chat.completion${name === 'ChatChunk' ? '.chunk' : ''}`, true],
      ['created', 'integer', true],
      ['model', 'string', true],
      ['choices', 'array', true],
      ['system_fingerprint', 'string or null', false],
      ['usage', 'Usage or null', false],
    ],
  ]),
  [
    'Delta',
    [
      ['content', 'string or null', false],
      ['reasoning', 'string', false],
      ['reasoning_content', 'string', false],
      ['role', 'enum system user assistant tool', false],
      ['tool_calls', 'array', false],
    ],
  ],
  [
    'ToolCall',
    [
      ['function', 'object', true],
      ['id', 'string', false],
      ['index', 'integer', false],
      ['type', 'const function', false],
    ],
  ],
  [
    'Usage',
    [
      ['prompt_tokens', 'integer from 0', true],
      ['completion_tokens', 'integer from 0', true],
      ['total_tokens', 'integer from 0', true],
      ['prompt_tokens_details', 'InputTokenDetails', true],
      ['completion_tokens_details', 'OutputTokenDetails', true],
      ['input_tokens', 'integer from 0', true],
      ['output_tokens', 'integer from 0', true],
      ['input_tokens_details', 'InputTokenDetails or null', false],
      ['prompt_cache_hit_tokens', 'integer from 0', false],
    ],
  ],
  [
    'InputTokenDetails',
    [
      ['cached_tokens', 'integer from 0', true],
      ['text_tokens', 'integer from 0', true],
      ['audio_tokens', 'integer from 0', true],
      ['image_tokens', 'integer from 0', true],
      ['cache_write_tokens', 'integer from 0', false],
    ],
  ],
  [
    'OutputTokenDetails',
    [
      ['text_tokens', 'integer from 0', true],
      ['audio_tokens', 'integer from 0', true],
      ['reasoning_tokens', 'integer from 0', true],
    ],
  ],
]

describe('the document has every row of the tables', () => {
  function told(schema: Json = {}, orNull = false): string {
    const { type: types, minimum, maximum, minItems } = schema
    if (orNull) expect(types).toContain('null')
    const type = orNull ? (types as string[]).filter((one) => one !== 'null').join() : types
    if (Array.isArray(schema.anyOf)) return schema.anyOf.map((one) => told(one)).join(' or ')
    if (schema.$ref) return String(schema.$ref).replace('#/components/schemas/', '')
    if (schema.const !== undefined) return `const ${schema.const}`
    if (Array.isArray(schema.enum)) return `enum ${schema.enum.join(' ')}`
    if (minItems !== undefined) return `${type} at least ${minItems}`
    if (minimum === undefined) return String(type)
    return maximum === undefined ? `${type} from ${minimum}` : `${type} ${minimum} to ${maximum}`
  }

  test.each(ROWS)('%s', (name, rows) => {
    const { properties, required } = component(name)
    for (const [field, type, isRequired] of rows) {
      // A member that a request may omit may also be null.
      const orNull = name === 'ChatRequest' && !isRequired
      expect([field, told(properties[field], orNull), required.includes(field)]).toEqual([field, type, isRequired])
    }
    // What the specification does not require, nobody must send or wait for: but `message` of a whole choice.
    expect(required.length).toBe(rows.filter(([, , isRequired]) => isRequired).length)
  })

  test('the finish reasons of a choice', () => {
    const { items } = component('ChatChunk').properties.choices ?? {}
    const choice = (items as { properties: Record<string, Json> }).properties
    expect(told(choice.finish_reason)).toBe('enum stop length tool_calls content_filter or null')
    expect([told(choice.index), told(choice.delta)]).toEqual(['integer', 'Delta'])
  })
})
