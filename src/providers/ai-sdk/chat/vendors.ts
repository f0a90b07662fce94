/** Vendors whose packages need a word more than a key: what each has, takes and loses. */
import type { ChatVendor } from './vendor.ts'

export const ALIBABA_CHAT: ChatVendor = {
  kind: 'alibaba',
  home: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
  // The address of the same region that is known from its videos.
  chatUrl: (base_url) => base_url.replace(/\/api\/v1\/?$/, '/compatible-mode/v1'),
  key_env: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'],
  namespace: 'alibaba',
  load: async ({ key, fetch }) => (await import('@ai-sdk/alibaba')).createAlibaba({ apiKey: key, fetch }).chatModel,
  options: { parallel_tool_calls: 'parallelToolCalls' },
  thinking: ({ budget, enabled }) => ({
    enableThinking: enabled,
    ...(budget && budget > 0 ? { thinkingBudget: budget } : {}),
  }),
  thoughts: 'text',
  models: '/models',
}

export const COHERE: ChatVendor = {
  kind: 'cohere',
  home: 'https://api.cohere.com/v2',
  key_env: ['COHERE_API_KEY', 'CO_API_KEY'],
  namespace: 'cohere',
  load: async ({ key, fetch }) => (await import('@ai-sdk/cohere')).createCohere({ apiKey: key, fetch }),
  thinking: ({ budget, enabled }) => ({
    thinking: { type: enabled ? 'enabled' : 'disabled', ...(budget && budget > 0 ? { tokenBudget: budget } : {}) },
  }),
  media: 'bytes',
}

export const DEEPSEEK: ChatVendor = {
  kind: 'deepseek',
  home: 'https://api.deepseek.com',
  key_env: ['DEEPSEEK_API_KEY'],
  namespace: 'deepseek',
  load: async ({ key, fetch }) => (await import('@ai-sdk/deepseek')).createDeepSeek({ apiKey: key, fetch }),
  thinking: ({ enabled }) => ({ thinking: { type: enabled ? 'enabled' : 'disabled' } }),
  thoughts: 'text',
  hasStrictSchemas: true,
  models: '/models',
}

/** By its responses API, of which the package knows neither results of tools nor JSON without a schema. */
export const HUGGINGFACE: ChatVendor = {
  kind: 'huggingface',
  home: 'https://router.huggingface.co/v1',
  key_env: ['HF_TOKEN', 'HUGGINGFACE_API_KEY'],
  namespace: 'huggingface',
  load: async ({ key, fetch }) => (await import('@ai-sdk/huggingface')).createHuggingFace({ apiKey: key, fetch }),
  options: { reasoning_effort: 'reasoningEffort' },
  loses: ['tool_history'],
  jsonByWords: true,
  hasStrictSchemas: true,
  models: '/models',
}

export const PERPLEXITY: ChatVendor = {
  kind: 'perplexity',
  home: 'https://api.perplexity.ai',
  key_env: ['PERPLEXITY_API_KEY'],
  namespace: 'perplexity',
  load: async ({ key, fetch }) => (await import('@ai-sdk/perplexity')).createPerplexity({ apiKey: key, fetch }),
  options: { reasoning_effort: 'reasoning_effort' },
  loses: ['tools', 'tool_history', 'stop', 'json_object'],
  // It searches in any case; how much is an option.
  search({ search_context_size: size, user_location: place }) {
    const options = {
      ...(typeof size === 'string' ? { search_context_size: size } : {}),
      ...(typeof place === 'object' && place !== null && !Array.isArray(place) ? { user_location: { ...place } } : {}),
    }
    return Object.keys(options).length > 0 ? { options: { web_search_options: options } } : {}
  },
}

export const XAI_CHAT: ChatVendor = {
  kind: 'xai',
  home: 'https://api.x.ai/v1',
  key_env: ['XAI_API_KEY'],
  namespace: 'xai',
  load: async ({ key, fetch }) => (await import('@ai-sdk/xai')).createXai({ apiKey: key, fetch }).responses,
  options: {
    parallel_tool_calls: 'parallelToolCalls',
    prompt_cache_key: 'promptCacheKey',
    safety_identifier: 'safetyIdentifier',
    store: 'store',
    user: 'user',
  },
  search: () => ({ tool: { type: 'provider', id: 'xai.web_search', name: 'web_search', args: {} } }),
  models: '/models',
}
