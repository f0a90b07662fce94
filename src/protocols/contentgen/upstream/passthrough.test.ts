/** A client's own body for a contentgen vendor: what the house and the operator change of it, and nothing else. */
import { expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import { contentgenSettings } from '../../../providers/contentgen-compat/settings.ts'
import type { ChatRequest } from '../../canonical.ts'
import { UNSIGNED } from './contents.ts'
import { passthroughBody } from './passthrough.ts'

type Where = { model?: string; config?: ProviderConfig; request?: Partial<ChatRequest> }

function sent(body: JsonRecord, { model = 'gemini-2.5-flash', config = {}, request = {} }: Where = {}): JsonRecord {
  const whole = { base_url: 'https://v.example/v1beta', ...config }
  const settings = contentgenSettings({ id: 'v', config: whole, timeouts: DEFAULT_TIMEOUTS, environment: {} })
  const requested: ChatRequest = { model: 'v/m', messages: [], ...request }
  return passthroughBody({ model, request: requested, body }, settings)
}

test('it is the same, whatever is in it', () => {
  const body = {
    contents: [{ parts: [{ unseen: 1 }] }],
    cachedContent: 'x',
    generationConfig: { topP: 1, unusual: null },
  }
  expect(sent(body)).toEqual(body)
  expect(sent({ contents: [] })).toEqual({ contents: [] })
})

test('defaults of the catalogue and of the operator are for what the client does not say', () => {
  const request = { temperature: 0.3, max_tokens: 100, presence_penalty: 1 }
  const defaults = { temperature: 0.3, maxOutputTokens: 100 }
  expect(sent({}, { request })).toEqual({ generationConfig: defaults })
  // Newer models take no penalties.
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

test('the operator leaves out and renames, and the client’s own body stays as it is for the next target', () => {
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

test('calls of a turn without any signature get the vendor’s word for such, where its model wants one', () => {
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
