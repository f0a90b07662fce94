import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import { settingsOf } from '../../../providers/settings.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { createBodyEncoder } from './request.ts'

const BASE: ChatRequest = { model: 'p/m', messages: [{ role: 'user', content: 'hi' }] }

/** The body for a request with these fields, for a provider with this configuration. */
function bodyOf(fields: Record<string, unknown>, config: ProviderConfig = {}, stream = false) {
  const base = config.preset ? {} : { base_url: 'https://vendor.example/v1' }
  const settings = settingsOf({ id: 'p', config: { ...base, ...config }, timeouts: DEFAULT_TIMEOUTS })
  const write = createBodyEncoder(settings)
  return JSON.parse(write({ model: 'vendor-model', request: { ...BASE, ...fields } }, stream))
}

function refusal(fields: Record<string, unknown>, config: ProviderConfig = {}): GatewayError | undefined {
  try {
    bodyOf(fields, config)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  return undefined
}

const TOOLS = [{ type: 'function', function: { name: 'f' } }]
const SCHEMA = { type: 'json_schema', json_schema: { name: 's', schema: {} } }

describe('the encoded body', () => {
  test('has the provider’s model name and the messages, and nothing that was not requested', () => {
    expect(bodyOf({})).toEqual({ model: 'vendor-model', messages: BASE.messages })
  })

  test('has the known fields, without unknown ones and nulls', () => {
    const known = {
      temperature: 0,
      top_p: 0.5,
      seed: 1,
      stop: ['a'],
      tools: TOOLS,
      tool_choice: 'auto',
      parallel_tool_calls: false,
      response_format: SCHEMA,
      n: 2,
      logit_bias: { 5: 1 },
      reasoning_effort: 'low',
      user: 'u',
      metadata: { a: 'b' },
      web_search_options: {},
      web_search: { enable: true, other: 1 },
      thinking_enabled: true,
      repetition_penalty: 1.1,
    }
    expect(bodyOf({ ...known, top_k: 5, api_key: 'x', presence_penalty: null })).toEqual({ ...bodyOf({}), ...known })
  })

  test('requests usage for a stream, whatever the caller requested', () => {
    expect(bodyOf({ stream: true, stream_options: { include_usage: false } }, {}, true)).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(bodyOf({ stream: true }, {}, false)).not.toHaveProperty('stream')
  })

  test('has no stream_options for a provider without that quirk', () => {
    expect(bodyOf({}, { quirks: { stream_usage: false } }, true)).toEqual({ ...bodyOf({}), stream: true })
  })

  test('has the limit under the provider’s name, and prefers the newer of the two names', () => {
    expect(bodyOf({ max_tokens: 5 })).toMatchObject({ max_tokens: 5 })
    expect(bodyOf({ max_tokens: 5, max_completion_tokens: 7 })).toEqual({ ...bodyOf({}), max_tokens: 7 })
    expect(bodyOf({ max_tokens: 5 }, { preset: 'openai' })).toEqual({ ...bodyOf({}), max_completion_tokens: 5 })
  })

  test('has either "reasoning" or "reasoning_effort" of a client, for a provider that takes both', () => {
    const config = { fields: { allow: ['reasoning'] } }
    const reasoning = { effort: 'high' }
    expect(bodyOf({ reasoning, reasoning_effort: 'high' }, config)).toEqual({ ...bodyOf({}), reasoning })
    expect(bodyOf({ reasoning, reasoning_effort: 'high' })).toEqual({ ...bodyOf({}), reasoning_effort: 'high' })
    const both = { reasoning: { effort: null, exclude: true }, reasoning_effort: 'low' }
    expect(bodyOf(both, config)).toEqual({ ...bodyOf({}), ...both })
  })

  test('follows the operator’s lists: allow, drop and rename', () => {
    const config = { fields: { allow: ['top_k'], drop: ['user', 'seed'], rename: { top_p: 'nucleus', top_k: 'k' } } }
    expect(bodyOf({ top_k: 5, user: 'u', seed: 1, top_p: 0.5 }, config)).toEqual({ ...bodyOf({}), k: 5, nucleus: 0.5 })
  })

  test('has a default only for fields that the caller did not set, also under the provider’s name', () => {
    const config = { request_defaults: { temperature: 0.3, max_tokens: 9, top_k: 4, model: 'x', stream: true } }
    expect(bodyOf({}, config)).toEqual({ ...bodyOf({}), temperature: 0.3, max_tokens: 9, top_k: 4 })
    expect(bodyOf({ temperature: 0, max_completion_tokens: 2 }, config)).toMatchObject({
      temperature: 0,
      max_tokens: 2,
    })
    expect(bodyOf({}, { ...config, preset: 'openai' })).toMatchObject({ max_completion_tokens: 9 })
  })

  test('has `system` in place of `developer` unless the provider supports it', () => {
    const messages = [{ role: 'developer', content: 'be brief' }, ...BASE.messages]
    expect(bodyOf({ messages }).messages[0].role).toBe('system')
    expect(bodyOf({ messages }, { quirks: { developer_role: true } }).messages[0].role).toBe('developer')
    expect(messages[0]?.role).toBe('developer') // the request itself is unchanged
  })

  test('drops or renames members of messages that a provider refuses', () => {
    const messages = [...BASE.messages, { role: 'assistant', content: 'yes', reasoning_content: 'hm' }]
    expect(bodyOf({ messages }).messages[1].reasoning_content).toBe('hm')
    expect(bodyOf({ messages }, { preset: 'mistral' }).messages[1]).toEqual({ role: 'assistant', content: 'yes' })
    expect(bodyOf({ messages }, { preset: 'cerebras' }).messages[1]).toEqual({
      role: 'assistant',
      content: 'yes',
      reasoning: 'hm',
    })
  })

  test('has no empty list of tools', () => {
    expect(bodyOf({ tools: [] })).toEqual(bodyOf({}))
  })
})

describe('unsupported features are refused by name', () => {
  test.each([
    ['tools', { tools: TOOLS }, { tools: false }],
    ['functions', { functions: [{ name: 'f' }] }, { tools: false }],
    ['response_format', { response_format: SCHEMA }, { json_schema: false }],
    ['n', { n: 2 }, { multiple_choices: false }],
  ])('%s', (param, fields, quirks) => {
    expect(refusal(fields)).toBeUndefined()
    expect(refusal(fields, { quirks })).toMatchObject({ code: 'unsupported_parameter', detail: { param } })
    expect(refusal(fields, { quirks })?.message).toContain('p/m')
  })

  test.each([[{ tools: [], n: 1, response_format: { type: 'text' } }], [{ response_format: { type: 'json_object' } }]])(
    'accepts a value without effect: %j',
    (fields) => {
      expect(refusal(fields, { quirks: { tools: false, json_schema: false, multiple_choices: false } })).toBeUndefined()
    },
  )

  test('drops a field that only tunes, but refuses one that changes the meaning', () => {
    const config = { fields: { drop: ['seed', 'response_format', 'logprobs', 'stop'] } }
    expect(bodyOf({ seed: 1, response_format: { type: 'text' }, logprobs: false }, config)).toEqual(bodyOf({}))
    for (const fields of [{ response_format: { type: 'json_object' } }, { logprobs: true }, { stop: 'x' }]) {
      expect(refusal(fields, config)).toMatchObject({ detail: { param: Object.keys(fields)[0] as string } })
    }
  })
})
