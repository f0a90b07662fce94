/** Fireworks AI: chat, embeddings, and FLUX and older models for images. */
import { isRecord } from '../../../kit/json.ts'
import type { ImageFamily } from '../images/image-family.ts'
import { OPENAI_EMBEDDINGS } from '../text-families.ts'
import { vendor } from '../vendor-row.ts'
import { readFlux } from './black-forest-labs.ts'
import { classifyByWording, filtered, imagesIn, matchesAny } from './response-values.ts'

/** Older models, which are given a size; all others a ratio. */
const BY_SIZE = ['*playground*', '*stable-diffusion*', '*ssd-1b*']
const FLUX_RATIOS = ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3', '4:5', '5:4', '21:9', '9:21']

const IMAGES: ImageFamily = {
  queries: /\/get_result$/,
  pendingResponse: () => ({ id: '', status: 'Pending', result: null }),
  shape: (model) => (matchesAny(model, BY_SIZE) ? { by: 'size' } : { by: 'ratio', among: FLUX_RATIOS }),
  edits: (model) => ({ max: matchesAny(model, ['*kontext*']) ? 1 : 0 }),
  media: 'bytes',
  options: { output_format: 'output_format' },
  hasSeed: true,
  classifyError: classifyByWording,
  read(payload, status) {
    const list = Array.isArray(payload) ? payload : isRecord(payload) && payload.base64 !== undefined ? [payload] : []
    if (list.length === 0) return readFlux(payload, status)
    const items = list.filter(isRecord)
    const values = items.flatMap(({ base64 }) => (Array.isArray(base64) ? base64 : [base64]))
    const images = imagesIn(values.map((b64_json) => ({ b64_json })))
    if (images.length > 0) return { images }
    const reason = items.map(({ finishReason }) => String(finishReason ?? '')).join(' ')
    return /filter/i.test(reason) ? filtered(reason) : { failure: { reason: reason || 'It returned no image.' } }
  },
}

export const FIREWORKS = vendor({
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  load: async ({ key, fetch }) => (await import('@ai-sdk/fireworks')).createFireworks({ apiKey: key, fetch }),
  chat: {
    factory: (sdk) => sdk.chatModel,
    options: {
      user: 'user',
      verbosity: 'textVerbosity',
      prompt_cache_key: 'promptCacheKey',
      service_tier: 'serviceTier',
    },
    thinking: ({ budget, enabled }) => ({
      thinking: { type: enabled ? 'enabled' : 'disabled', ...(budget && budget > 0 ? { budgetTokens: budget } : {}) },
    }),
    reasoningHistory: 'text',
    hasStrictSchemas: true,
    modelsPath: '/models',
  },
  embeddings: { factory: (sdk) => sdk.embeddingModel, ...OPENAI_EMBEDDINGS },
  images: {
    factory: (sdk) => sdk.image,
    // The default response, a bare file, cannot report that its filter removed the image.
    rewrite: (request) => ({ ...request, headers: { ...request.headers, accept: 'application/json' } }),
    ...IMAGES,
  },
})
