/** Vendors whose packages need nothing but a key: one row each. */
import type { Provider } from '../../provider.ts'
import type { AiSdkParts } from '../vendor.ts'
import { createAiSdkChat } from './ai-sdk-chat.ts'
import type { ChatVendor } from './vendor.ts'

type PlainVendor = Pick<ChatVendor, 'kind' | 'home' | 'key_env' | 'load'> & Partial<ChatVendor>

/** A vendor of whom nothing more is to be told than where it is, what opens it, and its package. */
export const plain =
  (row: PlainVendor) =>
  (parts: AiSdkParts): Provider =>
    createAiSdkChat(parts, { namespace: row.kind, models: '/models', ...row })

/** What packages for OpenAI-shaped vendors hand on under these names. */
const COMMON = { user: 'user', verbosity: 'textVerbosity' } as const

export const MISTRAL: ChatVendor = {
  kind: 'mistral',
  home: 'https://api.mistral.ai/v1',
  key_env: ['MISTRAL_API_KEY'],
  namespace: 'mistral',
  load: async ({ key, fetch }) => (await import('@ai-sdk/mistral')).createMistral({ apiKey: key, fetch }).chat,
  options: { parallel_tool_calls: 'parallelToolCalls', prompt_cache_key: 'promptCacheKey' },
  hasStrictSchemas: true,
  models: '/models',
}

export const TOGETHERAI: ChatVendor = {
  kind: 'togetherai',
  home: 'https://api.together.xyz/v1',
  key_env: ['TOGETHER_API_KEY', 'TOGETHER_AI_API_KEY'],
  namespace: 'togetherai',
  load: async ({ key, fetch }) =>
    (await import('@ai-sdk/togetherai')).createTogetherAI({ apiKey: key, fetch }).chatModel,
  options: COMMON,
  hasStrictSchemas: true,
  models: '/models',
}

export const FIREWORKS: ChatVendor = {
  kind: 'fireworks',
  home: 'https://api.fireworks.ai/inference/v1',
  key_env: ['FIREWORKS_API_KEY'],
  namespace: 'fireworks',
  load: async ({ key, fetch }) => (await import('@ai-sdk/fireworks')).createFireworks({ apiKey: key, fetch }).chatModel,
  options: { ...COMMON, prompt_cache_key: 'promptCacheKey', service_tier: 'serviceTier' },
  thinking: ({ budget, enabled }) => ({
    thinking: { type: enabled ? 'enabled' : 'disabled', ...(budget && budget > 0 ? { budgetTokens: budget } : {}) },
  }),
  thoughts: 'text',
  hasStrictSchemas: true,
  models: '/models',
}

export const DEEPINFRA: ChatVendor = {
  kind: 'deepinfra',
  home: 'https://api.deepinfra.com/v1',
  key_env: ['DEEPINFRA_API_KEY'],
  namespace: 'deepinfra',
  load: async ({ key, fetch }) => (await import('@ai-sdk/deepinfra')).createDeepInfra({ apiKey: key, fetch }).chatModel,
  options: COMMON,
  hasStrictSchemas: true,
  models: '/openai/models',
}

export const GROQ: ChatVendor = {
  kind: 'groq',
  home: 'https://api.groq.com/openai/v1',
  key_env: ['GROQ_API_KEY'],
  namespace: 'groq',
  load: async ({ key, fetch }) => (await import('@ai-sdk/groq')).createGroq({ apiKey: key, fetch }),
  options: { user: 'user', parallel_tool_calls: 'parallelToolCalls', service_tier: 'serviceTier' },
  hasStrictSchemas: true,
  models: '/models',
}
