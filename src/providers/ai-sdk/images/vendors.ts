/** Vendors of images behind AI SDK packages: one row each. */
import { matchesGlob } from '../../../kit/glob.ts'
import { isRecord } from '../../../kit/json.ts'
import { imageIn } from '../../chatcompat/image-response.ts'
import type { GeneratedImage } from '../../provider.ts'
import { BLACK_FOREST_LABS } from '../black-forest-labs.ts'
import { TOGETHERAI } from '../chat/openai-shaped.ts'
import { XAI_CHAT } from '../chat/vendors.ts'
import { FAL } from '../fal.ts'
import { REPLICATE } from '../replicate.ts'
import { AGAINST_POLICY, wordsOf } from '../words.ts'
import type { ImageVendor, SaidOfImages } from './vendor.ts'

const fits = (model: string, globs: readonly string[]) => globs.some((glob) => matchesGlob(glob, model.toLowerCase()))

/** The ratios of FLUX where it is told one. */
const FLUX_RATIOS = ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3', '4:5', '5:4', '21:9', '9:21']

export const XAI_IMAGES: ImageVendor = {
  kind: 'xai',
  home: XAI_CHAT.home,
  key_env: XAI_CHAT.key_env,
  namespace: 'xai',
  load: async ({ key, fetch }) => (await import('@ai-sdk/xai')).createXai({ apiKey: key, fetch }).image,
  shape: () => ({
    by: 'ratio',
    among: ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3', '2:1', '1:2', '20:9', '9:20'],
  }),
  edits: () => ({ most: 3 }),
  media: 'address or bytes',
  options: { quality: 'quality', user: 'user' },
  read(payload) {
    const list = isRecord(payload) && Array.isArray(payload.data) ? payload.data.filter(isRecord) : undefined
    if (!list) return undefined
    const allowed = list.filter((item) => item.respect_moderation !== false)
    if (allowed.length > 0 || list.length === 0) return { images: allowed.flatMap((item) => imageIn(item) ?? []) }
    return { failure: { fail_code: 'content_policy_violation', reason: 'The images were held back by moderation.' } }
  },
}

export const TOGETHERAI_IMAGES: ImageVendor = {
  kind: 'togetherai',
  home: TOGETHERAI.home,
  key_env: TOGETHERAI.key_env,
  namespace: 'togetherai',
  load: async ({ key, fetch }) => (await import('@ai-sdk/togetherai')).createTogetherAI({ apiKey: key, fetch }).image,
  shape: () => ({ by: 'size' }),
  edits: () => ({ most: 1 }),
  media: 'address or bytes',
  options: { negative_prompt: 'negative_prompt', output_format: 'output_format' },
  hasSeed: true,
  judge: (payload, status) =>
    (status === 400 || status === 422) && AGAINST_POLICY.test(wordsOf(payload)) ? 'policy' : undefined,
  read: readList,
}

/** A list as OpenAI has it; anything else says nothing here. */
function readList(payload: unknown): SaidOfImages | undefined {
  if (!isRecord(payload) || !Array.isArray(payload.data)) return undefined
  return { images: payload.data.flatMap((item) => imageIn(item) ?? []) }
}

/** Models there that are told a ratio, by the name `aspect_ratio`; all others a size. */
const FAL_BY_RATIO = ['*ultra*', '*kontext*', '*imagen*', '*nano-banana*', '*gemini*', '*grok*', '*luma*', '*minimax*']
const FAL_HOME = 'https://fal.run'

/** By its direct address: the queue is for what takes minutes. */
export const FAL_IMAGES: ImageVendor = {
  kind: 'fal',
  home: FAL_HOME,
  key_env: FAL.key_env,
  namespace: 'fal',
  imageUrl: (base_url) => base_url.replace(/^https:\/\/queue\.fal\.run\/?$/, FAL_HOME),
  load: async ({ key, fetch }) =>
    (await import('@ai-sdk/fal')).createFal({ apiKey: key, baseURL: FAL_HOME, fetch }).image,
  shape: (model) => (fits(model, FAL_BY_RATIO) ? { by: 'ratio', option: 'aspect_ratio' } : { by: 'size' }),
  edits: () => ({ most: 16, mask: 'white' }),
  media: 'address or bytes',
  options: { negative_prompt: 'negative_prompt', output_format: 'outputFormat' },
  hasSeed: true,
  // Which of its fields takes the images differs: `/edit` models have a list.
  write: ({ images = [] }, model) => ({
    ...(images.length > 1 || (images.length > 0 && fits(model, ['*/edit', '*/multi']))
      ? { useMultipleImages: true }
      : {}),
  }),
  judge: (payload, status) => FAL.judge?.(payload, status),
  read(payload) {
    if (!isRecord(payload)) return undefined
    const list = [payload.images, payload.image === undefined ? undefined : [payload.image]].find(Array.isArray)
    if (!list) return undefined
    const flags = [payload.has_nsfw_concepts, payload.nsfw_content_detected].find(Array.isArray) ?? []
    // What its filter has caught is black.
    const seen = list.filter((_, index) => flags[index] !== true)
    if (seen.length > 0 || list.length === 0) return { images: seen.flatMap((item) => imageIn(item) ?? []) }
    return {
      failure: { fail_code: 'content_policy_violation', reason: 'The images were caught by the safety filter.' },
    }
  },
}

/** Models there that are told width and height; all others a ratio. */
const REPLICATE_BY_SIZE = ['*sdxl*', '*stable-diffusion*', '*sana*', '*playground*']
const REPLICATE_FLUX_2 = ['black-forest-labs/flux-2-*']

export const REPLICATE_IMAGES: ImageVendor = {
  kind: 'replicate',
  home: REPLICATE.home,
  key_env: REPLICATE.key_env,
  namespace: 'replicate',
  load: async ({ key, fetch }) =>
    (await import('@ai-sdk/replicate')).createReplicate({ apiToken: key, baseURL: REPLICATE.home, fetch }).image,
  shape: (model) =>
    fits(model, REPLICATE_BY_SIZE) ? { by: 'size', options: { width: 'width', height: 'height' } } : { by: 'ratio' },
  edits: (model) => (fits(model, REPLICATE_FLUX_2) ? { most: 8 } : { most: 1, mask: 'white' }),
  media: 'address or bytes',
  options: { negative_prompt: 'negative_prompt', output_format: 'output_format', quality: 'quality' },
  hasSeed: true,
  most: () => 1,
  waits: (receipt) => ({ ...receipt, status: 'processing' }),
  write: ({ output_format }) => ({
    maxPollAttempts: POLL_ATTEMPTS,
    ...(output_format === 'jpeg' ? { output_format: 'jpg' } : {}),
  }),
  ...(REPLICATE.judge ? { judge: REPLICATE.judge } : {}),
  read(payload, status) {
    const { outputs, failure } = REPLICATE.read?.(payload, status) ?? {}
    if (failure) return { failure }
    return outputs && { images: outputs.flatMap((one) => ('url' in one ? (imageIn(one.url) ?? []) : [])) }
  },
}

/** Twice a second, for as long as an order of images may take. */
const POLL_ATTEMPTS = 560
const POLL_MILLISECONDS = 280_000

/** FLUX as Black Forest Labs serve it, and Fireworks for them. */
const BFL_BY_RATIO = ['*ultra*', '*kontext*']
const BFL_FILL = ['*fill*']

function readBfl(payload: unknown, status: number): SaidOfImages | undefined {
  if (!isRecord(payload)) return undefined
  const sample = isRecord(payload.result) ? payload.result.sample : undefined
  if ((payload.status ?? payload.state) === 'Ready') {
    return { images: typeof sample === 'string' ? toList(imageIn(sample)) : [] }
  }
  const failure = BLACK_FOREST_LABS.read?.(payload, status)?.failure
  return failure && { failure }
}
const toList = (image: GeneratedImage | undefined): GeneratedImage[] => (image ? [image] : [])

export const BLACK_FOREST_LABS_IMAGES: ImageVendor = {
  kind: 'black-forest-labs',
  home: BLACK_FOREST_LABS.home,
  key_env: BLACK_FOREST_LABS.key_env,
  namespace: 'blackForestLabs',
  async load({ key, fetch }) {
    const { createBlackForestLabs } = await import('@ai-sdk/black-forest-labs')
    const polling = { pollTimeoutMillis: POLL_MILLISECONDS }
    return createBlackForestLabs({ apiKey: key, baseURL: BLACK_FOREST_LABS.home, fetch, ...polling }).image
  },
  ...(BLACK_FOREST_LABS.hosts ? { hosts: BLACK_FOREST_LABS.hosts } : {}),
  shape: (model) => (fits(model, BFL_BY_RATIO) ? { by: 'ratio' } : { by: 'size' }),
  edits: (model) => (fits(model, BFL_FILL) ? { most: 1, mask: 'white' } : { most: 10 }),
  media: 'address or bytes',
  options: { output_format: 'outputFormat' },
  hasSeed: true,
  waits: () => ({ status: 'Pending' }),
  ...(BLACK_FOREST_LABS.judge ? { judge: BLACK_FOREST_LABS.judge } : {}),
  read: readBfl,
}

/** Models of old there that are told a size; all others a ratio. */
const FIREWORKS_BY_SIZE = ['*playground*', '*stable-diffusion*', '*ssd-1b*']

export const FIREWORKS_IMAGES: ImageVendor = {
  kind: 'fireworks',
  home: 'https://api.fireworks.ai/inference/v1',
  key_env: ['FIREWORKS_API_KEY'],
  namespace: 'fireworks',
  load: async ({ key, fetch }) => (await import('@ai-sdk/fireworks')).createFireworks({ apiKey: key, fetch }).image,
  asks: /\/get_result$/,
  waits: () => ({ id: '', status: 'Pending', result: null }),
  shape: (model) => (fits(model, FIREWORKS_BY_SIZE) ? { by: 'size' } : { by: 'ratio', among: FLUX_RATIOS }),
  edits: (model) => ({ most: fits(model, ['*kontext*']) ? 1 : 0 }),
  // A bare file, which is what it gives otherwise, cannot say that its filter kept the image.
  send: (request) => ({ ...request, headers: { ...request.headers, accept: 'application/json' } }),
  media: 'bytes',
  options: { output_format: 'output_format' },
  hasSeed: true,
  judge: (payload, status) =>
    (status === 400 || status === 422) && AGAINST_POLICY.test(wordsOf(payload)) ? 'policy' : undefined,
  read(payload, status) {
    const list = Array.isArray(payload) ? payload : isRecord(payload) && payload.base64 !== undefined ? [payload] : []
    if (list.length === 0) return readBfl(payload, status)
    const items = list.filter(isRecord)
    const images = items.flatMap(({ base64 }) => (Array.isArray(base64) ? base64 : [base64]))
    const made = images.flatMap((one) => imageIn({ b64_json: one }) ?? [])
    if (made.length > 0) return { images: made }
    const reason = items.map(({ finishReason }) => String(finishReason ?? '')).join(' ')
    return /filter/i.test(reason)
      ? { failure: { fail_code: 'content_policy_violation', reason } }
      : { failure: { reason: reason || 'It answered with no image.' } }
  },
}

/** It takes pictures only by their address. */
export const LUMA_IMAGES: ImageVendor = {
  kind: 'luma',
  home: 'https://api.lumalabs.ai/dream-machine/v1',
  key_env: ['LUMAAI_API_KEY'],
  namespace: 'luma',
  load: async ({ key, fetch }) => (await import('@ai-sdk/luma')).createLuma({ apiKey: key, fetch }).image,
  shape: () => ({ by: 'ratio', among: ['1:1', '3:4', '4:3', '9:16', '16:9', '9:21', '21:9'] }),
  edits: () => ({ most: 4 }),
  media: 'address',
  waits: (receipt) => receipt,
  options: { output_format: 'format' },
  write: ({ images = [], output_format }) => ({
    maxPollAttempts: POLL_ATTEMPTS,
    ...(images.length === 1 ? { referenceType: 'modify_image' } : {}),
    ...(output_format === 'jpeg' ? { format: 'jpg' } : {}),
  }),
  judge: (payload, status) =>
    status === 400 && /moderation|not allowed|polic/i.test(wordsOf(payload)) ? 'policy' : undefined,
  read(payload) {
    if (!isRecord(payload)) return undefined
    if (payload.state === 'failed') return { failure: { reason: String(payload.failure_reason ?? '') } }
    if (payload.state !== 'completed') return undefined
    return { images: toList(isRecord(payload.assets) ? imageIn(payload.assets.image) : undefined) }
  },
}
