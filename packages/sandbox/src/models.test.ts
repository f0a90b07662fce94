import { expect, test } from 'bun:test'
import Value from 'typebox/value'
import { ModelConfig } from '../../../src/config/schema/schema.ts'
import { SANDBOX_MODELS } from './models.ts'

test('every row is a valid model configuration', () => {
  for (const row of Object.values(SANDBOX_MODELS)) expect([...Value.Errors(ModelConfig, row)]).toEqual([])
})

test('every row is served by the sandbox under its own name', () => {
  for (const [id, row] of Object.entries(SANDBOX_MODELS)) {
    expect(row.targets).toEqual([{ provider: 'sandbox', model: id.replace('sandbox/', '') }])
  }
})

test('the three chat models differ as in the specification, 2.3', () => {
  const limits = (id: string) => SANDBOX_MODELS[`sandbox/${id}`]?.limits
  const penalty = { minimum: -2, maximum: 2, default: 0 }
  const shared = {
    temperature: { minimum: 0, maximum: 2, default: 1 },
    top_p: { minimum: 0, maximum: 1, default: 1 },
    frequency_penalty: penalty,
    presence_penalty: penalty,
  }
  expect(limits('general')).toEqual({ max_tokens: { minimum: 1, maximum: 32_768, default: 32_768 }, ...shared })
  expect(limits('compact')).toEqual({ max_tokens: { minimum: 1, maximum: 65_536, default: 65_536 }, ...shared })
  expect(limits('vision')).toEqual({
    max_tokens: { minimum: 1, maximum: 4096 },
    temperature: { minimum: 0, maximum: 2 },
    top_p: { minimum: 0, maximum: 1 },
    frequency_penalty: { minimum: -2, maximum: 2 },
    presence_penalty: { minimum: -2, maximum: 2 },
    repetition_penalty: { minimum: 0 },
  })
  expect(SANDBOX_MODELS['sandbox/vision']?.fields).toEqual(['repetition_penalty', 'thinking_enabled', 'web_search'])
  expect(SANDBOX_MODELS['sandbox/general']?.fields).toBeUndefined()
  const chat = Object.values(SANDBOX_MODELS).filter((row) => row.families === undefined)
  expect(chat.map((row) => row.capabilities?.image_input)).toEqual([true, false, true, true, true, true])
})

test('the video model has the values of the specification, 2.5, and rejects parameters that it would ignore', () => {
  const row = SANDBOX_MODELS['sandbox/text-to-video']
  expect(row?.families).toEqual(['video-generation', 'chatcompat-video'])
  expect(row?.video).toEqual({
    aspect_ratio: { values: ['16:9', '9:16', '1:1', '4:3', '3:4'], default: '16:9' },
    duration: { values: [4, 8], default: 4 },
    size: { values: ['720p', '1080p'], default: '720p' },
    audio_enable: { values: [false, true], default: false },
    image: 'no',
    last_image: false,
    images: 0,
    video: 'no',
    negative_prompt: false,
    seed: true,
    n: 1,
  })
})

test('one model is deprecated and one is retired, both replaced by an active model', () => {
  const now = Date.UTC(2026, 0, 1) / 1000
  const { 'sandbox/legacy': legacy, 'sandbox/retired': retired, 'sandbox/general': successor } = SANDBOX_MODELS
  expect(legacy).toMatchObject({ status: 'deprecated', replaced_by: 'sandbox/general' })
  expect(retired).toMatchObject({ status: 'retired', replaced_by: 'sandbox/general' })
  expect(legacy?.deprecated_at).toBeLessThan(now)
  expect(legacy?.retired_at).toBeUndefined()
  expect(retired?.retired_at).toBeGreaterThan(retired?.deprecated_at ?? now)
  expect(retired?.retired_at).toBeLessThan(now)
  expect(successor?.status ?? successor?.deprecated_at ?? successor?.retired_at).toBeUndefined()
  for (const row of Object.values(SANDBOX_MODELS)) expect(row.created).toBeLessThanOrEqual(row.deprecated_at ?? now)
})
