/** The encoded Messages request: every rule of the translation, on both sides. */
import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import { messagesSettings } from '../../../providers/messages-compat/messages-settings.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { vendorSchema } from './json-schema.ts'
import { createBodyEncoder } from './request.ts'

const PROVIDER: ProviderConfig = { base_url: 'https://vendor.example' }
const HELLO: Message[] = [{ role: 'user', content: 'Hello' }]
const OLD = 'claude-sonnet-4-5'
const NEW = 'claude-opus-5'

function writerOf(config: ProviderConfig = {}) {
  return createBodyEncoder(
    messagesSettings({ id: 'v', config: { ...PROVIDER, ...config }, timeouts: DEFAULT_TIMEOUTS }),
  )
}

function bodyOf(
  requested: Partial<ChatRequest>,
  { model = OLD, config = {} }: { model?: string; config?: ProviderConfig } = {},
) {
  const request = { model: `v/${model}`, messages: HELLO, ...requested }
  return JSON.parse(writerOf(config).answer({ model, request }, false))
}

const refusalOf = (requested: Partial<ChatRequest>, model?: string) => {
  try {
    bodyOf(requested, model === undefined ? {} : { model })
  } catch (error) {
    return error
  }
}

const messagesOf = (messages: Message[], model?: string) => bodyOf({ messages }, model === undefined ? {} : { model })
const FUNCTION = { type: 'function' as const, function: { name: 'look', parameters: { type: 'object' } } }
const call = (id: string, text = '{}') => ({
  id,
  type: 'function' as const,
  function: { name: 'look', arguments: text },
})

describe('encoded messages', () => {
  test('join consecutive messages of one role to one turn', () => {
    const { messages } = messagesOf([
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
      { role: 'assistant', content: 'c' },
      { role: 'user', content: 'd' },
    ])
    expect(messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'c' }] },
      { role: 'user', content: [{ type: 'text', text: 'd' }] },
    ])
  })

  test('move system and developer messages to the front', () => {
    const { system, messages } = messagesOf([
      { role: 'system', content: 'one' },
      { role: 'user', content: 'a' },
      { role: 'developer', content: 'two' },
    ])
    expect(system.map(({ text }: { text: string }) => text)).toEqual(['one', 'two'])
    expect(messages).toHaveLength(1)
  })

  test('keep a system message in the conversation if the model accepts it and a response follows', () => {
    const summary: Message[] = [
      { role: 'user', content: 'a' },
      { role: 'system', content: 'inner' },
      { role: 'assistant', content: 'b' },
      { role: 'system', content: 'gathered' },
      { role: 'user', content: 'c' },
      { role: 'system', content: 'last' },
    ]
    const body = messagesOf(summary, NEW)
    expect(body.messages.map(({ role }: Message) => role)).toEqual(['user', 'system', 'assistant', 'user', 'system'])
    expect(body.system).toEqual([{ type: 'text', text: 'gathered' }])
  })

  test('join tool results and the next user text to one turn, with ids that the vendor accepts', () => {
    const { messages } = messagesOf([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: null, tool_calls: [call('look:0', '{"at":1}'), call('look.0', '')] },
      { role: 'tool', tool_call_id: 'look:0', content: 'one', is_error: true },
      { role: 'tool', tool_call_id: 'look.0', content: [{ type: 'text', text: 'two' }] },
      { role: 'user', content: 'and?' },
    ])
    expect(messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'look_0', name: 'look', input: { at: 1 } },
          { type: 'tool_use', id: 'look_0_2', name: 'look', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'look_0', content: 'one', is_error: true },
          { type: 'tool_result', tool_use_id: 'look_0_2', content: [{ type: 'text', text: 'two' }] },
          { type: 'text', text: 'and?' },
        ],
      },
    ])
  })

  test('include only reasoning that a provider of this API signed', () => {
    const opaque = (origin: 'messages-compat' | 'contentgen-compat') => ({ opaque: { origin, value: 'sig' } })
    const { messages } = messagesOf([
      ...HELLO,
      {
        role: 'assistant',
        content: 'x',
        reasoning_content: 'ab',
        reasoning_details: [
          { text: 'a', ...opaque('messages-compat') },
          opaque('messages-compat'),
          { text: '', ...opaque('messages-compat') },
          { text: 'b', ...opaque('contentgen-compat') },
          { text: 'c' },
        ],
      },
    ])
    expect(messages[1].content).toEqual([
      { type: 'thinking', thinking: 'a', signature: 'sig' },
      { type: 'redacted_thinking', data: 'sig' },
      { type: 'thinking', thinking: '', signature: 'sig' },
      { type: 'text', text: 'x' },
    ])
  })

  test('leave out empty texts, and trim white space at the end of a response to continue', () => {
    const { messages } = messagesOf([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: ' \n' },
      { role: 'assistant', content: 'The answer is: ' },
    ])
    expect(messages[1]).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'The answer is:' }] })
  })

  test('include images and documents, as data and by URL', () => {
    const { messages } = messagesOf([
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/jpg;base64,AAAA' } },
          { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
          { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' } },
          { type: 'file', file: { file_data: 'JVBE' } },
          { type: 'file', file: { file_data: `data:text/csv;base64,${btoa('a,b')}` } },
          { type: 'file', file: { file_data: 'data:image/png;base64,BBBB' } },
          { type: 'file', file: { file_url: 'https://a.example/c.pdf' } },
          { type: 'file', file: { file_id: 'file_1' } },
        ],
      },
    ])
    expect(messages[0].content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
      { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, title: 'a.pdf' },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'BBBB' } },
      { type: 'document', source: { type: 'url', url: 'https://a.example/c.pdf' } },
      { type: 'document', source: { type: 'file', file_id: 'file_1' } },
    ])
  })
})

describe('encoded fields', () => {
  test('always include a limit: the request’s, the operator’s, or one that all models accept', () => {
    const request_defaults = { max_tokens: 777 }
    expect(bodyOf({}).max_tokens).toBe(4096)
    expect(bodyOf({}, { config: { request_defaults } }).max_tokens).toBe(777)
    expect(bodyOf({ max_tokens: 5 }, { config: { request_defaults } }).max_tokens).toBe(5)
  })

  test('are renamed where the API has another name', () => {
    expect(bodyOf({ stop: ['a', '\n', 'b'], user: 'u', service_tier: 'default' })).toMatchObject({
      stop_sequences: ['a', 'b'],
      metadata: { user_id: 'u' },
      service_tier: 'standard_only',
    })
    expect(bodyOf({ stop: 'a', service_tier: 'flex' }).service_tier).toBeUndefined()
  })

  test('leave out unknown ones that only tune', () => {
    const body = bodyOf({ seed: 1, frequency_penalty: 1, presence_penalty: 1, logit_bias: { 1: 1 }, verbosity: 'low' })
    expect(Object.keys(body).sort()).toEqual(['max_tokens', 'messages', 'model'])
  })

  test('clamp sampling to the vendor’s bounds, with one of two, and none for some models and versions', () => {
    expect(bodyOf({ temperature: 1.5, top_p: 0.5, top_k: 3 })).toMatchObject({ temperature: 1, top_k: 3 })
    expect(bodyOf({ temperature: 1.5, top_p: 0.5 }).top_p).toBeUndefined()
    expect(bodyOf({ top_p: 0.5 }).top_p).toBe(0.5)
    expect(bodyOf({ temperature: 0.5, top_k: 3 }, { model: NEW }).temperature).toBeUndefined()
    const config = { options: { version: '2026-10-21' } }
    expect(bodyOf({ temperature: 0.5 }, { config }).temperature).toBeUndefined()
    expect(bodyOf({ temperature: 0.5 }, { config: { options: { version: '2023-06-01' } } }).temperature).toBe(0.5)
  })

  test('follow the operator’s lists: more fields, fewer, other names, but never reserved ones', () => {
    const config: ProviderConfig = {
      fields: { allow: ['speed', 'model'], drop: ['metadata', 'messages'], rename: { top_k: 'k' } },
      request_defaults: { service_tier: 'auto', model: 'x' },
    }
    const body = bodyOf({ user: 'u', top_k: 3, ...({ speed: 'fast' } as object) }, { config })
    expect(body).toMatchObject({ model: OLD, speed: 'fast', k: 3, service_tier: 'auto' })
    expect(body.metadata).toBeUndefined()
    expect(body.messages).toHaveLength(1)
  })

  const REFUSED: [param: string, requested: Partial<ChatRequest>, model?: string][] = [
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: {} }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: { name: 'f' } }],
    ['response_format', { response_format: { type: 'json_schema', json_schema: { name: 'x' } } }, 'claude-3-7-sonnet'],
    ['tool_choice', { tools: [FUNCTION], tool_choice: 'required' }, 'claude-opus-5-5'],
    [
      'messages[0].content[0].type',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }] }] },
    ],
    [
      'messages[0].content[0].image_url.url',
      {
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/bmp;base64,AA' } }] }],
      },
    ],
    ['messages[0].role', { messages: [{ role: 'function', name: 'f', content: 'x' }] }],
  ]
  for (const [param, requested, model] of REFUSED) {
    test(`${param} is refused by name`, () => {
      const code = param.includes('.content[') ? 'unsupported_value' : 'unsupported_parameter'
      expect(refusalOf(requested, model)).toMatchObject({ code, detail: { param } })
    })
  }

  test('refuse earlier arguments that are not an object, with their place', () => {
    const messages: Message[] = [...HELLO, { role: 'assistant', content: null, tool_calls: [call('a', '[1]')] }]
    expect(refusalOf({ messages })).toMatchObject({
      code: 'invalid_value',
      detail: { param: 'messages[1].tool_calls[0].function.arguments' },
    })
  })

  test('reduce a token count to the prompt', () => {
    const request: ChatRequest = { model: 'v/x', messages: HELLO, max_tokens: 5, tools: [FUNCTION], temperature: 1 }
    const body = JSON.parse(writerOf().count({ model: OLD, request }))
    expect(Object.keys(body).sort()).toEqual(['messages', 'model', 'tools'])
  })
})

describe('encoded tools', () => {
  test('include definitions and every choice', () => {
    const strict = { ...FUNCTION, function: { ...FUNCTION.function, strict: true, description: 'd' } }
    const body = bodyOf({ tools: [strict, { type: 'function', function: { name: 'now' } }], tool_choice: 'required' })
    expect(body.tools).toEqual([
      { name: 'look', description: 'd', input_schema: { type: 'object', additionalProperties: false }, strict: true },
      { name: 'now', input_schema: { type: 'object', properties: {} } },
    ])
    expect(body.tool_choice).toEqual({ type: 'any' })
    const choiceOf = (requested: Partial<ChatRequest>) => bodyOf({ tools: [FUNCTION], ...requested }).tool_choice
    expect(choiceOf({})).toBeUndefined()
    expect(choiceOf({ tool_choice: 'auto', parallel_tool_calls: false })).toEqual({
      type: 'auto',
      disable_parallel_tool_use: true,
    })
    expect(choiceOf({ parallel_tool_calls: true })).toEqual({ type: 'auto', disable_parallel_tool_use: false })
    expect(choiceOf({ tool_choice: 'none', parallel_tool_calls: false })).toEqual({ type: 'none' })
    expect(choiceOf({ tool_choice: { type: 'function', function: { name: 'look' } } })).toEqual({
      type: 'tool',
      name: 'look',
    })
  })

  test('are reduced to the allowed ones', () => {
    const now = { type: 'function' as const, function: { name: 'now' } }
    const allowed_tools = { mode: 'required' as const, tools: [{ type: 'function', name: 'now' }] }
    const body = bodyOf({ tools: [FUNCTION, now], tool_choice: { type: 'allowed_tools', allowed_tools } })
    expect(body).toMatchObject({ tools: [{ name: 'now' }], tool_choice: { type: 'any' } })
  })

  test('include the vendor’s web search', () => {
    const user_location = { type: 'approximate', approximate: { city: 'Bonn' } }
    const web_search_options = { user_location, filters: { allowed_domains: ['a.example'] } }
    expect(bodyOf({ web_search_options }).tools).toEqual([
      {
        type: 'web_search_20250305',
        name: 'web_search',
        user_location: { type: 'approximate', city: 'Bonn' },
        allowed_domains: ['a.example'],
      },
    ])
    expect(bodyOf({ web_search: { enable: true } }).tools).toHaveLength(1)
    expect(bodyOf({ web_search: { enable: false } }).tools).toBeUndefined()
  })
})

describe('encoded structured output', () => {
  test('has a schema in the vendor’s subset', () => {
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer', minimum: 1, description: 'Years.' }, minimum: { type: 'string' } },
      required: ['age'],
    }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } }
    expect(bodyOf({ response_format }).output_config.format).toEqual({
      type: 'json_schema',
      schema: {
        type: 'object',
        properties: { age: { type: 'integer', description: 'Years.\n\n{minimum: 1}' }, minimum: { type: 'string' } },
        required: ['age'],
        additionalProperties: false,
      },
    })
    expect(vendorSchema({ anyOf: [{ type: 'array', items: { type: 'string', maxLength: 2 }, minItems: 1 }] })).toEqual({
      anyOf: [{ type: 'array', items: { type: 'string', description: '{maxLength: 2}' }, minItems: 1 }],
    })
  })

  test('requests JSON without a schema by an instruction', () => {
    expect(bodyOf({ response_format: { type: 'json_object' } }).system[0].text).toContain('JSON object')
    expect(bodyOf({ response_format: { type: 'text' } }).system).toBeUndefined()
  })
})

describe('encoded thinking', () => {
  const thinkingOf = (requested: Partial<ChatRequest>, model?: string) => {
    const { thinking, output_config, max_tokens } = bodyOf(requested, model === undefined ? {} : { model })
    return [thinking, output_config?.effort, max_tokens]
  }

  test('has a token budget for models that take one', () => {
    expect(thinkingOf({ reasoning_effort: 'low' })).toEqual([{ type: 'enabled', budget_tokens: 2048 }, undefined, 6144])
    expect(thinkingOf({ reasoning_budget: 3000, max_tokens: 9000 })).toEqual([
      { type: 'enabled', budget_tokens: 3000 },
      undefined,
      9000,
    ])
    expect(thinkingOf({ reasoning_budget: 9000, max_tokens: 3000 })[0]).toEqual({
      type: 'enabled',
      budget_tokens: 2999,
    })
    expect(thinkingOf({ reasoning_budget: 10, max_tokens: 1025 })[0]).toEqual({ type: 'enabled', budget_tokens: 1024 })
    expect(thinkingOf({ reasoning_budget: 10, max_tokens: 1024 })[0]).toBeUndefined()
    expect(thinkingOf({ reasoning_budget: 0 })[0]).toEqual({ type: 'disabled' })
    expect(thinkingOf({ reasoning_effort: 'none' })[0]).toEqual({ type: 'disabled' })
    expect(thinkingOf({})).toEqual([undefined, undefined, 4096])
  })

  test('is adaptive, with an effort that the model supports', () => {
    expect(thinkingOf({ reasoning_effort: 'xhigh' }, NEW)).toEqual([{ type: 'adaptive' }, 'xhigh', 4096])
    expect(thinkingOf({ reasoning_effort: 'xhigh' }, 'claude-opus-4-6')[1]).toBe('high')
    expect(thinkingOf({ reasoning_effort: 'minimal' }, NEW)[1]).toBe('low')
    expect(thinkingOf({ reasoning_budget: -1 }, NEW)).toEqual([{ type: 'adaptive' }, undefined, 4096])
    expect(thinkingOf({ reasoning_budget: 2000 }, NEW)[0]).toEqual({ type: 'adaptive' })
    expect(thinkingOf({ reasoning_budget: 2000 }, 'claude-opus-4-6')[0]).toEqual({
      type: 'enabled',
      budget_tokens: 2000,
    })
    expect(thinkingOf({ reasoning_budget: 0, reasoning_effort: 'max' }, NEW)).toEqual([
      { type: 'disabled' },
      'high',
      4096,
    ])
    expect(thinkingOf({ reasoning_budget: 0 }, 'claude-opus-5-5')).toEqual([undefined, 'low', 4096])
    expect(thinkingOf({ reasoning_effort: 'high' }, 'claude-3-haiku')).toEqual([undefined, undefined, 4096])
  })

  test('removes sampling, and is removed if a call is forced', () => {
    expect(bodyOf({ reasoning_effort: 'low', temperature: 0.2 }).temperature).toBeUndefined()
    const forced = bodyOf({ reasoning_effort: 'low', temperature: 0.2, tools: [FUNCTION], tool_choice: 'required' })
    expect(forced.thinking).toBeUndefined()
    expect(forced.temperature).toBe(0.2)
  })

  test('is removed after a call without it, for models that require it before the call', () => {
    const opaque = { origin: 'messages-compat' as const, value: 's' }
    const history = (signed: boolean): Message[] => [
      ...HELLO,
      {
        role: 'assistant',
        content: null,
        tool_calls: [call('a')],
        ...(signed ? { reasoning_details: [{ text: 't', opaque }] } : {}),
      },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ]
    expect(thinkingOf({ messages: history(false), reasoning_budget: 2000, max_tokens: 9000 })[0]).toBeUndefined()
    expect(thinkingOf({ messages: history(true), reasoning_budget: 2000, max_tokens: 9000 })[0]).toBeDefined()
    expect(thinkingOf({ messages: history(false), reasoning_budget: -1 }, NEW)[0]).toEqual({ type: 'adaptive' })
  })
})

describe('provider settings', () => {
  const headersOf = (config: ProviderConfig) =>
    messagesSettings({ id: 'v', config: { ...PROVIDER, ...config }, timeouts: DEFAULT_TIMEOUTS }).headers

  test('put the key and the version into the vendor’s headers', () => {
    expect(headersOf({ key: 'k-1' })).toEqual({ 'x-api-key': 'k-1', 'anthropic-version': '2023-06-01' })
    expect(headersOf({ key: 'k-1', options: { auth: 'bearer', version: '2026-10-21' } })).toEqual({
      authorization: 'Bearer k-1',
      'anthropic-version': '2026-10-21',
    })
    const headers = { 'anthropic-beta': 'a-1,b-2', authorization: 'Token {key}' }
    expect(headersOf({ key: 'k-1', headers })).toMatchObject({
      'anthropic-beta': 'a-1,b-2',
      authorization: 'Token k-1',
    })
  })

  test('accept a base URL with and without the version', () => {
    for (const base_url of [
      'https://v.example',
      'https://v.example/',
      'https://v.example/v1',
      'https://v.example/v1/',
    ]) {
      const settings = messagesSettings({ id: 'v', config: { base_url }, timeouts: DEFAULT_TIMEOUTS })
      expect(settings.base_url).toBe('https://v.example')
    }
  })

  test('read the key of the preset from the environment', () => {
    const environment = { ANTHROPIC_API_KEY: 'sk-ant-1' }
    const config = { preset: 'anthropic' }
    const { base_url, headers } = messagesSettings({ id: 'anthropic', config, timeouts: DEFAULT_TIMEOUTS, environment })
    expect([base_url, headers['x-api-key']]).toEqual(['https://api.anthropic.com', 'sk-ant-1'])
  })

  test.each([
    [{ version: 'new' }, 'options.version'],
    [{ auth: 'basic' }, 'options.auth'],
    [{ sampling: 1 }, 'options.sampling'],
    [{ thinking: 'much' }, 'options.thinking'],
    [{ wit: 1 }, 'no "wit"'],
  ])('refuse the options %j by name', (options, output) => {
    expect(() => headersOf({ options })).toThrow(output)
  })

  test('apply the operator’s corrections of the model’s row', () => {
    const config = { options: { sampling: true, thinking: 'budget' } }
    const body = bodyOf({ temperature: 0.5 }, { model: NEW, config })
    expect(body.temperature).toBe(0.5)
    expect(bodyOf({ reasoning_effort: 'low' }, { model: NEW, config }).thinking.type).toBe('enabled')
    expect(() =>
      bodyOf(
        { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
        { config: { quirks: { json_schema: false } } },
      ),
    ).toThrow('response_format')
  })
})
