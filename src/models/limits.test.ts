import { describe, expect, test } from 'bun:test'
import type { ModelConfig } from '../config/schema/schema.ts'
import type { ChatRequest } from '../protocols/shared/canonical.ts'
import type { Provider } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { catalogueModel } from './catalogue.ts'
import { applyChatLimits } from './limits.ts'

const provider = { id: 'p', kind: 'test', chat: {} } as Provider
const modelOf = (config: ModelConfig) =>
  catalogueModel({ id: 'p/m', config, targets: [{ provider, model: 'm' }], created: 0, when_retired: 'refuse' })
const requestOf = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
})

function errorOf(config: ModelConfig, more: Partial<ChatRequest>) {
  try {
    applyChatLimits(modelOf(config), requestOf(more))
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, param: error.detail.param, message: error.message }
    throw error
  }
  return undefined
}

const A: ModelConfig = {
  limits: {
    max_tokens: { minimum: 1, maximum: 32_768, default: 32_768 },
    temperature: { default: 1, maximum: 1.5 },
  },
}
const C: ModelConfig = {
  limits: { max_tokens: { minimum: 1, maximum: 4096 } },
  fields: ['repetition_penalty', 'thinking_enabled', 'web_search'],
}

describe('ranges and defaults', () => {
  test('an absent field gets the default of its model; without a default nothing is sent', () => {
    expect(applyChatLimits(modelOf(A), requestOf())).toMatchObject({ max_tokens: 32_768, temperature: 1 })
    const requested = applyChatLimits(modelOf(C), requestOf())
    expect('max_tokens' in requested || 'temperature' in requested).toBe(false)
  })

  test("the model's own maximum is accepted and one more is rejected, under either name of the field", () => {
    for (const field of ['max_tokens', 'max_completion_tokens'] as const) {
      expect(applyChatLimits(modelOf(A), requestOf({ [field]: 32_768 })).max_tokens).toBe(32_768)
      const refusal = errorOf(A, { [field]: 32_769 })
      expect(refusal).toMatchObject({ code: 'invalid_value', param: field })
      expect(refusal?.message).toContain('from 1 to 32768')
    }
    expect(errorOf(A, { temperature: 1.5 })).toBeUndefined()
    expect(errorOf(A, { temperature: 1.6 })?.message).toContain('at most 1.5')
  })

  test('max_completion_tokens takes precedence over max_tokens and is forwarded as max_tokens', () => {
    const requested = applyChatLimits(modelOf(A), requestOf({ max_tokens: 99_999, max_completion_tokens: 5 }))
    expect(requested.max_tokens).toBe(5)
    expect('max_completion_tokens' in requested).toBe(false)
  })

  test('the model is forwarded under its full id', () => {
    expect(applyChatLimits(modelOf(A), requestOf()).model).toBe('p/m')
  })
})

describe('extra fields', () => {
  const extra = { repetition_penalty: 1.1, thinking_enabled: true, web_search: { enable: true } }

  test('are forwarded for a model that lists them and omitted for others', () => {
    expect(applyChatLimits(modelOf(C), requestOf(extra))).toMatchObject(extra)
    expect(Object.keys(applyChatLimits(modelOf({}), requestOf(extra))).sort()).toEqual(['messages', 'model'])
  })

  const wrong: [object, string, string, string][] = [
    [{ repetition_penalty: -0.01 }, 'invalid_value', 'repetition_penalty', 'at least 0'],
    [{ repetition_penalty: '1' }, 'invalid_type', 'repetition_penalty', 'a number'],
    [{ thinking_enabled: 'yes' }, 'invalid_type', 'thinking_enabled', 'a boolean'],
    [{ web_search: true }, 'invalid_type', 'web_search', 'an object'],
    [{ web_search: { enable: 1 } }, 'invalid_type', 'web_search.enable', 'a boolean'],
    [{ web_search: { max_results: 0 } }, 'invalid_value', 'web_search.max_results', 'at least 1'],
  ]
  for (const [more, code, param, text] of wrong) {
    test(`${JSON.stringify(more)} is rejected for a model that has the field, and ignored for one that has not`, () => {
      const refusal = errorOf(C, more as Partial<ChatRequest>)
      expect(refusal).toMatchObject({ code, param })
      expect(refusal?.message).toContain(`must be ${text}`)
      expect(errorOf(A, more as Partial<ChatRequest>)).toBeUndefined()
    })
  }

  test('repetition_penalty is 0 or greater, without an upper bound', () => {
    for (const repetition_penalty of [0, 1e9]) {
      expect(applyChatLimits(modelOf(C), requestOf({ repetition_penalty }))).toMatchObject({ repetition_penalty })
    }
  })

  test('web_search_options enables web_search too', () => {
    expect(applyChatLimits(modelOf(C), requestOf({ web_search_options: {} })).web_search).toEqual({ enable: true })
    expect(applyChatLimits(modelOf({}), requestOf({ web_search_options: {} })).web_search_options).toEqual({})
  })
})

describe('an unsupported capability is rejected by name', () => {
  const tool = { type: 'function' as const, function: { name: 'f' } }
  const cases: [ModelConfig['capabilities'], Partial<ChatRequest>, string][] = [
    [{ tools: false }, { tools: [tool] }, 'tools'],
    [{ tools: false }, { functions: [{ name: 'f' }] }, 'functions'],
    [{ multiple_choices: false }, { n: 2 }, 'n'],
    [{ logprobs: false }, { logprobs: true }, 'logprobs'],
    [{ audio_output: false }, { modalities: ['text', 'audio'] }, 'modalities'],
    [{ json_object: false }, { response_format: { type: 'json_object' } }, 'response_format'],
    [
      { json_schema: false },
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'response_format',
    ],
  ]
  for (const [capabilities, more, param] of cases) {
    test(`${param}, where ${JSON.stringify(capabilities)}`, () => {
      expect(errorOf({ capabilities: capabilities ?? {} }, more)).toMatchObject({
        code: 'unsupported_parameter',
        param,
      })
      expect(errorOf({}, more)).toBeUndefined()
    })
  }

  test('a field that requests nothing is not rejected', () => {
    const none = { tools: false, multiple_choices: false, logprobs: false, json_object: false }
    const harmless = { tools: [], n: 1, logprobs: false, response_format: { type: 'text' as const } }
    expect(errorOf({ capabilities: none }, harmless)).toBeUndefined()
  })

  test('a content part of an unsupported modality is rejected with its position', () => {
    const content = [
      { type: 'text' as const, text: 'look' },
      { type: 'image_url' as const, image_url: { url: 'data:,' } },
    ]
    const messages = [
      { role: 'user' as const, content: 'hi' },
      { role: 'user' as const, content },
    ]
    expect(errorOf({ capabilities: { image_input: false } }, { messages })).toMatchObject({
      code: 'unsupported_value',
      param: 'messages[1].content[1].type',
    })
    expect(errorOf({ capabilities: { audio_input: false } }, { messages })).toBeUndefined()
  })
})
