/** The vendors that are served by their AI SDK packages: one row each, or the file of a vendor that needs functions. */
import type { ProviderKind } from '../../config/schema/provider-kinds.ts'
import { isRecord } from '../../kit/json.ts'
import { audioMembers } from '../chatcompat/audio.ts'
import { textMembers } from '../chatcompat/text-providers.ts'
import { type AdapterParts, settingsOf } from '../settings.ts'
import { jsonOf } from './order-options.ts'
import { COHERE_INPUT_TYPES, OPENAI_EMBEDDINGS } from './text-families.ts'
import { type AiSdkVendor, vendor } from './vendor-row.ts'
import { ALIBABA } from './vendors/alibaba.ts'
import { amazonBedrock } from './vendors/amazon-bedrock.ts'
import { ASSEMBLYAI, DEEPGRAM, ELEVENLABS } from './vendors/audio-vendors.ts'
import { azure } from './vendors/azure.ts'
import { BLACK_FOREST_LABS } from './vendors/black-forest-labs.ts'
import { FAL } from './vendors/fal.ts'
import { FIREWORKS } from './vendors/fireworks.ts'
import { GOOGLE } from './vendors/google.ts'
import { googleVertex } from './vendors/google-vertex.ts'
import { LUMA } from './vendors/luma.ts'
import { MINIMAX } from './vendors/minimax.ts'
import { REPLICATE } from './vendors/replicate.ts'
import { classifyByWording, imagesIn } from './vendors/response-values.ts'
import { XAI } from './vendors/xai.ts'

/** What families without a package get, in OpenAI's shape as the preset describes it. */
const inShapeOf = (preset: string, parts: AdapterParts) => ({
  ...parts,
  settings: settingsOf({ ...parts, config: { ...parts.config, preset } }),
})

/** Options that packages for OpenAI-shaped vendors pass on under these names. */
const COMMON_OPTIONS = { user: 'user', verbosity: 'textVerbosity' } as const

export const AI_SDK_VENDORS = {
  alibaba: ALIBABA,
  'amazon-bedrock': amazonBedrock,
  assemblyai: ASSEMBLYAI,
  azure,
  'black-forest-labs': BLACK_FOREST_LABS,
  cohere: vendor({
    baseUrl: 'https://api.cohere.com/v2',
    load: async ({ key, fetch }) => (await import('@ai-sdk/cohere')).createCohere({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk,
      thinking: ({ budget, enabled }) => ({
        thinking: { type: enabled ? 'enabled' : 'disabled', ...(budget && budget > 0 ? { tokenBudget: budget } : {}) },
      }),
      media: 'bytes',
      noUsage: { tokens: { input_tokens: 0, output_tokens: 0 } },
    },
    embeddings: {
      factory: (sdk) => sdk.embedding,
      maxInputs: () => 96,
      options: () => ({
        dimensions: 'outputDimension',
        // It requires one. Most texts are embedded to be searched later.
        input_type: { option: 'inputType', values: COHERE_INPUT_TYPES, default: 'document' },
      }),
    },
    rerank: { factory: (sdk) => sdk.reranking, maxTokensPerDocument: 'maxTokensPerDoc' },
  }),
  deepinfra: vendor({
    baseUrl: 'https://api.deepinfra.com/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/deepinfra')).createDeepInfra({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk.chatModel,
      options: COMMON_OPTIONS,
      hasStrictSchemas: true,
      modelsPath: '/openai/models',
    },
  }),
  deepseek: vendor({
    baseUrl: 'https://api.deepseek.com',
    load: async ({ key, fetch }) => (await import('@ai-sdk/deepseek')).createDeepSeek({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk,
      thinking: ({ enabled }) => ({ thinking: { type: enabled ? 'enabled' : 'disabled' } }),
      reasoningHistory: 'text',
      hasStrictSchemas: true,
      modelsPath: '/models',
    },
  }),
  deepgram: DEEPGRAM,
  elevenlabs: ELEVENLABS,
  fal: FAL,
  fireworks: FIREWORKS,
  google: GOOGLE,
  'google-vertex': googleVertex,
  groq: vendor({
    baseUrl: 'https://api.groq.com/openai/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/groq')).createGroq({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk,
      options: { user: 'user', parallel_tool_calls: 'parallelToolCalls', service_tier: 'serviceTier' },
      hasStrictSchemas: true,
      modelsPath: '/models',
    },
    others: (parts) => audioMembers(inShapeOf('groq', parts)),
  }),
  huggingface: vendor({
    baseUrl: 'https://router.huggingface.co/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/huggingface')).createHuggingFace({ apiKey: key, fetch }),
    // By its responses API, of which the package supports neither tool results nor JSON without a schema.
    chat: {
      factory: (sdk) => sdk,
      options: { reasoning_effort: 'reasoningEffort' },
      drops: ['tool_history'],
      jsonByPrompt: true,
      hasStrictSchemas: true,
      modelsPath: '/models',
    },
  }),
  luma: LUMA,
  minimax: MINIMAX,
  mistral: vendor({
    baseUrl: 'https://api.mistral.ai/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/mistral')).createMistral({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk.chat,
      options: { parallel_tool_calls: 'parallelToolCalls', prompt_cache_key: 'promptCacheKey' },
      noUsage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      hasStrictSchemas: true,
      modelsPath: '/models',
    },
    embeddings: {
      factory: (sdk) => sdk.embedding,
      maxInputs: () => 32,
      // Its tokens in a call.
      maxTokens: () => 16_000,
      options: () => ({ dimensions: 'outputDimension' }),
    },
    // Families that the package lacks are served in OpenAI's shape, as the preset describes them.
    others: (parts) => textMembers(inShapeOf('mistral', parts)),
    speech: {
      factory: (sdk) => sdk.speech,
      formats: { mp3: 'mp3', wav: 'wav', pcm: 'pcm', flac: 'flac', opus: 'opus' },
    },
    transcription: {
      factory: (sdk) => sdk.transcription,
      options: { temperature: 'temperature' },
      segments: 'segments',
      timed: () => ({ timestampGranularities: ['segment'] }),
    },
  }),
  moonshotai: vendor({
    baseUrl: 'https://api.moonshot.ai/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/moonshotai')).createMoonshotAI({ apiKey: key, fetch }),
    chat: { factory: (sdk) => sdk, modelsPath: '/models' },
  }),
  perplexity: vendor({
    baseUrl: 'https://api.perplexity.ai',
    load: async ({ key, fetch }) => (await import('@ai-sdk/perplexity')).createPerplexity({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk,
      options: { reasoning_effort: 'reasoning_effort' },
      drops: ['tools', 'tool_history', 'stop', 'json_object'],
      // It always searches; how much is an option.
      search({ search_context_size: size, user_location: place }) {
        const options = {
          ...(typeof size === 'string' ? { search_context_size: size } : {}),
          ...(isRecord(place) ? { user_location: jsonOf(place) } : {}),
        }
        return Object.keys(options).length > 0 ? { options: { web_search_options: options } } : {}
      },
    },
  }),
  replicate: REPLICATE,
  togetherai: vendor({
    baseUrl: 'https://api.together.xyz/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/togetherai')).createTogetherAI({ apiKey: key, fetch }),
    chat: {
      factory: (sdk) => sdk.chatModel,
      options: COMMON_OPTIONS,
      hasStrictSchemas: true,
      modelsPath: '/models',
    },
    embeddings: { factory: (sdk) => sdk.embeddingModel, ...OPENAI_EMBEDDINGS },
    images: {
      factory: (sdk) => sdk.image,
      shape: () => ({ by: 'size' }),
      edits: () => ({ max: 1 }),
      media: 'url or bytes',
      options: { negative_prompt: 'negative_prompt', output_format: 'output_format' },
      hasSeed: true,
      classifyError: classifyByWording,
      read: (payload) =>
        isRecord(payload) && Array.isArray(payload.data) ? { images: imagesIn(payload.data) } : undefined,
    },
    rerank: { factory: (sdk) => sdk.reranking },
  }),
  voyage: vendor({
    baseUrl: 'https://api.voyageai.com/v1',
    load: async ({ key, fetch }) => (await import('@ai-sdk/voyage')).createVoyage({ apiKey: key, fetch }),
    embeddings: {
      factory: (sdk) => sdk.embedding,
      maxInputs: () => 128,
      // The limit of its smallest model; others accept up to a million.
      maxTokens: () => 120_000,
      options: () => ({
        dimensions: 'outputDimension',
        input_type: { option: 'inputType', values: { query: 'query', document: 'document' } },
      }),
    },
    rerank: { factory: (sdk) => sdk.reranking },
  }),
  xai: XAI,
} satisfies { [kind in ProviderKind]?: AiSdkVendor | ((parts: AdapterParts) => AiSdkVendor) }

export type AiSdkKind = keyof typeof AI_SDK_VENDORS
