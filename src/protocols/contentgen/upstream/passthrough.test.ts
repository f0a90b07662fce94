/** A client's own body for a contentgen provider, with the changes by the gateway and the operator and no others. */
import { expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import { contentgenSettings } from '../../../providers/contentgen-compat/contentgen-settings.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { UNSIGNED } from './contents.ts'
import { passthroughBody } from './passthrough.ts'

type Where = { model?: string; config?: ProviderConfig; request?: Partial<ChatRequest> }

function sent(body: JsonRecord, { model = 'gemini-2.5-flash', config = {}, request = {} }: Where = {}): JsonRecord {
  const whole = { base_url: 'https://v.example/v1beta', ...config }
  const settings = contentgenSettings({ id: 'v', config: whole, timeouts: DEFAULT_TIMEOUTS, environment: {} })
  const requested: ChatRequest = { model: 'v/m', messages: [], ...request }
  return passthroughBody({ model, request: requested, body }, settings)
}

test('passthroughBody keeps any body unchanged', () => {
  const body = {
    contents: [{ parts: [{ unseen: 1 }] }],
    cachedContent: 'x',
    generationConfig: { topP: 1, unusual: null },
  }
  expect(sent(body)).toEqual(body)
  expect(sent({ contents: [] })).toEqual({ contents: [] })
})

test('passthroughBody adds defaults of the catalogue and of the operator only for absent fields', () => {
  const request = { temperature: 0.3, max_tokens: 100, presence_penalty: 1 }
  const defaults = { temperature: 0.3, maxOutputTokens: 100 }
  expect(sent({}, { request })).toEqual({ generationConfig: defaults })
  // Newer models accept no penalties.
  expect(sent({}, { request, model: 'gemini-2.0-flash' })).toEqual({
    generationConfig: { ...defaults, presencePenalty: 1 },
  })
  const generationConfig = { temperature: 1, seed: 5 }
  expect(sent({ generationConfig }, { request })).toEqual({
    generationConfig: { temperature: 1, seed: 5, maxOutputTokens: 100 },
  })
  const config = {
    request_defaults: {
      generationConfig: { temperature: 0.1, topK: 3 },
      safetySettings: [{ category: 'x' }],
      contents: ['x'],
      model: 'x',
    },
  }
  expect(sent({ generationConfig }, { config })).toEqual({
    generationConfig: { temperature: 1, seed: 5, topK: 3 },
    safetySettings: [{ category: 'x' }],
  })
  expect(generationConfig).toEqual({ temperature: 1, seed: 5 })
})

test('passthroughBody drops and renames fields, and leaves the client’s body unchanged for the next target', () => {
  const body = { contents: [], generationConfig: { seed: 5, topP: 1 }, toolConfig: { a: 1, b: 2 }, labels: {} }
  const before = structuredClone(body)
  const config = { fields: { drop: ['generationConfig.seed', 'toolConfig.a', 'contents'], rename: { labels: 'tags' } } }
  expect(sent(body, { config })).toEqual({
    contents: [],
    generationConfig: { topP: 1 },
    toolConfig: { b: 2 },
    tags: {},
  })
  expect(body).toEqual(before)
})

test('passthroughBody adds the documented value to calls of a turn without a signature, for models that require one', () => {
  const call = (name: string, more: object = {}) => ({ functionCall: { name }, ...more })
  const model = (...parts: object[]) => ({ role: 'model', parts })
  const user = { role: 'user', parts: [{ functionResponse: { name: 'a' } }] }
  const contents = [
    model({ text: 'x' }, call('a'), call('b')),
    user,
    model(call('a', { thoughtSignature: 'own' })),
    model(call('b')),
    user,
    model(call('a', { thought_signature: 'own' })),
  ]
  expect(sent({ contents }).contents).toEqual(contents)
  expect(sent({ contents }, { model: 'gemini-3-flash' }).contents).toEqual([
    model({ text: 'x' }, call('a', { thoughtSignature: UNSIGNED }), call('b')),
    ...contents.slice(1),
  ])
})
