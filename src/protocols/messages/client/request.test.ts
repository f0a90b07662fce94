/** Decoding of Messages requests, and refusals with the client's field and the rule. */
import { describe, expect, test } from 'bun:test'
import { messagesDialect } from '../../../families/chat/dialects/messages.ts'
import { GatewayError } from '../../../spec/error.ts'
import { encodeSigned, PLAIN } from '../../shared/signed-content.ts'
import { parseCount, parseMessages } from './request.ts'

const REQUESTED = { model: 'a/b', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
const parse = (more: object) => parseMessages({ ...REQUESTED, ...more })
const messagesOf = (...messages: object[]) => parse({ messages }).messages
const refusalOf = (body: unknown): unknown => {
  try {
    parseMessages(body)
  } catch (error) {
    return error
  }
}
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } }
const tool = (more: object = {}) => ({ name: 'look', input_schema: { type: 'object' }, ...more })

describe('Messages request fields', () => {
  test('converts every known field', () => {
    const request = parse({
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'Be kind.' },
      ],
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop_sequences: ['1', '2', '3', '4', '5'],
      metadata: { user_id: 'u-1' },
      service_tier: 'standard_only',
      thinking: { type: 'enabled', budget_tokens: 2048, display: 'omitted' },
      output_config: { effort: 'xhigh', format: { type: 'json_schema', schema: { type: 'object' } } },
      tools: [tool({ description: 'd', strict: true, cache_control: { type: 'ephemeral' } })],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      cache_control: { type: 'ephemeral' },
      of_tomorrow: 1,
    })
    expect(request).toEqual({
      model: 'a/b',
      max_tokens: 100,
      messages: [
        { role: 'system', content: 'Be brief.\n\nBe kind.' },
        { role: 'user', content: 'Hello' },
      ],
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop: ['1', '2', '3', '4', '5'],
      user: 'u-1',
      service_tier: 'default',
      thinking_enabled: true,
      reasoning_budget: 2048,
      reasoning_effort: 'xhigh',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { type: 'object' }, strict: true },
      },
      tools: [
        {
          type: 'function',
          function: { name: 'look', description: 'd', parameters: { type: 'object' }, strict: true },
        },
      ],
      tool_choice: 'required',
      parallel_tool_calls: false,
    })
  })

  test.each(['__proto__', 'constructor'])('accepts the string %s like any other', (word) => {
    expect(parse({ service_tier: word }).service_tier).toBe(word)
  })

  test('treats null as absent, except in the client’s own data', () => {
    const plain = {
      system: null,
      thinking: null,
      metadata: { user_id: null },
      output_config: { effort: null },
      tools: null,
    }
    expect(parse(plain)).toEqual(parse({}))
    const input_schema = { type: 'object', default: null }
    const history = [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: { at: null }, caller: null }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: null, is_error: null }] },
    ]
    const { tools, messages } = parse({ tools: [tool({ input_schema, type: null })], messages: history })
    expect(tools?.[0]?.function.parameters).toEqual(input_schema)
    expect(messages[0]?.tool_calls?.[0]?.function.arguments).toBe('{"at":null}')
    expect(messages[1]).toEqual({ role: 'tool', tool_call_id: 'a', content: '' })
  })

  test.each([
    [{ type: 'adaptive' }, { thinking_enabled: true, reasoning_budget: -1 }],
    [{ type: 'disabled' }, { thinking_enabled: false, reasoning_budget: 0 }],
    [{ type: 'between_tools' }, {}],
  ])('converts thinking %j', (thinking, summary) => {
    expect(parse({ thinking })).toEqual({ ...parse({}), ...summary })
  })

  test.each([
    [{ type: 'auto' }, 'auto'],
    [{ type: 'none' }, 'none'],
    [
      { type: 'tool', name: 'look' },
      { type: 'function', function: { name: 'look' } },
    ],
  ])('converts tool_choice %j', (tool_choice, summary) => {
    expect(parse({ tools: [tool()], tool_choice }).tool_choice).toEqual(summary as never)
  })

  test('converts the vendor’s web search', () => {
    const user_location = { type: 'approximate', city: 'Bonn', country: null }
    const search = {
      type: 'web_search_20250305',
      name: 'web_search',
      max_uses: 3,
      user_location,
      allowed_domains: ['a.b'],
    }
    const request = parse({ tools: [search, tool({ type: 'custom' })] })
    expect(request.tools).toHaveLength(1)
    expect(request.web_search_options).toEqual({
      user_location: { type: 'approximate', approximate: { city: 'Bonn' } },
      filters: { allowed_domains: ['a.b'] },
    })
  })

  test('requires no limit for a token count', () => {
    const { max_tokens: _, ...rest } = REQUESTED
    expect(parseCount(rest).messages).toEqual([{ role: 'user', content: 'Hello' }])
    expect(refusalOf(rest)).toMatchObject({ code: 'missing_required_parameter', detail: { param: 'max_tokens' } })
  })
})

describe('Messages history', () => {
  test('converts tool results to separate messages before the other content', () => {
    const content = [
      { type: 'text', text: 'Here:' },
      { type: 'tool_result', tool_use_id: 'a', content: 'one', is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'two' }, IMAGE] },
      { type: 'tool_result', tool_use_id: 'c' },
      IMAGE,
    ]
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }
    expect(messagesOf({ role: 'user', content })).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'one', is_error: true },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'two' }, image] },
      { role: 'tool', tool_call_id: 'c', content: '' },
      { role: 'user', content: [{ type: 'text', text: 'Here:' }, image] },
    ] as never)
  })

  test('converts an earlier response: thinking, hidden thinking, text, calls; without the vendor’s own tools', () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'sig' },
      { type: 'thinking', thinking: 'unsigned', signature: '' },
      { type: 'redacted_thinking', data: 'hidden' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
      { type: 'text', text: 'a', citations: [] },
      { type: 'text', text: 'b' },
      { type: 'tool_use', id: 't', name: 'look', input: { at: 1 } },
    ]
    const origin = 'messages-compat'
    expect(messagesOf({ role: 'assistant', content })).toEqual([
      {
        role: 'assistant',
        content: 'ab',
        reasoning_content: 'hmunsigned',
        reasoning_details: [
          { text: 'hm', opaque: { origin, value: 'sig' } },
          { text: 'unsigned' },
          { opaque: { origin, value: 'hidden' } },
        ],
        tool_calls: [{ id: 't', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
      },
    ])
  })

  test('starts a new message at thinking after text, to keep the order', () => {
    const content = [
      { type: 'thinking', thinking: '1', signature: 'a' },
      { type: 'text', text: 'x' },
      { type: 'thinking', thinking: '2', signature: 'b' },
      { type: 'tool_use', id: 't', name: 'look', input: {} },
      { type: 'thinking', thinking: '3', signature: 'c' },
      { type: 'tool_use', id: 'u', name: 'look', input: {} },
    ]
    const converted = messagesOf({ role: 'assistant', content })
    expect(converted.map(({ content, tool_calls = [] }) => [content, tool_calls.length])).toEqual([
      ['x', 0],
      [null, 2],
    ])
    expect(converted.map(({ reasoning_content }) => reasoning_content)).toEqual(['1', '23'])
  })

  test('unwraps content that other vendors signed', () => {
    const hidden = { origin: 'chatcompat-response', value: 'enc', id: 'rs_1' } as const
    const thought = { origin: 'contentgen-compat', value: 'sig' } as const
    const content = [
      { type: 'redacted_thinking', data: encodeSigned({ opaque: hidden }, { home: 'messages-compat' }) },
      {
        type: 'thinking',
        thinking: 'words',
        signature: encodeSigned({ opaque: thought }, { home: 'messages-compat' }),
      },
      {
        type: 'thinking',
        thinking: '',
        signature: encodeSigned({ opaque: thought, owner: 't' }, { home: 'messages-compat' }),
      },
      { type: 'tool_use', id: 't', name: 'look', input: {} },
    ]
    expect(messagesOf({ role: 'assistant', content })[0]).toMatchObject({
      reasoning_details: [{ opaque: hidden }, { text: 'words', opaque: thought }],
      tool_calls: [{ id: 't', opaque: thought }],
    })
  })

  test.each([PLAIN, '', undefined])('treats reasoning with the signature %p as unsigned', (signature) => {
    const block = { type: 'thinking', thinking: 'hm', ...(signature === undefined ? {} : { signature }) }
    const [message] = messagesOf({ role: 'assistant', content: [block, { type: 'text', text: 'x' }] })
    expect(message).toMatchObject({ reasoning_content: 'hm', reasoning_details: [{ text: 'hm' }] })
    expect(message?.reasoning_details?.[0]).not.toHaveProperty('opaque')
  })

  test('treats a signature that only looks wrapped as the vendor’s', () => {
    for (const value of ['gatehouse.', 'gatehouse.!!', `gatehouse.${btoa('["nobody","x"]')}`, 'gatehouse.bnVsbA']) {
      const [message] = messagesOf({ role: 'assistant', content: [{ type: 'redacted_thinking', data: value }] })
      expect(message?.reasoning_details).toEqual([{ opaque: { origin: 'messages-compat', value } }])
    }
  })

  test('leaves out the billing line that Claude Code puts before its system prompt', () => {
    const line = 'x-anthropic-billing-header: cc_version=2.1.330.76f; cc_entrypoint=sdk-cli; cch=36ee5;'
    const promptOf = (system: unknown) =>
      parseMessages({ model: 'm', max_tokens: 1, system, messages: [{ role: 'user', content: 'Hi' }] }).messages
    const user = { role: 'user' as const, content: 'Hi' }
    const prompt = (content: string) => [{ role: 'system' as const, content }, user]
    const text = (value: string) => ({ type: 'text', text: value })
    expect(promptOf([text(line), text('Be brief.')])).toEqual(prompt('Be brief.'))
    expect(promptOf(`${line}\nBe brief.`)).toEqual(prompt('Be brief.'))
    expect(promptOf([text(line)])).toEqual([user])
    const quoted = `Explain this line:\n${line}`
    expect(promptOf([text(quoted)])).toEqual(prompt(quoted))
  })

  test('keeps system messages within the conversation', () => {
    const summary = messagesOf(
      { role: 'user', content: 'a' },
      { role: 'system', content: [{ type: 'text', text: 'b' }] },
      { role: 'assistant', content: 'c' },
    )
    expect(summary.map(({ role }) => role)).toEqual(['user', 'system', 'assistant'])
  })

  test('converts documents of every kind', () => {
    const document = (source: object, more: object = {}) => ({ type: 'document', source, ...more })
    const content = [
      document({ type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, { title: 'a.pdf', context: 'About.' }),
      document({ type: 'base64', media_type: 'application/pdf', data: 'JVBE' }),
      document({ type: 'url', url: 'https://a.example/b.pdf' }),
      document({ type: 'text', media_type: 'text/plain', data: 'words' }, { title: 'T' }),
      document({ type: 'content', content: [{ type: 'text', text: 'part' }, IMAGE] }),
      document({ type: 'content', content: 'plain' }),
      { type: 'search_result', source: 'https://a.example', title: 'S', content: [{ type: 'text', text: 'found' }] },
    ]
    const text = (texts: string) => ({ type: 'text', text: texts })
    expect(messagesOf({ role: 'user', content })[0]?.content).toEqual([
      text('About.'),
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE', filename: 'document.pdf' } },
      { type: 'file', file: { file_url: 'https://a.example/b.pdf' } },
      text('T\n\nwords'),
      text('part'),
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
      text('plain'),
      text('S\nhttps://a.example\nfound'),
    ] as never)
  })
})

describe('refused Messages requests, with the client’s field', () => {
  const inUser = (block: object) => ({ messages: [...REQUESTED.messages, { role: 'user', content: [block] }] })
  const REFUSED: [param: string, code: string, more: object][] = [
    ['max_tokens', 'invalid_value', { max_tokens: 0 }],
    ['max_tokens', 'missing_required_parameter', { max_tokens: null }],
    ['messages', 'invalid_value', { messages: [] }],
    ['model', 'missing_required_parameter', { model: null }],
    ['temperature', 'invalid_type', { temperature: '1' }],
    ['messages[0].role', 'invalid_value', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].content', 'missing_required_parameter', { messages: [{ role: 'user' }] }],
    ['messages[1].content[0].type', 'invalid_value', inUser({ type: 'hologram' })],
    [
      'messages[1].content[0].source.data',
      'missing_required_parameter',
      inUser({ type: 'image', source: { type: 'base64', media_type: 'image/png' } }),
    ],
    [
      'messages[1].content[0].source.type',
      'unsupported_parameter',
      inUser({ type: 'image', source: { type: 'file', file_id: 'f' } }),
    ],
    [
      'messages[1].content[0].source.type',
      'unsupported_parameter',
      inUser({ type: 'document', source: { type: 'file', file_id: 'f' } }),
    ],
    [
      'messages[1].content[0].content[0].source.type',
      'unsupported_parameter',
      inUser({
        type: 'tool_result',
        tool_use_id: 'a',
        content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }],
      }),
    ],
    ['tools[0].type', 'unsupported_parameter', { tools: [{ type: 'bash_20250124', name: 'bash' }] }],
    ['tools[1].type', 'unsupported_parameter', { tools: [tool(), { type: 'web_fetch_20250910', name: 'web_fetch' }] }],
    ['tools[0].input_schema', 'missing_required_parameter', { tools: [{ name: 'a' }] }],
    ['tools[0].name', 'missing_required_parameter', { tools: [{ input_schema: {} }] }],
    ['tool_choice.type', 'invalid_value', { tool_choice: { type: 'all' } }],
    ['tool_choice.name', 'missing_required_parameter', { tool_choice: { type: 'tool' } }],
    ['thinking.budget_tokens', 'missing_required_parameter', { thinking: { type: 'enabled' } }],
    ['output_config.effort', 'invalid_value', { output_config: { effort: 'utmost' } }],
    [
      'output_config.format.schema',
      'missing_required_parameter',
      { output_config: { format: { type: 'json_schema' } } },
    ],
    ['mcp_servers', 'unsupported_parameter', { mcp_servers: [{}] }],
    ['inference_geo', 'unsupported_parameter', { inference_geo: 'us' }],
    ['container', 'unsupported_parameter', { container: { skills: [{}] } }],
    ['thread', 'thread_unsupported_request', { thread: { type: 'create' } }],
    ['thread', 'thread_unsupported_request', { thread: { type: 'continue', previous_message_id: 'msg_1' } }],
  ]
  for (const [param, code, more] of REFUSED) {
    test(`${param} in ${JSON.stringify(more).slice(0, 80)}`, () => {
      expect(refusalOf({ ...REQUESTED, ...more })).toMatchObject({ code, detail: { param } })
    })
  }

  test('refuses a body that is not an object', () => {
    expect(refusalOf([])).toMatchObject({ code: 'invalid_type' })
  })

  test('accepts empty lists of refused fields, which have no effect', () => {
    expect(parse({ mcp_servers: [], inference_geo: 'global', container: 'c', thread: null })).toEqual(parse({}))
  })
})

describe('Messages errors', () => {
  const dialect = messagesDialect()
  const body = {
    ...REQUESTED,
    system: 'S',
    tools: [tool()],
    messages: [
      ...REQUESTED.messages,
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }, { type: 'text', text: 'x' }, IMAGE] },
    ],
  }
  const request = dialect.parse(body)
  const output = (param: string) =>
    dialect.errorForClient?.(new GatewayError('unsupported_value', `"${param}" is wrong.`, { param }), request)

  test.each([
    // The canonical messages are: system, user, tool, user.
    ['messages[3].content[1].type', 'messages[1].content[2].type'],
    ['messages[2].tool_call_id', 'messages[1].content[0]'],
    ['messages[1].content', 'messages[0].content'],
    ['messages[0].content', 'system'],
    ['response_format', 'output_config.format'],
    ['stop', 'stop_sequences'],
    ['tools[0].function.parameters', 'tools[0].parameters'],
    ['temperature', 'temperature'],
  ])('translate the place %s to %s', (gateway, client) => {
    expect(output(gateway)).toMatchObject({ message: `"${client}" is wrong.`, detail: { param: client } })
  })

  test('use the client’s names of parts', () => {
    const param = 'messages[3].content[1].type'
    const texts = `"${param}" must be "text", not the string "image_url".`
    const error = dialect.errorForClient?.(new GatewayError('unsupported_value', texts, { param }), request)
    expect(error?.message).toBe('"messages[1].content[2].type" must be "text", not the string "image".')
  })

  test.each([
    ['invalid_api_key', 'authentication_error'],
    ['model_not_allowed', 'permission_error'],
    ['model_not_found', 'not_found_error'],
    ['model_retired', 'not_found_error'],
    ['request_too_large', 'request_too_large'],
    ['invalid_value', 'invalid_request_error'],
    ['rate_limit_exceeded', 'rate_limit_error'],
    ['insufficient_quota', 'billing_error'],
    ['server_is_overloaded', 'overloaded_error'],
    ['upstream_timeout', 'timeout_error'],
    ['request_timeout', 'timeout_error'],
    ['upstream_auth', 'api_error'],
    ['internal_error', 'api_error'],
  ] as const)('give %s the type %s', (code, type) => {
    expect(dialect.encodeError?.(new GatewayError(code, 'Words.', { param: 'x' }), 'req_1')).toEqual({
      type: 'error',
      error: { type, message: 'Words.', details: { error_code: code, param: 'x' } },
      request_id: 'req_1',
    })
  })
})
