/** xAI: Grok for chat, Grok Imagine for images and videos, speech and transcription. */
import { isRecord } from '../../../kit/json.ts'
import { tierOf } from '../../orders/order-fields.ts'
import { POLICY_WORDING } from '../../orders/order-messages.ts'
import type { ImageFamily } from '../images/image-family.ts'
import { vendor } from '../vendor-row.ts'
import type { VideoFamily, VideoStatus } from '../video/video-family.ts'
import { filtered, imagesIn, messageIn } from './response-values.ts'

const VIDEO: VideoFamily = {
  acceptedResponse: { request_id: 'id' },
  media: 'url',
  drops: ['negative_prompt'],
  adaptOptions(options, order) {
    // The package supports pixels of landscape only, but accepts the tier as an option of its own.
    const tier = tierOf(order.size)
    const isKnown = tier !== undefined && ['480p', '720p', '1080p'].includes(tier)
    if (isKnown) options.extras.resolution = tier
    const [video, ...others] = [...(options.inputReferences ?? [])].reverse()
    const isVideo = order.video !== undefined && video?.type === 'url'
    if (isVideo) options.extras.videoUrl = video.url
    return {
      ...options,
      resolution: isKnown ? undefined : options.resolution,
      inputReferences: isVideo ? (others.length > 0 ? others.reverse() : undefined) : options.inputReferences,
    }
  },
  // An edited video keeps its own frame and length.
  mayIgnore: ({ feature }, { video }) =>
    video !== undefined && ['duration', 'aspectRatio', 'resolution'].includes(feature),
  classifyError(payload, status) {
    if (status !== 400 && status !== 403 && status !== 429) return undefined
    const message = messageIn(payload)
    if (/spending limit|used all available credits|purchase (more )?credits/i.test(message)) return 402
    return status !== 429 && POLICY_WORDING.test(message) ? 'policy' : undefined
  },
  read(payload, status): VideoStatus | undefined {
    if (status === 202) return pending(payload)
    if (!isRecord(payload) || status >= 300) return undefined
    const video = isRecord(payload.video) ? payload.video : undefined
    if (payload.status === 'failed') return { failure: failureOf(payload.error) }
    if (payload.status === 'expired') return { failure: { reason: 'The request expired at the upstream.' } }
    if (payload.status === 'done' || (payload.status === undefined && video)) {
      if (video?.respect_moderation === false) return filtered()
      const file = isRecord(video?.file_output) ? video.file_output.public_url : undefined
      return [video?.url, file].some((url) => typeof url === 'string' && url !== '') ? undefined : { outputs: [] }
    }
    return typeof payload.status === 'string' ? pending(payload) : undefined
  },
}

const IMAGES: ImageFamily = {
  shape: () => ({
    by: 'ratio',
    among: ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3', '2:1', '1:2', '20:9', '9:20'],
  }),
  edits: () => ({ max: 3 }),
  media: 'url or bytes',
  options: { quality: 'quality', user: 'user' },
  read(payload) {
    const list = isRecord(payload) && Array.isArray(payload.data) ? payload.data.filter(isRecord) : undefined
    if (!list) return undefined
    const allowed = list.filter((item) => item.respect_moderation !== false)
    if (allowed.length > 0 || list.length === 0) return { images: imagesIn(allowed) }
    return filtered('The images were removed by moderation.')
  },
}

export const XAI = vendor({
  baseUrl: 'https://api.x.ai/v1',
  load: async ({ key, fetch, baseUrl }) =>
    (await import('@ai-sdk/xai')).createXai({ apiKey: key, baseURL: baseUrl, fetch }),
  chat: {
    factory: (sdk) => sdk.responses,
    options: {
      parallel_tool_calls: 'parallelToolCalls',
      prompt_cache_key: 'promptCacheKey',
      safety_identifier: 'safetyIdentifier',
      store: 'store',
      user: 'user',
    },
    search: () => ({ tool: { type: 'provider', id: 'xai.web_search', name: 'web_search', args: {} } }),
    modelsPath: '/models',
  },
  images: { factory: (sdk) => sdk.image, ...IMAGES },
  speech: { factory: (sdk) => sdk.speech, formats: { mp3: 'mp3', wav: 'wav', pcm: 'pcm' }, has_speed: true },
  transcription: { factory: (sdk) => sdk.transcription, options: { language: 'language' }, segments: 'words' },
  video: { factory: (sdk) => sdk.video, ...VIDEO },
})

function pending(payload: unknown): VideoStatus {
  const progress = isRecord(payload) && typeof payload.progress === 'number' ? payload.progress : undefined
  return {
    isPending: true,
    ...(progress === undefined ? {} : { progress, ...(progress > 0 ? { status: 'IN_PROGRESS' as const } : {}) }),
  }
}

function failureOf(error: unknown): NonNullable<VideoStatus['failure']> {
  const reason = messageIn(error)
  const code = isRecord(error) ? String(error.code ?? '') : ''
  if (POLICY_WORDING.test(`${code} ${reason}`)) return filtered(reason).failure
  return /invalid_argument/i.test(code) ? { fail_code: 'invalid_input', reason } : { reason: reason || code }
}
