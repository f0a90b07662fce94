/** fal: models of many makers, each with its own fields; videos by the queue, images by the direct URL. */
import { isRecord } from '../../../kit/json.ts'
import { tierOf } from '../../orders/order-fields.ts'
import { createFalThreeD } from '../../three-d/fal.ts'
import type { ImageFamily } from '../images/image-family.ts'
import { vendor } from '../vendor-row.ts'
import type { VideoFamily, VideoStatus } from '../video/video-family.ts'
import { FAL_LIST, falListUrl, readFalList } from './fal-list.ts'
import { classifyFalError, failureOf, QUEUE_URL } from './fal-queue.ts'
import { filtered, imagesIn, matchesAny, messageIn } from './response-values.ts'

const DIRECT_URL = 'https://fal.run'

const VIDEO: VideoFamily = {
  acceptedResponse: { request_id: 'id', response_url: `${QUEUE_URL}/fal-ai/model/requests/id` },
  media: 'url',
  // Their names differ between models: `fields.rename` or `metadata.fal` names them.
  drops: ['last_image', 'images', 'n'],
  adaptOptions(options, order, model) {
    const { extras } = options
    const tier = order.size?.includes('x') ? undefined : tierOf(order.size)
    if (tier !== undefined) extras.resolution = tier
    else if (order.size !== undefined) extras.resolution = order.size
    if (order.duration !== undefined) extras.duration = durationOf(order.duration, model)
    if (order.audio_enable !== undefined) extras.generate_audio = order.audio_enable
    if (order.negative_prompt) extras.negativePrompt = order.negative_prompt
    if (order.seed === 0) extras.seed = 0 // the package treats it as absent
    const [video] = options.inputReferences ?? []
    if (video?.type === 'url') extras.video_url = video.url
    return { ...options, inputReferences: undefined }
  },
  classifyError: classifyFalError,
  read,
  hasUnreliableErrors: true,
  cancel: ({ responseUrl }) =>
    typeof responseUrl === 'string' ? { method: 'PUT', url: `${responseUrl}/cancel` } : undefined,
  orderList: {
    ...FAL_LIST,
    url: falListUrl,
    read: (payload, page) =>
      readFalList(payload, page, ({ path }) => ({
        responseUrl: QUEUE_URL + path,
        submitUrl: `${QUEUE_URL}/${page.model.includes('/') ? page.model : `fal-ai/${page.model}`}`,
      })),
    fieldsOf: (body) => ({ always: { json_input: body } }),
  },
}

/** Models that are given a ratio, as `aspect_ratio`; all others a size. */
const BY_RATIO = ['*ultra*', '*kontext*', '*imagen*', '*nano-banana*', '*gemini*', '*grok*', '*luma*', '*minimax*']

const IMAGES: ImageFamily = {
  shape: (model) => (matchesAny(model, BY_RATIO) ? { by: 'ratio', option: 'aspect_ratio' } : { by: 'size' }),
  edits: () => ({ max: 16, mask: 'white' }),
  media: 'url or bytes',
  options: { negative_prompt: 'negative_prompt', output_format: 'outputFormat' },
  hasSeed: true,
  // The field for images differs: `/edit` models have a list.
  moreOptions: ({ images = [] }, model) => ({
    ...(images.length > 1 || (images.length > 0 && matchesAny(model, ['*/edit', '*/multi']))
      ? { useMultipleImages: true }
      : {}),
  }),
  classifyError: classifyFalError,
  read(payload) {
    if (!isRecord(payload)) return undefined
    const list = [payload.images, payload.image === undefined ? undefined : [payload.image]].find(Array.isArray)
    if (!list) return undefined
    const flags = [payload.has_nsfw_concepts, payload.nsfw_content_detected].find(Array.isArray) ?? []
    // A filtered image is black.
    const allowed = list.filter((_, index) => flags[index] !== true)
    if (allowed.length > 0 || list.length === 0) return { images: imagesIn(allowed) }
    return filtered('The images were removed by the safety filter.')
  },
}

export const FAL = vendor({
  baseUrl: QUEUE_URL,
  load: async ({ key, fetch, baseUrl }) =>
    (await import('@ai-sdk/fal')).createFal({ apiKey: key, baseURL: baseUrl, fetch }),
  images: {
    factory: (sdk) => sdk.image,
    baseUrl: DIRECT_URL,
    adaptBaseUrl: (configured) => configured.replace(/^https:\/\/queue\.fal\.run\/?$/, DIRECT_URL),
    ...IMAGES,
  },
  video: {
    factory: (sdk) => sdk.video,
    hosts: /^api\.fal\.ai$/,
    /** The package puts every model below `fal-ai/`, where only some are. */
    rewrite: (request, model) =>
      request.url === `${QUEUE_URL}/fal-ai/${model.replace(/^fal(-ai)?\//, '')}` && model.includes('/')
        ? { ...request, url: `${QUEUE_URL}/${model}` }
        : request,
    ...VIDEO,
  },
  others: (parts) => ({ threeD: createFalThreeD(parts) }),
})

/** `8s` for some models, a number for others, `"8"` for most. */
function durationOf(seconds: number, model: string): string | number {
  if (/veo|luma|\bray\b|kandinsky/.test(model)) return `${seconds}s`
  return /sora|ltx|vidu|grok/.test(model) ? seconds : String(seconds)
}

/** The package queries the result, not the status: it is a certain 400 until the task ends, and an error if it failed. */
function read(payload: unknown, status: number): VideoStatus | undefined {
  const reason = messageIn(payload)
  if (status === 202 || (status === 400 && /still in progress|in queue/i.test(reason))) return { isPending: true }
  if (status >= 400) return failureOf(payload, status, reason)
  if (!isRecord(payload) || status >= 300) return undefined
  const videos = [payload.video, ...(Array.isArray(payload.videos) ? payload.videos : [])]
  const outputs = videos.flatMap((video) => {
    if (!isRecord(video) || typeof video.url !== 'string') return []
    return [{ url: video.url, ...(typeof video.content_type === 'string' ? { content_type: video.content_type } : {}) }]
  })
  // A response with neither is unknown; a later one may have them.
  if (!('video' in payload) && !('videos' in payload)) return undefined
  const flagged = Array.isArray(payload.has_nsfw_concepts) && payload.has_nsfw_concepts.includes(true)
  if (outputs.length === 0 && flagged) return filtered()
  return { outputs }
}
