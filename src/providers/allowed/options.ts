/**
 * What `provider_options` of a chat request may contain under the name of a kind: options that reach no other model and
 * nothing in the operator's account. Names are in camel case; snake case matches too. Sources: the option types of
 * the AI SDK's packages (alibaba 2.0.58, amazon-bedrock 5.0.101, azure 4.0.85 with openai 4.0.118, cohere 4.0.52, deepseek 3.0.56, fireworks 3.0.62, google 4.0.121, groq 4.0.84, mistral 4.0.87, moonshotai 3.0.60, perplexity
 * 4.0.49, xai 5.0.12, openai-compatible 3.0.92), and the lists of the native kinds. Not on the list: fields that a
 * package forwards unchanged (`additionalModelRequestFields`), and ids of stored objects at the vendor.
 */
import { all, type ObjectShape, plain, type Shape } from '../../kit/allow-list.ts'
import { CONTENTGEN } from './contentgen.ts'

const thinking = plain('type', 'budgetTokens', 'tokenBudget')
const compatible = all('value', 'user', 'reasoningEffort', 'textVerbosity', 'strictJsonSchema')
const options = (...names: string[]): ObjectShape => ({
  members: { ...compatible, ...all('value', ...names), thinking },
})

const google: ObjectShape = {
  members: {
    ...all('value', 'responseModalities', 'structuredOutputs', 'threshold', 'audioTimestamp', 'mediaResolution'),
    ...all('value', 'serviceTier', 'streamFunctionCallArguments'),
    thinkingConfig: plain('thinkingBudget', 'includeThoughts', 'thinkingLevel'),
    safetySettings: plain('category', 'threshold'),
    labels: { others: 'value' },
    imageConfig: plain('aspectRatio', 'imageSize', 'personGeneration'),
    retrievalConfig: { members: { latLng: plain('latitude', 'longitude') } },
  },
}

const KINDS: Record<string, Shape> = {
  alibaba: options('enableThinking', 'thinkingBudget', 'preserveThinking', 'parallelToolCalls'),
  'amazon-bedrock': {
    members: {
      ...all('value', 'structuredOutputMode', 'serviceTier'),
      reasoningConfig: plain('type', 'budgetTokens', 'maxReasoningEffort', 'display'),
    },
  },
  azure: {
    members: {
      ...all('value', 'includeWebSearchSources', 'logprobs', 'maxToolCalls', 'parallelToolCalls', 'promptCacheKey'),
      ...all('value', 'promptCacheRetention', 'reasoningMode', 'reasoningContext', 'reasoningSummary', 'serviceTier'),
      ...all('value', 'safetyIdentifier', 'store', 'truncation', 'systemMessageMode', 'forceReasoning'),
      ...compatible,
      promptCacheOptions: plain('mode', 'ttl'),
      metadata: { others: 'value' },
      logitBias: { others: 'value' },
    },
  },
  cohere: options(),
  deepinfra: options(),
  deepseek: options('logprobs', 'topLogprobs', 'userId'),
  fireworks: options('promptCacheKey', 'serviceTier', 'reasoningHistory'),
  'google-vertex': google,
  groq: options('reasoningFormat', 'parallelToolCalls', 'structuredOutputs', 'serviceTier'),
  huggingface: options(),
  minimax: options(),
  mistral: options(
    ...['safePrompt', 'documentImageLimit', 'documentPageLimit', 'structuredOutputs', 'parallelToolCalls'],
    'promptCacheKey',
  ),
  moonshotai: options('logprobs', 'topLogprobs', 'reasoningHistory', 'promptCacheKey', 'safetyIdentifier'),
  perplexity: {
    members: {
      ...all('value', 'searchRecencyFilter', 'searchDomainFilter', 'searchLanguageFilter', 'searchAfterDateFilter'),
      ...all('value', 'searchBeforeDateFilter', 'lastUpdatedAfterFilter', 'lastUpdatedBeforeFilter', 'searchMode'),
      ...all('value', 'enableSearchClassifier', 'disableSearch', 'returnRelatedQuestions', 'returnImages'),
      ...all('value', 'imageDomainFilter', 'imageFormatFilter', 'streamMode', 'reasoningEffort'),
      ...all('value', 'languagePreference'),
      webSearchOptions: { members: { searchContextSize: 'value', userLocation: { others: 'value' } } },
      mediaResponse: { members: { overrides: plain('returnVideos', 'returnImages') } },
    },
  },
  togetherai: options(),
  xai: options(
    ...['reasoningSummary', 'logprobs', 'topLogprobs', 'minP', 'maxTurns', 'parallelToolCalls', 'promptCacheKey'],
    ...['safetyIdentifier', 'serviceTier', 'store', 'include'],
  ),
}

/** Options of chat requests, by kind. */
export const CHAT_OPTIONS: ObjectShape = { members: { ...KINDS, 'contentgen-compat': CONTENTGEN } }
