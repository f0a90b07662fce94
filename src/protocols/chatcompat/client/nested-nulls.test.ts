import { describe, expect, it } from 'bun:test'
import { parseChatRequest } from './request.ts'

const HELLO = { messages: [{ role: 'user', content: 'Hello' }] }
const parse = (more: object) => parseChatRequest({ model: 'm', ...HELLO, ...more })

describe('a nested null', () => {
  it('counts as absent in web search, tools, formats and images', () => {
    expect(parse({ web_search: { enable: null, search_context_size: null, max_results: null } }).web_search).toEqual({})
    expect(parse({ web_search_options: { search_context_size: null } }).web_search_options).toEqual({})
    const tool = { type: 'function', function: { name: 'f', description: null, parameters: null } }
    expect(parse({ tools: [tool] }).tools).toEqual([{ type: 'function', function: { name: 'f' } }])
    const format = { type: 'json_schema', json_schema: { name: 'a', description: null, schema: {} } }
    expect(parse({ response_format: format }).response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'a', schema: {} },
    } as never)
    const image = { type: 'image_url', image_url: { url: 'data:,', detail: null } }
    expect(parse({ messages: [{ role: 'user', content: [image] }] }).messages[0]?.content).toEqual([
      { type: 'image_url', image_url: { url: 'data:,' } },
    ])
  })

  it("is a value in the client's own data", () => {
    const parameters = { type: 'object', properties: { a: { enum: [null], default: null } } }
    const tool = { type: 'function', function: { name: 'f', description: null, parameters } }
    expect(parse({ tools: [tool] }).tools?.[0]?.function.parameters).toEqual(parameters)
  })

  it('is not a bias of a token', () => {
    expect(() => parse({ logit_bias: { '50256': null } })).toThrow('logit_bias')
  })

  it('does not stand for a required member', () => {
    expect(() => parse({ tools: [{ type: 'function', function: { name: null } }] })).toThrow(
      'function.name" is required',
    )
  })
})
