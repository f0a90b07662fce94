/** The sandbox's rows of the catalogue: simulated models with the differences between models of the specification, 2.3. */
import type { Limits, ModelConfig } from '../../../src/providers/provider.ts'
import { MODEL_FORMATS, POLYGONS } from './render/model-plan.ts'
import { ASPECT_RATIOS, DURATIONS, SIZES } from './render/plan.ts'

// The limits are here because every start loads this file, and the code that applies them is loaded later.
export const DEFAULT_DIMENSIONS = 1024
export const MAX_DIMENSIONS = 4096
export const MAX_INPUT_TOKENS = 8_192
const IMAGE_SIZES = [
  'auto',
  '256x256',
  '512x512',
  '1024x1024',
  '1536x1024',
  '1024x1536',
  '1792x1024',
  '1024x1792',
] as const

/** Invented dates, all in the past, so that all stages of the life cycle can be seen. */
const CREATED = Date.UTC(2024, 0, 1) / 1000
const DEPRECATED = Date.UTC(2025, 0, 1) / 1000
const RETIRED = Date.UTC(2025, 6, 1) / 1000

const SHARED: Limits = {
  temperature: { minimum: 0, maximum: 2 },
  top_p: { minimum: 0, maximum: 1 },
  frequency_penalty: { minimum: -2, maximum: 2 },
  presence_penalty: { minimum: -2, maximum: 2 },
}

const withDefaults = (maxTokens: number): Limits => ({
  max_tokens: { minimum: 1, maximum: maxTokens, default: maxTokens },
  temperature: { minimum: 0, maximum: 2, default: 1 },
  top_p: { minimum: 0, maximum: 1, default: 1 },
  frequency_penalty: { minimum: -2, maximum: 2, default: 0 },
  presence_penalty: { minimum: -2, maximum: 2, default: 0 },
})

const capabilities = (fileInput: boolean) => ({
  image_input: fileInput,
  audio_input: false,
  file_input: fileInput,
  tools: true,
  json_object: true,
  json_schema: true,
  multiple_choices: true,
  logprobs: true,
  audio_output: false,
})

/** It costs nothing, whatever it simulates. */
const FREE: ModelConfig['prices'] = {
  input: 0,
  output: 0,
  image: 0,
  video: 0,
  three_d: 0,
  searches: 0,
  speech_characters: 0,
  audio_minute: 0,
}

const row = (model: string, rest: ModelConfig): ModelConfig => ({
  targets: [{ provider: 'sandbox', model }],
  created: CREATED,
  prices: FREE,
  ...rest,
})

const GENERAL = { limits: withDefaults(32_768), capabilities: capabilities(true) }

/** By full public id. */
export const SANDBOX_MODELS: Record<string, ModelConfig> = {
  'sandbox/general': row('general', GENERAL),
  'sandbox/compact': row('compact', { limits: withDefaults(65_536), capabilities: capabilities(false) }),
  'sandbox/vision': row('vision', {
    limits: { ...SHARED, max_tokens: { minimum: 1, maximum: 4096 }, repetition_penalty: { minimum: 0 } },
    fields: ['repetition_penalty', 'thinking_enabled', 'web_search'],
    capabilities: capabilities(true),
  }),
  'sandbox/voice': row('voice', {
    limits: withDefaults(32_768),
    capabilities: { ...capabilities(true), audio_input: true, audio_output: true, multiple_choices: false },
  }),
  'sandbox/legacy': row('legacy', {
    status: 'deprecated',
    deprecated_at: DEPRECATED,
    replaced_by: 'sandbox/general',
    ...GENERAL,
  }),
  'sandbox/retired': row('retired', {
    status: 'retired',
    deprecated_at: DEPRECATED,
    retired_at: RETIRED,
    replaced_by: 'sandbox/general',
    ...GENERAL,
  }),
  'sandbox/embedding': row('embedding', {
    families: ['embeddings'],
    embeddings: {
      dimensions: { minimum: 1, maximum: MAX_DIMENSIONS, default: DEFAULT_DIMENSIONS },
      input_tokens: MAX_INPUT_TOKENS,
    },
  }),
  'sandbox/rerank': row('rerank', { families: ['rerank'] }),
  'sandbox/moderation': row('moderation', { families: ['moderations'] }),
  'sandbox/speech': row('speech', {
    families: ['audio-speech'],
    speech: { characters: 4096, formats: ['mp3', 'wav', 'pcm'] },
  }),
  'sandbox/transcription': row('transcription', { families: ['audio-transcription'] }),
  'sandbox/realtime': row('realtime', { families: ['realtime'] }),
  'sandbox/image': row('image', {
    families: ['image-generation'],
    images: {
      size: { values: [...IMAGE_SIZES], default: '1024x1024' },
      output_format: { values: ['png', 'jpeg', 'webp'], default: 'png' },
      n: 10,
      // The sandbox would accept and ignore it.
      negative_prompt: false,
    },
  }),
  'sandbox/text-to-video': row('text-to-video', {
    families: ['video-generation', 'chatcompat-video'],
    video: {
      aspect_ratio: { values: [...ASPECT_RATIOS], default: '16:9' },
      duration: { values: [...DURATIONS], default: 4 },
      size: { values: [...SIZES], default: '720p' },
      audio_enable: { values: [false, true], default: false },
      image: 'no',
      last_image: false,
      images: 0,
      video: 'no',
      // The sandbox would accept and ignore it.
      negative_prompt: false,
      seed: true,
      n: 1,
    },
  }),
  'sandbox/text-to-3d': row('text-to-3d', {
    families: ['3d-generation'],
    three_d: {
      prompt: 'required',
      image: 'no',
      images: 0,
      format: { values: [...MODEL_FORMATS], default: 'glb' },
      texture: { values: [false, true], default: true },
      pbr: { values: [false, true], default: false },
      target_polycount: { ...POLYGONS },
      negative_prompt: false,
      seed: true,
    },
  }),
}
