/**
 * Models of well-known vendors for chat, embeddings, images, moderations and audio, so that a key alone is enough, even while
 * model discovery fails. The vendor's list takes precedence: these rows then only add what the list lacks.
 * Figures: models.dev, read 2026-11-21.
 */
import type { Range } from '../config/schema/limits-schema.ts'
import type { ModelConfig } from '../config/schema/schema.ts'

/** By preset, and by the vendor's name of the model. `released`: its date. */
type Models<Facts extends { released?: string }> = Record<string, Record<string, Facts>>

type Facts = {
  released: string
  /** The context window in tokens, input and output together. */
  context: number
  /** The model accepts text only. */
  text_only?: true
}

const MILLION = 1_000_000
const MEBI = 1_048_576

const range = (minimum: number, maximum: number): Range => ({ minimum, maximum })

const CHAT_MODELS: Models<Facts> = {
  anthropic: {
    'claude-haiku-5-5': { released: '2026-10-07', context: MILLION },
    'claude-opus-5': { released: '2026-07-24', context: MILLION },
    'claude-sonnet-5': { released: '2026-06-30', context: MILLION },
    'claude-fable-5': { released: '2026-06-09', context: MILLION },
    'claude-opus-4-8': { released: '2026-05-28', context: MILLION },
    'claude-sonnet-4-6': { released: '2026-02-17', context: MILLION },
    'claude-opus-4-5': { released: '2025-11-24', context: 200_000 },
    'claude-haiku-4-5': { released: '2025-10-15', context: 200_000 },
  },
  openai: {
    'gpt-6-sol': { released: '2026-09-22', context: 1_050_000 },
    'gpt-6-luna': { released: '2026-09-22', context: 1_050_000 },
    'gpt-6-astra': { released: '2026-09-04', context: 1_050_000 },
    'gpt-5.6-sol': { released: '2026-07-09', context: 1_050_000 },
    'gpt-5.6-luna': { released: '2026-07-09', context: 1_050_000 },
    'gpt-5.4': { released: '2026-03-05', context: 1_050_000 },
    'gpt-5-mini': { released: '2025-08-07', context: 400_000 },
    'gpt-4.1': { released: '2025-04-14', context: 1_047_576 },
  },
  gemini: {
    'gemini-3.8-flash': { released: '2026-09-02', context: MEBI },
    'gemini-3.1-pro-preview': { released: '2026-02-19', context: MEBI },
    'gemini-2.5-flash': { released: '2025-03-20', context: MEBI },
  },
  mistral: {
    'mistral-large-latest': { released: '2024-11-01', context: 262_144 },
    'mistral-small-latest': { released: '2024-09-01', context: 128_000 },
  },
  groq: {
    'openai/gpt-oss-120b': { released: '2025-08-05', context: 131_072, text_only: true },
  },
  deepseek: {
    'deepseek-v4-pro': { released: '2026-04-24', context: MILLION, text_only: true },
  },
  xai: {
    'grok-4.7': { released: '2026-09-21', context: 500_000 },
    'grok-4.3': { released: '2026-04-17', context: MILLION },
  },
  moonshot: {
    'kimi-k3': { released: '2026-07-16', context: MEBI },
  },
  cohere: {
    'command-a-03-2025': { released: '2025-03-13', context: 256_000, text_only: true },
  },
  perplexity: {
    'sonar-pro': { released: '2024-01-01', context: 200_000 },
    sonar: { released: '2024-01-01', context: 128_000, text_only: true },
  },
}

/** Source: the vendors' documentation of embeddings. */
const EMBEDDING_MODELS: Models<{ released: string; dimensions: Range; input_tokens: number }> = {
  openai: {
    'text-embedding-3-large': { released: '2024-01-25', dimensions: range(1, 3072), input_tokens: 8192 },
    'text-embedding-3-small': { released: '2024-01-25', dimensions: range(1, 1536), input_tokens: 8192 },
  },
  gemini: { 'gemini-embedding-001': { released: '2025-07-14', dimensions: range(128, 3072), input_tokens: 2048 } },
}

/** Sources: OpenAI's types (openai 7) and Mistral's page of the model. */
const MODERATION_MODELS: Models<{ released: string; text_only?: true }> = {
  openai: { 'omni-moderation-latest': { released: '2024-09-26' } },
  mistral: { 'mistral-moderation-latest': { released: '2024-11-06', text_only: true } },
}

/** Sources: OpenAI's types (openai 7) and its API reference; its models for speech accept 4,096 characters. */
const OPENAI_SPEECH = { characters: 4096 }
const AUDIO_MODELS: Models<Omit<ModelConfig, 'targets'> & { released: string }> = {
  openai: {
    'gpt-4o-mini-tts': { released: '2025-03-20', families: ['audio-speech'], speech: OPENAI_SPEECH },
    'tts-1': { released: '2023-11-06', families: ['audio-speech'], speech: OPENAI_SPEECH },
    'tts-1-hd': { released: '2023-11-06', families: ['audio-speech'], speech: OPENAI_SPEECH },
    'gpt-4o-transcribe': { released: '2025-03-20', families: ['audio-transcription'] },
    'gpt-4o-mini-transcribe': { released: '2025-03-20', families: ['audio-transcription'] },
    'whisper-1': { released: '2023-03-01', families: ['audio-transcription'] },
  },
}

/** It supports neither a seed nor a negative prompt. */
const GPT_IMAGE: NonNullable<ModelConfig['images']> = {
  operations: ['generate', 'edit'],
  n: 10,
  images: 16,
  negative_prompt: false,
  seed: false,
}
const GEMINI_IMAGE: NonNullable<ModelConfig['images']> = {
  operations: ['generate', 'edit'],
  images: 14,
  mask: false,
  negative_prompt: false,
}

/** Sources of names and dates: the vendors' client packages. */
const IMAGE_MODELS: Models<{ released?: string; images: NonNullable<ModelConfig['images']> }> = {
  openai: {
    'gpt-image-2.5-sunburst': { released: '2026-09-08', images: GPT_IMAGE },
    'gpt-image-2.5-flare': { released: '2026-09-08', images: GPT_IMAGE },
    'gpt-image-2': { released: '2026-04-21', images: GPT_IMAGE },
  },
  gemini: {
    'gemini-3.1-flash-image-preview': { images: GEMINI_IMAGE },
    'gemini-3-pro-image-preview': { images: GEMINI_IMAGE },
    'gemini-2.5-flash-image': { images: GEMINI_IMAGE },
  },
  xai: {
    'grok-imagine-image': {
      images: { operations: ['generate', 'edit'], images: 3, mask: false, negative_prompt: false },
    },
  },
}

/** The known models of a preset, by the vendor's names. */
export function presetModels(preset: string): Record<string, Omit<ModelConfig, 'targets'>> {
  function rowsOf<Facts extends { released?: string }>(
    models: Models<Facts>,
    configOf: (facts: Omit<Facts, 'released'>) => Omit<ModelConfig, 'targets'>,
  ) {
    return Object.entries(models[preset] ?? {}).map(([model, { released, ...facts }]) => [
      model,
      { ...configOf(facts), ...(released ? { created: Date.parse(released) / 1000 } : {}) },
    ])
  }
  return Object.fromEntries([
    ...rowsOf(CHAT_MODELS, ({ context, text_only }) => ({ context_tokens: context, ...inputs(text_only) })),
    ...rowsOf(EMBEDDING_MODELS, (embeddings) => ({ families: ['embeddings'], embeddings })),
    ...rowsOf(IMAGE_MODELS, ({ images }) => ({ families: ['image-generation'], images })),
    ...rowsOf(MODERATION_MODELS, ({ text_only }) => ({ families: ['moderations'], ...inputs(text_only) })),
    ...rowsOf(AUDIO_MODELS, (config) => config),
  ])
}

const inputs = (text_only: true | undefined) => (text_only ? { capabilities: { image_input: false } } : {})
