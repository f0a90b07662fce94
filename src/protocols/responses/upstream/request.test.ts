/** The encoded Responses request, field by field. */
import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import { responsesSettings } from '../../../providers/responses-compat/responses-settings.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { createBodyEncoder } from './request.ts'
import { FIELD_MAPPINGS } from './request-fields.ts'

const writerOf = (config: ProviderConfig = {}) =>
  createBodyEncoder(
    responsesSettings({ id: 'v', config: { base_url: 'https://v.example/v1', ...config }, timeouts: DEFAULT_TIMEOUTS }),
  )

type RequestFields = Omit<Partial<ChatRequest>, 'messages'> & { messages?: Message[] }
const HELLO: Message[] = [{ role: 'user', content: 'Hello' }]

const callOf = (requested: RequestFields, model: string) => ({
  model,
  request: { model: `v/${model}`, messages: HELLO, ...requested } as ChatRequest,
  request_id: 'r',
})
const bodyOf = (requested: RequestFields, { model = 'gpt-4.1', config = {} as ProviderConfig } = {}) =>
  JSON.parse(writerOf(config).answer(callOf(requested, model), false))
const inputOf = (messages: Message[], config: ProviderConfig = {}) => bodyOf({ messages }, { config }).input
const refusalOf = (requested: RequestFields, config: ProviderConfig = {}) => {
  try {
    bodyOf(requested, { config })
  } catch (error) {
    const { code, detail, message } = error as { code: string; detail: { param: string }; message: string }
    return { code, param: detail.param, message }
  }
  throw new Error('nothing was refused')
}

test('encodes a plain question without extra fields, and not stored by the provider', () => {
  expect(bodyOf({})).toEqual({
    model: 'gpt-4.1',
    input: [{ type: 'message', role: 'user', content: 'Hello' }],
    store: false,
  })
})

test('requests a stream', () => {
  const streamed = (requested: RequestFields) => JSON.parse(writerOf().answer(callOf(requested, 'gpt-4.1'), true))
  expect(streamed({ stream: true, stream_options: { include_usage: true } })).toEqual({ ...bodyOf({}), stream: true })
  const stream_options = { include_usage: true, include_obfuscation: false }
  expect(streamed({ stream_options }).stream_options).toEqual({ include_obfuscation: false })
})

describe('an encoded conversation', () => {
  test('is a list of items in order', () => {
    const messages: Message[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: [{ type: 'text', text: 'And kind.' }] },
      { role: 'user', content: 'Paris and Rome?' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I ' },
          { type: 'text', text: 'look.' },
        ],
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"Paris"}' } },
          { id: 'call_2', type: 'function', function: { name: 'look', arguments: '{"at":"Rome"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'Sun.' },
      {
        role: 'tool',
        tool_call_id: 'call_2',
        is_error: true,
        content: [
          { type: 'text', text: 'A picture:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
      { role: 'user', content: 'Thanks.' },
    ]
    expect(inputOf(messages)).toEqual([
      { type: 'message', role: 'system', content: 'Be brief.' },
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'And kind.' }] },
      { type: 'message', role: 'user', content: 'Paris and Rome?' },
      { type: 'message', role: 'assistant', content: 'I look.' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":"Paris"}' },
      { type: 'function_call', call_id: 'call_2', name: 'look', arguments: '{"at":"Rome"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Sun.' },
      {
        type: 'function_call_output',
        call_id: 'call_2',
        output: [
          { type: 'input_text', text: 'A picture:' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' },
        ],
      },
      { type: 'message', role: 'user', content: 'Thanks.' },
    ])
  })

  test('includes the vendor’s own reasoning, and no other', () => {
    const opaque = { origin: 'chatcompat-response' as const, value: 'ENC', id: 'rs_1' }
    const messages: Message[] = [
      ...HELLO,
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'Hm. So. Ah.',
        reasoning_details: [
          { text: 'Hm.', opaque },
          { opaque: { origin: 'chatcompat-response', value: 'HID' } },
          { text: 'So.', opaque: { origin: 'messages-compat', value: 'SIG' } },
          { text: 'Ah.' },
        ],
        tool_calls: [
          {
            id: 'c',
            function: { name: 'f', arguments: '{}' },
            opaque: { origin: 'contentgen-compat', value: 'THOUGHT' },
          },
        ],
      },
    ]
    const shown = bodyOf({ messages }, { model: 'o3' }).input
    expect(shown.slice(1)).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'ENC' },
      { type: 'reasoning', summary: [], encrypted_content: 'HID' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    ])
    // A model that does not reason would refuse it.
    expect(inputOf(messages)).toHaveLength(2)
    // A model that returned encrypted reasoning does so again, whatever its name.
    expect(bodyOf({ messages }, { model: 'mine' }).include).toEqual(['reasoning.encrypted_content'])
  })

  test('leaves out reasoning without a following item', () => {
    const reasoning_details = [{ opaque: { origin: 'chatcompat-response' as const, value: 'E', id: 'rs_1' } }]
    const messages: Message[] = [...HELLO, { role: 'assistant', content: '', reasoning_details }, ...HELLO]
    expect(bodyOf({ messages }, { model: 'o3' }).input).toHaveLength(2)
  })

  test('encodes an earlier refusal as a refusal', () => {
    expect(inputOf([...HELLO, { role: 'assistant', content: null, refusal: 'No.' }])[1]).toEqual({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'refusal', refusal: 'No.' }],
    })
    const content = [
      { type: 'text' as const, text: 'Well.' },
      { type: 'refusal' as const, refusal: 'No.' },
    ]
    expect(inputOf([...HELLO, { role: 'assistant', content }])[1].content).toEqual([
      { type: 'output_text', text: 'Well.', annotations: [] },
      { type: 'refusal', refusal: 'No.' },
    ])
  })

  test('leaves out an empty response', () => {
    expect(inputOf([...HELLO, { role: 'assistant', content: '' }, ...HELLO])).toHaveLength(2)
  })

  test('uses `system` if the provider does not support `developer`', () => {
    const config = { quirks: { developer_role: false } }
    expect(inputOf([{ role: 'developer', content: 'x' }], config)[0].role).toBe('system')
  })

  test('cuts call ids that the vendor would refuse, equally in call and result', () => {
    const long = (end: string) => `call_${'x'.repeat(80)}${end}`
    const called = (id: string) => ({ id, function: { name: 'f', arguments: '{}' } })
    const most = 'y'.repeat(64)
    const input = inputOf([
      { role: 'assistant', content: null, tool_calls: [called(long('a')), called(long('b')), called(most)] },
      { role: 'tool', tool_call_id: long('b'), content: 'B' },
      { role: 'tool', tool_call_id: long('a'), content: 'A' },
      { role: 'tool', tool_call_id: most, content: 'C' },
    ])
    const [a, b, c, resultB, resultA, resultC] = input.map(({ call_id }: { call_id: string }) => call_id)
    expect([resultA, resultB, resultC]).toEqual([a, b, c])
    expect(new Set([a, b, c]).size).toBe(3)
    expect(c).toBe(most)
    expect(Math.max(a.length, b.length)).toBeLessThanOrEqual(64)
  })
})

describe('encoded files and images', () => {
  const partOf = (part: object, config: ProviderConfig = {}) =>
    inputOf([{ role: 'user', content: [part] } as Message], config)[0].content[0]

  test.each([
    [
      { type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'high' } },
      { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'high' },
    ],
    [
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' } },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' },
    ],
    [
      { type: 'file', file: { file_data: 'JVBE' } },
      { type: 'input_file', filename: 'file.pdf', file_data: 'data:application/pdf;base64,JVBE' },
    ],
    [
      { type: 'file', file: { file_data: 'data:text/plain;base64,YQ==' } },
      { type: 'input_file', filename: 'file.txt', file_data: 'data:text/plain;base64,YQ==' },
    ],
    [
      { type: 'file', file: { file_url: 'https://a.example/b.pdf' } },
      { type: 'input_file', file_url: 'https://a.example/b.pdf' },
    ],
    [
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'input_file', file_id: 'file-1' },
    ],
  ])('%j', (part, sent) => {
    expect(partOf(part)).toEqual(sent)
  })

  test('refuses audio unless the operator says that the provider accepts it', () => {
    const part = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
    const messages = [{ role: 'user', content: [part] } as Message]
    expect(refusalOf({ messages })).toMatchObject({
      code: 'unsupported_value',
      param: 'messages[0].content[0].type',
    })
    expect(partOf(part, { options: { audio: true } })).toEqual(part)
  })
})

describe('encoded Responses tools', () => {
  const look = { type: 'function' as const, function: { name: 'look', description: 'Looks.', parameters: { a: 1 } } }
  const now = { type: 'function' as const, function: { name: 'now', strict: true } }

  test('are strict only if the request says so', () => {
    expect(bodyOf({ tools: [look, now], parallel_tool_calls: false })).toMatchObject({
      tools: [
        { type: 'function', name: 'look', description: 'Looks.', parameters: { a: 1 }, strict: false },
        { type: 'function', name: 'now', parameters: { type: 'object', properties: {} }, strict: true },
      ],
      parallel_tool_calls: false,
    })
  })

  test.each([
    ['auto', 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    [
      { type: 'function', function: { name: 'now' } },
      { type: 'function', name: 'now' },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'now' } }] },
      },
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'now' }] },
    ],
  ] as const)('include the choice %j', (tool_choice, sent) => {
    const requested = { tools: [look, now], tool_choice: tool_choice as ChatRequest['tool_choice'] } as RequestFields
    expect(bodyOf(requested).tool_choice).toEqual(sent as unknown)
  })

  test('are absent if empty, and so is the choice', () => {
    const body = bodyOf({ tools: [], tool_choice: 'auto', parallel_tool_calls: true })
    expect(Object.keys(body).sort()).toEqual(['input', 'model', 'store'])
  })

  test('include the vendor’s web search', () => {
    const web_search_options = {
      search_context_size: 'low',
      user_location: { type: 'approximate', approximate: { city: 'Paris', country: 'FR' } },
      filters: { allowed_domains: ['a.example'] },
    }
    const sent = {
      type: 'web_search',
      search_context_size: 'low',
      user_location: { type: 'approximate', city: 'Paris', country: 'FR' },
      filters: { allowed_domains: ['a.example'] },
    }
    expect(bodyOf({ web_search_options }).tools).toEqual([sent])
    expect(bodyOf({ web_search: { enable: true }, tools: [now] }).tools).toMatchObject([
      { name: 'now' },
      { type: 'web_search' },
    ])
    expect(bodyOf({ web_search: { enable: false } }).tools).toBeUndefined()
    expect(refusalOf({ web_search_options: { filters: { blocked_domains: ['b.example'] } } }).param).toBe(
      'web_search_options.filters.blocked_domains',
    )
  })
})

describe('the encoded response format', () => {
  test('is requested under the vendor’s names', () => {
    const schema = { type: 'object', properties: {} }
    const json_schema = { name: 'a', description: 'An a.', schema }
    expect(bodyOf({ response_format: { type: 'json_schema', json_schema }, verbosity: 'low' }).text).toEqual({
      verbosity: 'low',
      format: { type: 'json_schema', name: 'a', description: 'An a.', schema, strict: false },
    })
    expect(bodyOf({ response_format: { type: 'json_object' } }).text).toEqual({ format: { type: 'json_object' } })
    expect(bodyOf({ response_format: { type: 'text' } }).text).toBeUndefined()
    const strict = { name: 'a', strict: true }
    expect(bodyOf({ response_format: { type: 'json_schema', json_schema: strict } }).text.format).toEqual({
      type: 'json_schema',
      name: 'a',
      schema: { type: 'object' },
      strict: true,
    })
  })

  test('has log probabilities on request', () => {
    expect(bodyOf({ logprobs: true, top_logprobs: 3 })).toMatchObject({
      include: ['message.output_text.logprobs'],
      top_logprobs: 3,
    })
    expect(bodyOf({ logprobs: false, top_logprobs: 3 }).top_logprobs).toBeUndefined()
  })

  test('has the limit, but at least the vendor’s minimum', () => {
    expect(bodyOf({ max_tokens: 1 }).max_output_tokens).toBe(16)
    expect(bodyOf({ max_tokens: 17 }).max_output_tokens).toBe(17)
    expect(bodyOf({ max_tokens: 17, max_completion_tokens: 100 }).max_output_tokens).toBe(100)
  })
})

describe('encoded reasoning', () => {
  const sent = (requested: RequestFields, model: string) => {
    const { reasoning, include, temperature } = bodyOf({ temperature: 0.5, ...requested }, { model })
    return [reasoning?.effort, include !== undefined, temperature !== undefined]
  }
  test.each<[string, RequestFields, [effort: string | undefined, encrypted: boolean, sampled: boolean]]>([
    ['gpt-4.1', { reasoning_effort: 'high' }, [undefined, false, true]],
    ['gpt-5-chat-latest', { reasoning_effort: 'high' }, [undefined, false, true]],
    ['gpt-5.1-chat-latest', { reasoning_effort: 'none' }, ['medium', true, false]],
    ['gpt-5-mini', { reasoning_effort: 'none' }, ['minimal', true, false]],
    ['gpt-5-mini', { reasoning_effort: 'max' }, ['high', true, false]],
    ['gpt-5-mini', {}, [undefined, true, false]],
    ['gpt-5-mini', { reasoning_effort: 'high' }, ['high', true, false]],
    ['gpt-5-mini', { thinking_enabled: false }, ['minimal', true, false]],
    ['gpt-5-pro', { reasoning_budget: 0 }, ['high', true, false]],
    ['o3', { reasoning_budget: 0 }, ['low', true, false]],
    ['o3', { reasoning_budget: 4096 }, ['low', true, false]],
    ['o3', { reasoning_budget: 4097 }, ['medium', true, false]],
    ['o3', { reasoning_budget: 16_384 }, ['medium', true, false]],
    ['o3', { reasoning_budget: 16_385 }, ['high', true, false]],
    ['o3', { reasoning_budget: -1 }, [undefined, true, false]],
    ['gpt-5.1', {}, [undefined, true, false]],
    ['gpt-5.1', { reasoning_effort: 'none' }, ['none', true, true]],
    ['gpt-5.1', { thinking_enabled: false }, ['none', true, true]],
    ['gpt-5.1', { thinking_enabled: true }, ['medium', true, false]],
    ['gpt-5.1', { reasoning_budget: -1, thinking_enabled: false }, ['medium', true, false]],
    ['gpt-5.1', { reasoning_effort: 'minimal' }, ['low', true, false]],
    ['gpt-5.1-codex-max', { reasoning_effort: 'xhigh' }, ['xhigh', true, false]],
    ['gpt-5.1-codex', { reasoning_effort: 'xhigh' }, ['high', true, false]],
    ['gpt-5.4-mini', { reasoning_effort: 'max' }, ['xhigh', true, false]],
    ['gpt-5.6-sol', { reasoning_effort: 'max' }, ['max', true, false]],
    ['gpt-6-sol', { reasoning_effort: 'none' }, ['none', true, false]],
    ['gpt-6-astra', { reasoning_effort: 'none' }, ['low', true, false]],
    ['o3-deep-research', { reasoning_effort: 'low' }, ['medium', true, false]],
    ['gpt-5.2-pro', { thinking_enabled: false }, ['medium', true, false]],
    ['openai/gpt-6-astra', { reasoning_effort: 'max' }, ['max', true, false]],
    ['grok-4', { thinking_enabled: true }, [undefined, true, true]],
    ['grok-4.3', { reasoning_effort: 'minimal' }, ['minimal', true, true]],
    ['grok-4-fast-non-reasoning', {}, [undefined, false, true]],
    ['gpt-oss-120b', { reasoning_effort: 'low' }, ['low', false, true]],
    ['somebody-else', { reasoning_effort: 'low' }, ['low', false, true]],
    ['somebody-else', { reasoning_budget: 9000, thinking_enabled: true }, [undefined, false, true]],
  ])('maps for %s the request %j', (model, requested, requestedBody) => {
    expect(sent(requested, model)).toEqual(requestedBody)
  })

  test('has a summary if the caller, or the operator for all, requests one', () => {
    expect(bodyOf({ reasoning_summary: 'detailed' }, { model: 'o3' }).reasoning).toEqual({ summary: 'detailed' })
    expect(bodyOf({ reasoning_summary: 'auto' }).reasoning).toBeUndefined()
    const config = { request_defaults: { reasoning_summary: 'auto' } }
    expect(bodyOf({}, { model: 'o3', config }).reasoning).toEqual({ summary: 'auto' })
    expect(bodyOf({ reasoning_summary: 'concise' }, { model: 'o3', config }).reasoning).toEqual({ summary: 'concise' })
  })

  test('follows the operator for unknown models', () => {
    const of = (reasoning: string) =>
      bodyOf({ reasoning_budget: 1 }, { model: 'mine', config: { options: { reasoning } } })
    expect([of('none').reasoning, of('none').include]).toEqual([undefined, undefined])
    expect([of('plain').reasoning, of('plain').include]).toEqual([{ effort: 'low' }, undefined])
    expect([of('encrypted').reasoning, of('encrypted').include]).toEqual([
      { effort: 'low' },
      ['reasoning.encrypted_content'],
    ])
    const config = { options: { sampling: true } }
    expect(bodyOf({ temperature: 1 }, { model: 'o3', config }).temperature).toBe(1)
  })
})

describe('the operator’s lists', () => {
  test('add defaults, and add, drop and rename fields', () => {
    const config: ProviderConfig = {
      request_defaults: { max_tokens: 99, verbosity: 'low', truncation: 'auto', model: 'x', input: [] },
      fields: { allow: ['top_k'], drop: ['user', 'temperature'], rename: { truncation: 'cutting', model: 'y' } },
    }
    const body = bodyOf({ user: 'u', temperature: 1, top_k: 4, metadata: { a: 'b' } }, { config })
    expect(body).toEqual({
      model: 'gpt-4.1',
      input: [{ type: 'message', role: 'user', content: 'Hello' }],
      store: false,
      max_output_tokens: 99,
      text: { verbosity: 'low' },
      metadata: { a: 'b' },
      top_k: 4,
      cutting: 'auto',
    })
  })

  test('refuse a request that would change its meaning without a dropped field', () => {
    const tools = [{ type: 'function' as const, function: { name: 'f' } }]
    expect(refusalOf({ tools }, { fields: { drop: ['tools'] } }).param).toBe('tools')
    expect(refusalOf({ tools }, { quirks: { tools: false } }).param).toBe('tools')
    const json = { response_format: { type: 'json_schema' as const, json_schema: { name: 'a' } } }
    expect(refusalOf(json, { quirks: { json_schema: false } })).toMatchObject({ param: 'response_format' })
  })

  test.each([
    [{ speed: 1 }, 'has no "speed"'],
    [{ reasoning: 'loud' }, 'options.reasoning must be one of none, plain, encrypted'],
    [{ reasoning: 'toString' }, 'options.reasoning must be'],
    [{ sampling: 1 }, 'options.sampling must be true or false'],
    [{ audio: 'yes' }, 'options.audio must be true or false'],
  ])('explain how to correct the options %j', (options, message) => {
    expect(() => writerOf({ options })).toThrow(message)
  })
})

describe('a caller’s vendor-specific options', () => {
  const own = (options: Record<string, unknown>, requested: RequestFields = {}, model = 'o3') =>
    bodyOf({ ...requested, provider_options: { 'responses-compat': options, mistral: { other: 1 } } }, { model })

  test('are sent unchanged, beside the canonical fields', () => {
    expect(
      own(
        { truncation: 'auto', include: ['web_search_call.action.sources'], reasoning: { effort: 'max', mode: 'pro' } },
        {
          reasoning_effort: 'low',
        },
      ),
    ).toEqual({
      model: 'o3',
      input: [{ type: 'message', role: 'user', content: 'Hello' }],
      store: false,
      truncation: 'auto',
      include: ['reasoning.encrypted_content', 'web_search_call.action.sources'],
      reasoning: { effort: 'low', mode: 'pro' },
    })
  })

  test('cannot bypass a limit, or reach what is stored at the vendor', () => {
    const body = own({
      model: 'dear',
      input: 'x',
      instructions: 'x',
      max_output_tokens: 1e6,
      tools: [{ type: 'code_interpreter' }],
      tool_choice: 'required',
      background: true,
      stream: true,
      store: true,
      previous_response_id: 'resp_of_another',
      conversation: 'conv_of_another',
      prompt: { id: 'p' },
    })
    expect(body).toEqual({ ...bodyOf({}, { model: 'o3' }) })
  })
})

describe('a Responses token count', () => {
  test('has only the fields that are counted', () => {
    const requested: RequestFields = {
      max_tokens: 9,
      user: 'u',
      verbosity: 'low',
      reasoning_effort: 'low',
      temperature: 1,
    }
    expect(JSON.parse(writerOf().count(callOf(requested, 'o3')))).toEqual({
      model: 'o3',
      input: [{ type: 'message', role: 'user', content: 'Hello' }],
      reasoning: { effort: 'low' },
      text: { verbosity: 'low' },
    })
  })
})

describe('fields that no provider of this API supports are refused by name', () => {
  const REQUESTED: [param: string, requested: RequestFields][] = [
    ['n', { n: 2 }],
    ['stop', { stop: 'END' }],
    ['stop', { stop: ['END'] }],
    ['audio', { audio: { voice: 'a' } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: { name: 'f' } }],
  ]
  test.each(REQUESTED)('%s, as in %j', (param, requested) => {
    expect(refusalOf(requested)).toMatchObject({ code: 'unsupported_parameter', param })
  })

  test('each such field has a row in this test', () => {
    const rows = Object.entries(FIELD_MAPPINGS).flatMap(([field, fate]) => ('refused' in fate ? [field] : []))
    expect(rows.sort()).toEqual([...new Set(REQUESTED.map(([param]) => param))].sort())
  })

  test('values without effect are accepted', () => {
    const requested: RequestFields = { n: 1, stop: [], modalities: ['text'], functions: [], function_call: 'auto' }
    expect(bodyOf(requested)).toEqual(bodyOf({}))
  })

  test('fields that only tune are dropped', () => {
    const requested: RequestFields = {
      top_k: 1,
      frequency_penalty: 1,
      presence_penalty: 1,
      repetition_penalty: 1,
      logit_bias: { 1: 1 },
      seed: 1,
      prediction: {},
    }
    const rows = Object.entries(FIELD_MAPPINGS).flatMap(([field, fate]) => ('dropped' in fate ? [field] : []))
    expect(rows.sort()).toEqual(Object.keys(requested).sort())
    expect(bodyOf(requested)).toEqual(bodyOf({}))
  })

  test.each<[string, Message]>([
    ['messages[0].role', { role: 'function', name: 'f', content: 'x' }],
    ['messages[0].function_call', { role: 'assistant', function_call: { name: 'f', arguments: '{}' } }],
    ['messages[0].content[0].file', { role: 'user', content: [{ type: 'file', file: {} }] }],
    ['messages[0].tool_call_id', { role: 'tool', content: 'x' }],
    [
      'messages[0].content[0].type',
      { role: 'assistant', content: [{ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }] },
    ],
  ])('%s', (param, message) => {
    expect(refusalOf({ messages: [message] }).param).toBe(param)
  })
})
