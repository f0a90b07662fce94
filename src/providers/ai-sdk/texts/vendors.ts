/** Vendors of embeddings and rerankers behind AI SDK packages: one row each. */
import type { Provider } from '../../provider.ts'
import { rowOf } from '../chat/amazon-bedrock.ts'
import { azure } from '../chat/azure.ts'
import { googleVertexChat } from '../chat/google-vertex.ts'
import { FIREWORKS, MISTRAL, TOGETHERAI } from '../chat/openai-shaped.ts'
import { COHERE } from '../chat/vendors.ts'
import { GOOGLE } from '../google.ts'
import type { AiSdkParts } from '../vendor.ts'
import { aiSdkTexts } from './ai-sdk-texts.ts'
import type { EmbeddingWords, TextVendor } from './vendor.ts'

type Texts = Pick<Provider, 'embeddings' | 'rerank'>
/** Of a vendor that is known from another family: where it is and who we are there. */
type Known = Pick<TextVendor, 'kind' | 'home' | 'key_env'> &
  Partial<Pick<TextVendor, 'needsNoKey' | 'hosts' | 'authorize' | 'send'>>

function known({ kind, home, key_env, needsNoKey, hosts, authorize, send }: Known): Known {
  return {
    kind,
    home,
    key_env,
    ...(needsNoKey ? { needsNoKey } : {}),
    ...(hosts ? { hosts } : {}),
    ...(authorize ? { authorize } : {}),
    ...(send ? { send } : {}),
  }
}

const always = (words: EmbeddingWords) => () => words
const OPENAI_WORDS = always({ dimensions: 'dimensions', user: 'user' })
/** What OpenAI's API takes, and the packages for its imitators. */
const OPENAI_INPUTS = () => 2048
const COHERE_TYPES = { query: 'search_query', document: 'search_document' }
const GOOGLE_TYPES = { query: 'RETRIEVAL_QUERY', document: 'RETRIEVAL_DOCUMENT' }
const GOOGLE_WORDS = always({
  dimensions: 'outputDimensionality',
  input_type: { option: 'taskType', words: GOOGLE_TYPES },
})
const PLAIN_TYPES = { query: 'query', document: 'document' }

export const GOOGLE_TEXTS: TextVendor = {
  ...known(GOOGLE),
  namespace: 'google',
  embedding: {
    async load({ key, fetch }) {
      const { createGoogle } = await import('@ai-sdk/google')
      return createGoogle({ apiKey: key, baseURL: GOOGLE.home, fetch }).embedding
    },
    most_inputs: () => 100,
    words: GOOGLE_WORDS,
  },
}

/** Throws an Error that names the provider and says what would be right. */
export function googleVertexTexts(parts: AiSdkParts): Texts {
  const row = googleVertexChat(parts)
  return aiSdkTexts(parts, {
    ...known(row),
    namespace: 'googleVertex',
    embedding: {
      async load({ key, fetch }) {
        const { createGoogleVertex } = await import('@ai-sdk/google-vertex')
        return createGoogleVertex({ apiKey: key, baseURL: row.home, fetch }).embeddingModel
      },
      // The Gemini models take one text a call there.
      most_inputs: (model) => (/^gemini-embedding/.test(model) ? 1 : 250),
      most_tokens: () => 20_000,
      words: GOOGLE_WORDS,
    },
  })
}

export const MISTRAL_TEXTS: TextVendor = {
  ...known(MISTRAL),
  namespace: 'mistral',
  embedding: {
    load: async ({ key, fetch }) => (await import('@ai-sdk/mistral')).createMistral({ apiKey: key, fetch }).embedding,
    most_inputs: () => 32,
    // Its tokens a call.
    most_tokens: () => 16_000,
    words: always({ dimensions: 'outputDimension' }),
  },
}

export const COHERE_TEXTS: TextVendor = {
  ...known(COHERE),
  namespace: 'cohere',
  embedding: {
    load: async ({ key, fetch }) => (await import('@ai-sdk/cohere')).createCohere({ apiKey: key, fetch }).embedding,
    most_inputs: () => 96,
    words: always({
      dimensions: 'outputDimension',
      // It demands one. Most of what is embedded is what is searched later.
      input_type: { option: 'inputType', words: COHERE_TYPES, default: 'document' },
    }),
  },
  reranking: {
    load: async ({ key, fetch }) => (await import('@ai-sdk/cohere')).createCohere({ apiKey: key, fetch }).reranking,
    max_tokens_per_doc: 'maxTokensPerDoc',
  },
}

/** Throws an Error that names the provider and says what would be right. */
export function azureTexts(parts: AiSdkParts): Texts {
  const row = azure(parts)
  const { apiVersion = 'v1', deploymentUrls = false } = parts.config.options ?? {}
  return aiSdkTexts(parts, {
    ...known(row),
    ...(row.chatUrl ? { textUrl: row.chatUrl } : {}),
    namespace: 'openai',
    embedding: {
      async load({ key, fetch }) {
        const { createAzure } = await import('@ai-sdk/azure')
        const settings = { apiVersion: String(apiVersion), useDeploymentBasedUrls: deploymentUrls === true }
        return createAzure({ apiKey: key, baseURL: row.home, fetch, ...settings }).embedding
      },
      most_inputs: OPENAI_INPUTS,
      most_tokens: () => 300_000,
      words: OPENAI_WORDS,
      takesTokens: true,
    },
  })
}

export const TOGETHERAI_TEXTS: TextVendor = {
  ...known(TOGETHERAI),
  namespace: 'togetherai',
  embedding: {
    load: async ({ key, fetch }) =>
      (await import('@ai-sdk/togetherai')).createTogetherAI({ apiKey: key, fetch }).embeddingModel,
    most_inputs: OPENAI_INPUTS,
    words: OPENAI_WORDS,
  },
  reranking: {
    load: async ({ key, fetch }) =>
      (await import('@ai-sdk/togetherai')).createTogetherAI({ apiKey: key, fetch }).reranking,
  },
}

export const FIREWORKS_TEXTS: TextVendor = {
  ...known(FIREWORKS),
  namespace: 'fireworks',
  embedding: {
    load: async ({ key, fetch }) =>
      (await import('@ai-sdk/fireworks')).createFireworks({ apiKey: key, fetch }).embeddingModel,
    most_inputs: OPENAI_INPUTS,
    words: OPENAI_WORDS,
  },
}

/** By its own API, not by the one that imitates OpenAI's: that one knows no queries and documents. */
export const ALIBABA_TEXTS: TextVendor = {
  kind: 'alibaba',
  home: 'https://dashscope-intl.aliyuncs.com/api/v1',
  key_env: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'],
  textUrl: (base_url) => base_url.replace(/\/compatible-mode\/v1\/?$/, '/api/v1'),
  namespace: 'alibaba',
  embedding: {
    load: async ({ key, fetch }) => (await import('@ai-sdk/alibaba')).createAlibaba({ apiKey: key, fetch }).embedding,
    most_inputs: () => 10,
    words: always({ dimensions: 'dimension', input_type: { option: 'textType', words: PLAIN_TYPES } }),
  },
}

export const VOYAGE: TextVendor = {
  kind: 'voyage',
  home: 'https://api.voyageai.com/v1',
  key_env: ['VOYAGE_API_KEY'],
  namespace: 'voyage',
  embedding: {
    load: async ({ key, fetch }) => (await import('@ai-sdk/voyage')).createVoyage({ apiKey: key, fetch }).embedding,
    most_inputs: () => 128,
    // Of its smallest model; others take up to a million.
    most_tokens: () => 120_000,
    words: always({ dimensions: 'outputDimension', input_type: { option: 'inputType', words: PLAIN_TYPES } }),
  },
  reranking: {
    load: async ({ key, fetch }) => (await import('@ai-sdk/voyage')).createVoyage({ apiKey: key, fetch }).reranking,
  },
}

/** Three families of models with a shape each. */
function bedrockWords(model: string): EmbeddingWords {
  if (/cohere\.embed-/.test(model)) {
    const input_type = { option: 'inputType', words: COHERE_TYPES, default: 'document' as const }
    return { dimensions: 'outputDimension', input_type }
  }
  if (/amazon\.nova-.*embed/.test(model)) {
    const words = { query: 'TEXT_RETRIEVAL', document: 'GENERIC_INDEX' }
    return { dimensions: 'embeddingDimension', input_type: { option: 'embeddingPurpose', words } }
  }
  return { dimensions: 'dimensions' }
}

/** Throws an Error that names the provider and says what would be right. */
export function amazonBedrockTexts(parts: AiSdkParts): Texts {
  const { vendor, key, open, agentHome } = rowOf(parts)
  const own = { ...parts, config: { ...parts.config, ...(key ? { key } : {}) } }
  const namespace = 'amazonBedrock'
  return {
    ...aiSdkTexts(own, {
      ...known(vendor),
      namespace,
      embedding: {
        load: async (at) => (await open(at, vendor.home)).embedding,
        most_inputs: (model) => (/cohere\.embed-/.test(model) ? 96 : 1),
        words: bedrockWords,
      },
    }),
    ...aiSdkTexts(own, {
      ...known({ ...vendor, home: agentHome }),
      namespace,
      reranking: { load: async (at) => (await open(at, agentHome)).reranking },
    }),
  }
}
