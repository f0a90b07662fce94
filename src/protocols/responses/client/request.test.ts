/** Decoding of Responses requests, and refusals with the client's field and the rule. */
import { describe, expect, test } from 'bun:test'
import { manualPage } from '../../../../test/kit/manual.ts'
import { GatewayError } from '../../../spec/error.ts'
import { PLAIN } from '../../shared/signed-content.ts'
import { errorForClient } from './error.ts'
import { decodeEncrypted, encodeEncrypted } from './items.ts'
import { checkedRequest, REFUSED, translatedRequest } from './request.ts'
import { IGNORED_ITEMS, ITEM_TYPES, ResponsesRequest } from './schema.ts'

const parse = (more: object) =>
  translatedRequest(checkedRequest({ model: 'a/b', input: 'Hello', ...more }), { items: [], ids: [] }).request
const messagesOf = (...input: object[]) => parse({ input }).messages
const refusalOf = (more: object): unknown => {
  try {
    parse(more)
  } catch (error) {
    return error
  }
}
const refused = (more: object) => {
  const error = refusalOf(more)
  if (!(error instanceof GatewayError)) throw new Error('It was taken.')
  return [error.code, error.detail.param]
}
const user = (content: unknown) => ({ role: 'user', content })

describe('Responses request fields', () => {
  test('converts every known field', () => {
    const request = parse({
      instructions: 'Be brief.',
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 0.1,
      frequency_penalty: -0.1,
      max_output_tokens: 99,
      parallel_tool_calls: false,
      top_logprobs: 2,
      metadata: { a: 'b' },
      user: 'u-1',
      safety_identifier: 's-1',
      service_tier: 'flex',
      prompt_cache_key: 'k-1',
      reasoning: { effort: 'high', summary: 'concise' },
      text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true } },
      tools: [{ type: 'function', name: 'look', description: 'd', parameters: { type: 'object' }, strict: true }],
      tool_choice: { type: 'function', name: 'look' },
      truncation: 'auto',
      stream_options: { include_obfuscation: false },
      of_tomorrow: 1,
      n: 1,
    })
    expect(request).toEqual({
      model: 'a/b',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 0.1,
      frequency_penalty: -0.1,
      max_tokens: 99,
      parallel_tool_calls: false,
      logprobs: true,
      top_logprobs: 2,
      metadata: { a: 'b' },
      user: 'u-1',
      safety_identifier: 's-1',
      service_tier: 'flex',
      prompt_cache_key: 'k-1',
      reasoning_effort: 'high',
      reasoning_summary: 'concise',
      verbosity: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
      tools: [
        {
          type: 'function',
          function: { name: 'look', description: 'd', parameters: { type: 'object' }, strict: true },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'look' } },
    })
  })

  test('treats null as absent, except in the client`s own data', () => {
    const nothing = {
      instructions: null,
      temperature: null,
      text: { format: null },
      reasoning: { effort: null, summary: null },
      tools: [{ type: 'function', name: 'look', parameters: { default: null }, strict: null, description: null }],
      previous_response_id: null,
      conversation: null,
      prompt: null,
      background: null,
    }
    expect(parse(nothing)).toEqual({
      model: 'a/b',
      messages: [{ role: 'user', content: 'Hello' }],
      tools: [{ type: 'function', function: { name: 'look', parameters: { default: null } } }],
    })
  })

  test.each([
    [{ conversation: { name: 'conv_1' } }, 'missing_required_parameter', 'conversation.id'],
    [{ prompt: { id: 'pmpt_1' } }, 'unsupported_parameter', 'prompt'],
    [{ moderation: { model: 'm' } }, 'unsupported_parameter', 'moderation'],
    [{ input: undefined, messages: [] }, 'unsupported_parameter', 'messages'],
    [{ max_tokens: 5 }, 'unsupported_parameter', 'max_tokens'],
    [{ max_completion_tokens: 5 }, 'unsupported_parameter', 'max_completion_tokens'],
    [{ response_format: { type: 'json_object' } }, 'unsupported_parameter', 'response_format'],
    [{ reasoning_effort: 'low' }, 'unsupported_parameter', 'reasoning_effort'],
    [{ stop: ['x'] }, 'unsupported_parameter', 'stop'],
    [{ n: 2 }, 'unsupported_parameter', 'n'],
    [{ truncation: 'sometimes' }, 'invalid_value', 'truncation'],
    [{ max_output_tokens: 0 }, 'invalid_value', 'max_output_tokens'],
    [{ temperature: 2.1 }, 'invalid_value', 'temperature'],
    [{ input: 5 }, 'invalid_type', 'input'],
    [{ input: undefined }, 'missing_required_parameter', 'input'],
    [{ input: [] }, 'missing_required_parameter', 'input'],
    [{ tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].name'],
    [{ tools: [{ type: 'function', name: 'a' }, { type: 'mcp' }] }, 'unsupported_parameter', 'tools[1].type'],
    [{ tool_choice: { type: 'file_search' } }, 'unsupported_parameter', 'tool_choice.type'],
    [{ tool_choice: { type: 'function' } }, 'missing_required_parameter', 'tool_choice.name'],
    [{ input: [{ type: 'computer_call', id: 'x' }] }, 'unsupported_parameter', 'input[0].type'],
    [{ input: [user('x'), { type: 'item_reference', id: 'msg_1' }] }, 'invalid_value', 'input[1].id'],
    [{ input: [user([{ type: 'input_image' }])] }, 'missing_required_parameter', 'input[0].content[0].image_url'],
    [
      { input: [user([{ type: 'input_image', file_id: 'f' }])] },
      'unsupported_parameter',
      'input[0].content[0].file_id',
    ],
    [{ input: [user([{ type: 'input_file', file_id: 'f' }])] }, 'unsupported_parameter', 'input[0].content[0].file_id'],
    [{ input: [user([{ type: 'input_file' }])] }, 'missing_required_parameter', 'input[0].content[0].file_data'],
    [
      { input: [{ role: 'assistant', content: [{ type: 'input_image', image_url: 'https://a.example' }] }] },
      'unsupported_parameter',
      'input[0].content[0].type',
    ],
  ])('refuses %j with %s at %s', (more, code, param) => {
    expect(refused(more)).toEqual([code, param])
  })
})

describe('Responses tools', () => {
  test.each(['web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11'])(
    'converts %s to a web search',
    (type) => {
      const search = {
        type,
        search_context_size: 'low',
        user_location: { type: 'approximate', country: 'CH' },
        filters: { allowed_domains: ['a.example'] },
      }
      expect(parse({ tools: [search] })).toMatchObject({
        web_search_options: {
          search_context_size: 'low',
          user_location: { type: 'approximate', approximate: { country: 'CH' } },
          filters: { allowed_domains: ['a.example'] },
        },
      })
    },
  )

  test('converts a custom tool to a function with one text, and describes its grammar', () => {
    const format = { type: 'grammar', syntax: 'regex', definition: '[a-z]+' }
    const { tools, tool_choice } = parse({
      tools: [{ type: 'custom', name: 'say', description: 'Says.', format }],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'custom', name: 'say' }] },
    })
    expect(tools?.[0]?.function).toMatchObject({ name: 'say', parameters: { required: ['input'] } })
    expect(tools?.[0]?.function.description).toBe('Says.\n\nThe input must follow this grammar (regex):\n[a-z]+')
    expect(tool_choice).toEqual({
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'say' } }] },
    })
  })
})

describe('Responses items', () => {
  test('joins reasoning, text and calls of one response to one message, followed by results', () => {
    expect(
      messagesOf(
        user('Weather?'),
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'ENC' },
        { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
        { type: 'function_call', call_id: 'c2', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: 'Sun' },
        {
          type: 'function_call_output',
          call_id: 'c2',
          output: [
            { type: 'input_text', text: 'See' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
          ],
        },
        user('Thanks'),
      ),
    ).toEqual([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'I look.',
        reasoning_content: 'Hm.',
        reasoning_details: [{ text: 'Hm.', opaque: { origin: 'chatcompat-response', value: 'ENC', id: 'rs_1' } }],
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } },
          { id: 'c2', type: 'function', function: { name: 'look', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'Sun' },
      {
        role: 'tool',
        tool_call_id: 'c2',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        ],
      },
      { role: 'user', content: 'Thanks' },
    ])
  })

  test('starts a new message at reasoning after text', () => {
    const thought = { type: 'reasoning', summary: [{ text: 'Then.' }] }
    const converted = messagesOf(user('x'), { role: 'assistant', content: 'One.' }, thought, {
      role: 'assistant',
      content: 'Two.',
    })
    expect(converted.slice(1)).toEqual([
      { role: 'assistant', content: 'One.' },
      { role: 'assistant', content: 'Two.', reasoning_content: 'Then.' },
    ])
  })

  test('attaches signatures to their call or image', () => {
    const opaque = { origin: 'contentgen-compat', value: 'SIG' } as const
    const signed = (owner: string) => ({
      type: 'reasoning',
      id: 'rs_9',
      summary: [],
      encrypted_content: encodeEncrypted({ opaque, owner }, 'rs_9'),
    })
    const [, message] = messagesOf(
      user('x'),
      signed('c1'),
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      signed('ig_1'),
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AA==', output_format: 'webp' },
    )
    expect(message).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' }, opaque }],
      images: [{ type: 'image_url', image_url: { url: 'data:image/webp;base64,AA==' }, opaque }],
    })
  })

  test('ignores calls of a vendor`s own tools', () => {
    const done = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } }
    expect(messagesOf(user('x'), done, { role: 'assistant', content: 'Found.' })).toHaveLength(2)
  })
})

describe('signed content in items', () => {
  test.each([
    { opaque: { origin: 'messages-compat' as const, value: 'SIG', id: 'x' } },
    { opaque: { origin: 'chatcompat-response' as const, value: 'ENC', id: 'rs_of_the_vendor' } },
    { opaque: { origin: 'contentgen-compat' as const, value: 'SIG' }, owner: 'call_1' },
  ])('returns %j unchanged', (carried) => {
    expect(decodeEncrypted(encodeEncrypted(carried, 'rs_ours'), 'rs_ours')).toEqual(carried)
  })

  test('stays unchanged if it is of the API`s own provider', () => {
    const opaque = { origin: 'chatcompat-response' as const, value: 'ENC', id: 'rs_1' }
    expect(encodeEncrypted({ opaque }, 'rs_1')).toBe('ENC')
    expect(decodeEncrypted('ENC', 'rs_1')).toEqual({ opaque })
  })

  test('is a plain marker for unsigned reasoning', () => {
    expect(encodeEncrypted({}, 'rs_1')).toBe(PLAIN)
    expect(
      messagesOf(user('x'), { type: 'reasoning', summary: [{ text: 'Hm.' }], encrypted_content: PLAIN })[1],
    ).toEqual({
      role: 'assistant',
      content: null,
      reasoning_content: 'Hm.',
    })
  })

  test.each(['gatehouse.', 'gatehouse.!!!', `gatehouse.${Buffer.from('["no such",1]').toString('base64url')}`])(
    'treats %s as text of a vendor',
    (text) => {
      expect(decodeEncrypted(text, undefined)).toEqual({ opaque: { origin: 'chatcompat-response', value: text } })
    },
  )
})

test('translates the place of a message to the client`s item', () => {
  const request = parse({
    instructions: 'Be brief.',
    input: [
      user('x'),
      user([
        { type: 'input_text', text: 'y' },
        { type: 'input_image', image_url: 'data:,' },
      ]),
    ],
    tools: [{ type: 'web_search' }, { type: 'function', name: 'look' }],
  })
  const output = (param: string) => {
    const error = errorForClient(
      new GatewayError('unsupported_value', `"${param}" must be "text", not "image_url".`, { param }),
      request,
    )
    return [error.detail.param, error.message]
  }
  expect(output('messages[2].content[1].type')).toEqual([
    'input[1].content[1].type',
    '"input[1].content[1].type" must be "input_text", not "input_image".',
  ])
  expect(output('messages[0].content')[0]).toBe('instructions')
  expect(output('tools[0].function.name')[0]).toBe('tools[1].name')
  expect(output('max_tokens')[0]).toBe('max_output_tokens')
  expect(output('seed')[0]).toBe('seed')
})

test('applies a setting that an item changes in place of the request`s', () => {
  const update = (more: object) => ({ type: 'configuration_update', ...more })
  const format = { type: 'json_schema', name: 'n', schema: {} }
  const input = [
    { role: 'user', content: 'x' },
    update({ reasoning: { effort: 'high' } }),
    update({ reasoning: { effort: null }, text: { format } }),
    update({ reasoning: { effort: 'minimal' } }),
  ]
  expect(parse({ input, reasoning: { effort: 'low', summary: 'auto' } })).toMatchObject({
    messages: [user('x')],
    reasoning_effort: 'minimal',
    reasoning_summary: 'auto',
    response_format: { json_schema: { name: 'n' } },
  })
  const bad = [input[0], update({ reasoning: { effort: 'endless' } })]
  expect(refused({ input: bad })).toEqual(['invalid_value', 'input[1].reasoning.effort'])
})

test('drops a search without web access, which only its own vendor supports', () => {
  const search = (more: object) => parse({ tools: [{ type: 'web_search', ...more }] }).web_search_options
  expect(search({ external_web_access: false })).toBeUndefined()
  expect(search({ external_web_access: true })).toEqual({})
  expect(search({})).toEqual({})
})

describe('the manual page', () => {
  const page = manualPage('responses.md')
  /** The names in its lists. */
  const named = new Set(
    [...page.matchAll(/^- .*$/gm)].flatMap(([line]) => [...line.matchAll(/`(\w+)`/g)].map(([, name]) => name)),
  )

  test('lists every field that is read', () => {
    const refused = REFUSED.map(({ field }) => field)
    expect([...Object.keys(ResponsesRequest.properties), ...refused].filter((field) => !named.has(field))).toEqual([])
  })
  test('lists every item', () => {
    expect([...ITEM_TYPES, ...IGNORED_ITEMS].filter((type) => !named.has(type))).toEqual([])
  })
})
