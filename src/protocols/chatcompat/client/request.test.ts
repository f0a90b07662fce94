import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../../spec/error.ts'
import { parseChatRequest } from './request.ts'

const hello = { model: 'a/b', messages: [{ role: 'user', content: 'hi' }] }
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }

function refusalOf(body: unknown): { code: string; param: string | undefined; message: string } {
  try {
    parseChatRequest(body)
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, param: error.detail.param, message: error.message }
    throw error
  }
  throw new Error('it was accepted')
}

const user = (content: unknown) => ({ ...hello, messages: [{ role: 'user', content }] })

describe('refused requests, with the field and the rule', () => {
  const cases: [string, unknown, string, string | undefined, string][] = [
    ['a body that is no object', [], 'invalid_type', undefined, 'JSON object'],
    ['null', null, 'invalid_type', undefined, 'null'],
    ['no model', { messages: hello.messages }, 'missing_required_parameter', 'model', 'required'],
    ['no messages', { model: 'a/b' }, 'missing_required_parameter', 'messages', 'required'],
    ['no message', { ...hello, messages: [] }, 'invalid_value', 'messages', 'at least 1 item'],
    ['messages that are no list', { ...hello, messages: 'hi' }, 'invalid_type', 'messages', 'an array'],
    ['a message that is no object', { ...hello, messages: ['hi'] }, 'invalid_type', 'messages[0]', 'an object'],
    [
      'an unknown role',
      { ...hello, messages: [{ role: 'robot', content: '' }] },
      'invalid_value',
      'messages[0].role',
      '"system", "developer", "user"',
    ],
    [
      'a message without role',
      { ...hello, messages: [{ content: '' }] },
      'missing_required_parameter',
      'messages[0].role',
      'required',
    ],
    ['no content', user(undefined), 'missing_required_parameter', 'messages[0].content', 'required'],
    ['content that is null', user(null), 'missing_required_parameter', 'messages[0].content', 'required'],
    [
      'an earlier response without any content',
      { ...hello, messages: [...hello.messages, { role: 'assistant' }] },
      'missing_required_parameter',
      'messages[1].content',
      'without "tool_calls"',
    ],
    ['content of a wrong type', user(5), 'invalid_type', 'messages[0].content', 'a string or an array or null'],
    [
      'a part of an unknown type',
      user([{ type: 'smell' }]),
      'invalid_value',
      'messages[0].content[0].type',
      '"image_url"',
    ],
    ['a part without type', user([{}]), 'missing_required_parameter', 'messages[0].content[0].type', 'required'],
    [
      'a text part without text',
      user([{ type: 'text' }]),
      'missing_required_parameter',
      'messages[0].content[0].text',
      'required',
    ],
    [
      'an image part without url',
      user([{ type: 'image_url', image_url: {} }]),
      'missing_required_parameter',
      'messages[0].content[0].image_url.url',
      'required',
    ],
    ['a number as text', { ...hello, temperature: '1' }, 'invalid_type', 'temperature', 'a number'],
    ['a fraction as integer', { ...hello, max_tokens: 1.5 }, 'invalid_type', 'max_tokens', 'an integer'],
    ['a boolean as text', { ...hello, stream: 'true' }, 'invalid_type', 'stream', 'a boolean'],
    ['five stops', { ...hello, stop: ['a', 'b', 'c', 'd', 'e'] }, 'invalid_value', 'stop', 'at most 4 items'],
    [
      'a tool without name',
      { ...hello, tools: [{ type: 'function', function: {} }] },
      'missing_required_parameter',
      'tools[0].function.name',
      'required',
    ],
    [
      'a tool of an unknown type',
      { ...hello, tools: [{ type: 'magic', magic: {} }] },
      'invalid_value',
      'tools[0].type',
      '"function", "custom"',
    ],
    [
      'a custom tool without name',
      { ...hello, tools: [{ type: 'custom', custom: {} }] },
      'missing_required_parameter',
      'tools[0].custom.name',
      'required',
    ],
    [
      'a grammar in an unknown syntax',
      {
        ...hello,
        tools: [
          {
            type: 'custom',
            custom: { name: 'f', format: { type: 'grammar', grammar: { definition: '', syntax: 'bnf' } } },
          },
        ],
      },
      'invalid_value',
      'tools[0].custom.format.grammar.syntax',
      '"lark", "regex"',
    ],
    [
      'an earlier custom call without input',
      {
        ...hello,
        messages: [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f' } }] }],
      },
      'missing_required_parameter',
      'messages[0].tool_calls[0].custom.input',
      'required',
    ],
    [
      'an unknown tool choice',
      { ...hello, tool_choice: 'maybe' },
      'invalid_value',
      'tool_choice',
      '"none", "auto", "required"',
    ],
    [
      'an unknown response format',
      { ...hello, response_format: { type: 'xml' } },
      'invalid_value',
      'response_format.type',
      '"json_schema"',
    ],
    [
      'a schema format without schema',
      { ...hello, response_format: { type: 'json_schema' } },
      'missing_required_parameter',
      'response_format.json_schema',
      'required',
    ],
  ]
  for (const [what, body, code, param, text] of cases) {
    test(what, () => {
      const refusal = refusalOf(body)
      expect([refusal.code, refusal.param]).toEqual([code, param])
      expect(refusal.message).toContain(text)
    })
  }
})

describe('the bounds of sections 2.2 and 8, on both sides', () => {
  const bounds: [string, number, number, string][] = [
    ['frequency_penalty', -2, 2, 'from -2 to 2'],
    ['presence_penalty', -2, 2, 'from -2 to 2'],
    ['temperature', 0, 2, 'from 0 to 2'],
    ['top_p', 0, 1, 'from 0 to 1'],
  ]
  for (const [field, low, high, text] of bounds) {
    test(`${field} is ${text}`, () => {
      for (const value of [low, high, (low + high) / 2]) {
        expect(parseChatRequest({ ...hello, [field]: value })).toMatchObject({ [field]: value })
      }
      for (const value of [low - 0.001, high + 0.001]) {
        const refusal = refusalOf({ ...hello, [field]: value })
        expect([refusal.code, refusal.param]).toEqual(['invalid_value', field])
        expect(refusal.message).toContain(text)
      }
    })
  }

  test('requires at least 1 for max_tokens and its alias', () => {
    for (const field of ['max_tokens', 'max_completion_tokens', 'n']) {
      expect(parseChatRequest({ ...hello, [field]: 1 })).toMatchObject({ [field]: 1 })
      expect(refusalOf({ ...hello, [field]: 0 })).toMatchObject({ code: 'invalid_value', param: field })
    }
  })
})

describe('accepted requests', () => {
  test('treats null as absent, at the top level and within a message', () => {
    const request = parseChatRequest({
      ...hello,
      temperature: null,
      stream: null,
      tools: null,
      messages: [
        { role: 'user', content: 'hi', name: null },
        { role: 'assistant', content: null, tool_calls: null, refusal: null },
      ],
    })
    expect(Object.keys(request).sort()).toEqual(['messages', 'model'])
    expect(request.messages).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null },
    ])
  })

  test('ignores unknown top-level fields, and never sets a prototype', () => {
    expect(parseChatRequest({ ...hello, frobnicate: 1 })).toEqual({ ...hello, frobnicate: 1 } as never)
    const request = parseChatRequest(JSON.parse(`{"__proto__": {"stream": true}, ${JSON.stringify(hello).slice(1)}`))
    expect(request.stream).toBeUndefined()
    expect(Object.getPrototypeOf(request)).toBe(Object.prototype)
  })

  test('accepts the roles, parts and tool calls that clients send', () => {
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
    const messages = [
      { role: 'developer', content: 'be brief' },
      { role: 'user', content: [{ type: 'text', text: 'look' }, image] },
      { role: 'assistant', content: '', tool_calls: [call], reasoning_content: 'hm' },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
      { role: 'assistant', tool_calls: [call] },
    ]
    expect(parseChatRequest({ ...hello, messages }).messages).toEqual(messages as never)
  })

  test('accepts extra fields with any value, because their bounds depend on the model', () => {
    const extra = { repetition_penalty: -1, thinking_enabled: 'yes', web_search: [] }
    expect(parseChatRequest({ ...hello, ...extra })).toEqual({ ...hello, ...extra } as never)
  })

  test('keeps unknown members of web_search', () => {
    const web_search = { enable: true, engine: 'x' }
    expect(parseChatRequest({ ...hello, web_search }).web_search).toEqual(web_search)
  })

  test('accepts signed content that comes back with the history', () => {
    const opaque = { origin: 'messages-compat', value: 'c2ln' }
    const message = {
      role: 'assistant',
      content: '',
      reasoning_details: [{ text: 'hm', opaque }],
      tool_calls: [{ id: 'c1', function: { name: 'f', arguments: '{}' }, opaque }],
      images: [{ ...image, opaque }],
    }
    expect(parseChatRequest({ ...hello, messages: [message] }).messages).toEqual([message] as never)
  })
})

test.each([
  ['reasoning_details', { text: 'hm' }],
  ['tool_calls', { id: 'c1', function: { name: 'f', arguments: '{}' } }],
  ['images', image],
])('refuses a signature of an unknown origin in %s', (name, holder) => {
  const message = { role: 'assistant', content: '', [name]: [{ ...holder, opaque: { origin: 'x', value: '' } }] }
  const { code, param } = refusalOf({ ...hello, messages: [message] })
  expect([code, param]).toEqual(['invalid_value', `messages[0].${name}[0].opaque.origin`])
})
