/** A client's own body for a Responses provider, with the changes by the gateway and the operator and no others. */
import { expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import { responsesSettings } from '../../../providers/responses-compat/responses-settings.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { passthroughBody } from './passthrough.ts'
import { createBodyEncoder } from './request.ts'

type Where = { model?: string; config?: ProviderConfig; request?: Partial<ChatRequest> }

function sent(body: JsonRecord, { model = 'gpt-4.1', config = {}, request = {} }: Where = {}): JsonRecord {
  const whole = { base_url: 'https://v.example/v1', ...config }
  const settings = responsesSettings({ id: 'v', config: whole, timeouts: DEFAULT_TIMEOUTS })
  const requested: ChatRequest = { model: 'v/m', messages: [], ...request }
  const call = { model, request: requested, request_id: 'r', body: { store: false, ...body }, headers: {} }
  const forwarded = passthroughBody(call, settings, createBodyEncoder(settings).defaults(model))
  const { model: named, store, ...rest } = forwarded
  expect([named, store]).toEqual([model, false])
  return rest
}
const ENCRYPTED = 'reasoning.encrypted_content'

test('passthroughBody keeps any body unchanged except for the model', () => {
  const body = { input: 'Hi', unseen: [null], temperature: 0.5, include: ['a', ENCRYPTED], reasoning: null }
  expect(sent(body, { model: 'model-of-tomorrow' })).toEqual(body)
  expect(sent({ ...body, store: true }, { model: 'model-of-tomorrow' })).toEqual(body)
})

test('passthroughBody drops what models that reason refuse, and what the others refuse', () => {
  const body = { temperature: 0.5, top_p: 0.9, reasoning: { effort: 'low' }, include: [ENCRYPTED, 'a'] }
  expect(sent(body)).toEqual({ temperature: 0.5, top_p: 0.9, include: ['a'] })
  expect(sent(body, { model: 'gpt-5.1' })).toEqual({ reasoning: { effort: 'low' }, include: [ENCRYPTED, 'a'] })
  const resting = { ...body, reasoning: { effort: 'none' } }
  expect(sent(resting, { model: 'gpt-5.1' })).toEqual(resting)
  expect(sent({ presence_penalty: 1, frequency_penalty: 1 })).toEqual({})
  const config = { fields: { allow: ['presence_penalty'] } }
  expect(sent({ presence_penalty: 1, frequency_penalty: 1 }, { config })).toEqual({ presence_penalty: 1 })
})

test('passthroughBody requests encrypted reasoning of stored responses, for models that return it', () => {
  expect(sent({ store: true }, { model: 'gpt-5.1' })).toEqual({ include: [ENCRYPTED] })
  expect(sent({ store: true, include: ['a'] }, { model: 'gpt-5.1' })).toEqual({ include: ['a', ENCRYPTED] })
  expect(sent({ store: true })).toEqual({})
  expect(sent({}, { model: 'gpt-5.1' })).toEqual({})
})

test('passthroughBody adds defaults of the catalogue and of the operator only for absent fields', () => {
  const request = { temperature: 0.3, max_tokens: 100 }
  expect(sent({}, { request })).toEqual({ temperature: 0.3, max_output_tokens: 100 })
  expect(sent({ temperature: 1 }, { request })).toEqual({ temperature: 1, max_output_tokens: 100 })
  expect(sent({}, { request, model: 'gpt-5.1' })).toEqual({ max_output_tokens: 100 })
  expect(sent({}, { request: { max_tokens: 3 } })).toEqual({ max_output_tokens: 16 })
  const config = {
    request_defaults: { max_tokens: 50, verbosity: 'low', truncation: 'auto', store: true, model: 'x', stream: true },
  }
  expect(sent({}, { config })).toEqual({ max_output_tokens: 50, text: { verbosity: 'low' }, truncation: 'auto' })
  expect(sent({ text: null, truncation: 'disabled' }, { config, request })).toEqual({
    temperature: 0.3,
    max_output_tokens: 100,
    text: { verbosity: 'low' },
    truncation: 'disabled',
  })
})

test('passthroughBody drops and renames fields, by the vendor’s names and by the common names', () => {
  const config = {
    fields: { drop: ['metadata', 'max_tokens', 'input'], rename: { user: 'safety_identifier', input: 'x' } },
  }
  const body = { input: 'Hi', metadata: { a: 'b' }, user: 'u' }
  expect(sent(body, { config, request: { max_tokens: 9 } })).toEqual({ input: 'Hi', safety_identifier: 'u' })
  expect(body).toEqual({ input: 'Hi', metadata: { a: 'b' }, user: 'u' })
})
