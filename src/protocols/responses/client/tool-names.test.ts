/** Tools in namespaces: their names for providers, and the reverse. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { GatewayError } from '../../../spec/error.ts'
import { checkedRequest, translatedRequest } from './request.ts'
import { createToolNames, flatTools } from './tool-names.ts'

const fn = (name: string, more: object = {}) => ({ type: 'function', name, ...more })
const custom = (name: string) => ({ type: 'custom', name })
const space = (name: string, ...tools: { type: string; name: string }[]) => ({ type: 'namespace', name, tools })
const tableOf = (...tools: Parameters<typeof flatTools>[0]) => createToolNames(flatTools(tools, 'tools'))

const parse = (more: object) =>
  translatedRequest(checkedRequest({ model: 'a/b', input: 'Hello', ...more }), { items: [], ids: [] })
const refused = (more: object) => {
  try {
    parse(more)
  } catch (error) {
    if (error instanceof GatewayError) return [error.code, error.detail.param]
    throw error
  }
  throw new Error('It was accepted.')
}
const toolsOf = (more: object) => parse(more).request.tools?.map(({ function: { name } }) => name)

describe('the name of a tool', () => {
  test('stays without a namespace, and has it as a prefix otherwise', () => {
    const names = tableOf(fn('look'), space('mcp__notes', fn('read'), custom('patch')))
    expect(names.vendorName({ name: 'look' })).toBe('look')
    expect(names.vendorName({ name: 'read', namespace: 'mcp__notes' })).toBe('mcp__notes__read')
    expect(names.toolOf('look')).toEqual({ type: 'function', name: 'look' })
    expect(names.toolOf('mcp__notes__read')).toEqual({ type: 'function', name: 'read', namespace: 'mcp__notes' })
    expect(names.toolOf('mcp__notes__patch')).toEqual({ type: 'custom', name: 'patch', namespace: 'mcp__notes' })
    expect(names.toolOf('of_the_model')).toEqual({ type: 'function', name: 'of_the_model' })
  })

  test('is cut to 64 characters, with a hash at the end', () => {
    const name = (length: number) => tableOf().vendorName({ namespace: 'crm', name: 'x'.repeat(length - 5) })
    expect(name(64)).toBe(`crm__${'x'.repeat(59)}`)
    expect(name(65)).toMatch(/^crm__x{50}_[0-9a-f]{8}$/)
    expect(name(65)).not.toBe(name(66))
  })

  test('does not depend on the order of tools, even if characters were replaced', () => {
    const [one, other] = [space('a.b', fn('c')), space('a_b', fn('c'))]
    const there = tableOf(one, other)
    const back = tableOf(other, one)
    for (const namespace of ['a.b', 'a_b']) {
      expect(there.vendorName({ namespace, name: 'c' })).toBe(back.vendorName({ namespace, name: 'c' }))
    }
    expect(there.vendorName({ namespace: 'a_b', name: 'c' })).toBe('a_b__c')
  })

  test('belongs to the tool without a namespace if two would share it', () => {
    const names = tableOf(space('a', fn('b')), fn('a__b'))
    expect(names.toolOf('a__b')).toEqual({ type: 'function', name: 'a__b' })
    const other = names.vendorName({ namespace: 'a', name: 'b' })
    expect(other).toMatch(/^a__b_[0-9a-f]{8}$/)
    expect(names.toolOf(other)).toMatchObject({ namespace: 'a', name: 'b' })
  })

  test('leads back to the same tool and follows the rules of vendors, for all names', () => {
    const short = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom('a', '_', '.', '-', '1', 'ü') })
    const long = fc.string({ minLength: 30, maxLength: 70, unit: fc.constantFrom('a', '_') })
    const word = fc.oneof({ weight: 4, arbitrary: short }, long)
    const tool = fc.record({ namespace: word, name: word })
    fc.assert(
      fc.property(fc.array(tool, { maxLength: 8 }), fc.array(tool, { maxLength: 3 }), (offered, earlier) => {
        const names = tableOf(...offered.map(({ namespace, name }) => space(namespace, fn(name))))
        const seen = new Map<string, string>()
        for (const one of [...offered, ...earlier]) {
          const name = names.vendorName(one)
          expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/)
          expect(names.toolOf(name)).toMatchObject(one)
          const key = JSON.stringify([one.namespace, one.name])
          expect(seen.get(name) ?? key).toBe(key)
          seen.set(name, key)
        }
      }),
    )
  })
})

describe('tools of a request', () => {
  test('are one flat list, with the description of a namespace on its first tool', () => {
    const tools = [
      fn('look', { description: 'Looks.' }),
      {
        ...space('crm', fn('list'), fn('get')),
        description: 'The customers.',
        tools: [
          fn('list', { description: 'Lists.', parameters: { type: 'object' }, defer_loading: true }),
          custom('note'),
        ],
      },
      { type: 'tool_search' },
    ]
    expect(parse({ tools }).request.tools).toMatchObject([
      { function: { name: 'look', description: 'Looks.' } },
      {
        function: {
          name: 'crm__list',
          description: 'Namespace crm: The customers.\n\nLists.',
          parameters: { type: 'object' },
        },
      },
      { function: { name: 'crm__note', parameters: { required: ['input'] } } },
    ])
  })

  test('may be added by input items, in place of an earlier definition', () => {
    const tools = [fn('look', { description: 'old' }), fn('other')]
    const input = [
      {
        type: 'additional_tools',
        role: 'developer',
        tools: [space('crm', fn('list')), fn('look', { description: 'new' })],
      },
      { role: 'user', content: 'Hello' },
    ]
    const { request } = parse({ tools, input })
    expect(request.tools?.map(({ function: { name, description } }) => [name, description])).toEqual([
      ['look', 'new'],
      ['other', undefined],
      ['crm__list', undefined],
    ])
    expect(request.messages).toEqual([{ role: 'user', content: 'Hello' }])
  })

  test('have the same names in the history', () => {
    const call = { type: 'function_call', call_id: 'c1', namespace: 'crm', name: 'list', arguments: '{}' }
    const patch = { type: 'custom_tool_call', call_id: 'c2', namespace: 'functions', name: 'exec', input: 'x' }
    const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'done' })
    const { messages } = parse({ input: [call, patch, output('c1'), output('c2')] }).request
    expect(messages[0]?.tool_calls?.map(({ function: { name } }) => name)).toEqual(['crm__list', 'functions__exec'])
  })

  test('may be chosen by namespace and name, by a unique name, or by a whole namespace', () => {
    const tools = [fn('look'), space('crm', fn('list'), fn('look')), space('erp', fn('list'), fn('book'))]
    const chosen = (choice: object) => {
      const { tool_choice } = parse({ tools, tool_choice: choice }).request
      return typeof tool_choice === 'object' && 'function' in tool_choice ? tool_choice.function.name : tool_choice
    }
    expect(chosen({ type: 'function', namespace: 'crm', name: 'look' })).toBe('crm__look')
    expect(chosen({ type: 'function', name: 'look' })).toBe('look')
    expect(chosen({ type: 'function', name: 'book' })).toBe('erp__book')
    expect(chosen({ type: 'function', name: 'list' })).toBe('list')
    const allowed = [
      fn('look'),
      { type: 'function', namespace: 'erp', name: 'list' },
      { type: 'namespace', name: 'crm' },
      { type: 'tool_search' },
    ]
    expect(chosen({ type: 'allowed_tools', mode: 'required', tools: allowed })).toMatchObject({
      allowed_tools: {
        mode: 'required',
        tools: ['look', 'erp__list', 'crm__list', 'crm__look'].map((name) => ({
          type: 'function',
          function: { name },
        })),
      },
    })
  })

  test('are refused with their place if incomplete', () => {
    expect(refused({ tools: [fn('a'), { type: 'namespace', tools: [] }] })).toEqual([
      'missing_required_parameter',
      'tools[1].name',
    ])
    expect(refused({ tools: [{ type: 'namespace', name: 'crm' }] })).toEqual([
      'missing_required_parameter',
      'tools[0].tools',
    ])
    expect(refused({ tools: [{ ...space('crm'), tools: [fn('a'), { type: 'mcp' }] }] })).toEqual([
      'unsupported_parameter',
      'tools[0].tools[1].type',
    ])
    expect(refused({ tools: [{ ...space('crm'), tools: [{ type: 'namespace', name: 'b' }] }] })).toEqual([
      'invalid_value',
      'tools[0].tools[0].type',
    ])
    const input = [{ type: 'additional_tools', tools: [{ type: 'computer' }] }]
    expect(refused({ input: [{ role: 'user', content: 'x' }, ...input] })).toEqual([
      'unsupported_parameter',
      'input[1].tools[0].type',
    ])
  })
})

describe('a tool search', () => {
  const search = { type: 'tool_search', execution: 'client', description: 'Searches.', parameters: { type: 'object' } }

  test('of the vendor is dropped, since all tools are sent in full', () => {
    expect(toolsOf({ tools: [{ type: 'tool_search' }, { type: 'tool_search', execution: 'server' }] })).toBeUndefined()
    const found = { type: 'tool_search_output', call_id: null, tools: [space('crm', fn('list'))] }
    const input = [{ role: 'user', content: 'x' }, { type: 'tool_search_call', call_id: null, arguments: {} }, found]
    const { request } = parse({ input })
    expect([request.messages.length, request.tools?.[0]?.function.name]).toEqual([1, 'crm__list'])
  })

  test('of the client is a function, whose result adds the tools that it found', () => {
    const input = [
      { role: 'user', content: 'x' },
      { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: { query: 'notes' } },
      { type: 'tool_search_output', call_id: 'c1', execution: 'client', tools: [space('crm', fn('list'))] },
    ]
    const { request } = parse({ tools: [search, fn('tool_search_2')], input })
    expect(request.tools?.map(({ function: { name } }) => name)).toEqual(['tool_search', 'tool_search_2', 'crm__list'])
    expect(request.tools?.[0]).toEqual({
      type: 'function',
      function: { name: 'tool_search', description: 'Searches.', parameters: { type: 'object' } },
    })
    expect(request.messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'tool_search', arguments: '{"query":"notes"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'These tools can be called now: crm__list' },
    ])
  })

  test('differs from a function of the same name', () => {
    const names = tableOf(search, fn('tool_search'))
    const [own, function_] = [
      names.vendorName({ type: 'tool_search', name: 'tool_search' }),
      names.vendorName(fn('tool_search') as { name: string }),
    ]
    expect(own).not.toBe(function_)
    expect([names.toolOf(own).type, names.toolOf(function_).type]).toEqual(['tool_search', 'function'])
  })
})

test('converts a message of another agent to a user message, without encrypted text', () => {
  const summary = (...texts: string[]) => ({
    type: 'agent_message',
    author: '/root',
    recipient: '/root/one',
    content: [
      { type: 'input_text', text: 'Payload: ' },
      ...texts.map((encrypted_content) => ({ type: 'encrypted_content', encrypted_content })),
    ],
  })
  expect(parse({ input: [summary('Count to 3.'), summary(`gAAAAAB${'x9-_'.repeat(20)}==`)] }).request.messages).toEqual(
    [
      { role: 'user', content: 'Payload: Count to 3.' },
      { role: 'user', content: 'Payload: ' },
    ],
  )
})
