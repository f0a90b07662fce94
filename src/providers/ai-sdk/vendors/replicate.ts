/** Replicate: models of many makers, each with its own inputs. */
import { isRecord, type JsonRecord, memberOf, recordsIn } from '../../../kit/json.ts'
import { tierOf } from '../../orders/order-fields.ts'
import { type ListedOrder, secondsOf } from '../../orders/order-list.ts'
import { POLICY_WORDING } from '../../orders/order-messages.ts'
import type { ImageFamily } from '../images/image-family.ts'
import { vendor } from '../vendor-row.ts'
import type { VideoFamily, VideoStatus } from '../video/video-family.ts'
import { IN_PROGRESS, imagesIn, matchesAny, POLL_ATTEMPTS, QUEUED, statusIn } from './response-values.ts'

const BASE_URL = 'https://api.replicate.com/v1'

const VIDEO: VideoFamily = {
  acceptedResponse: { id: 'id', status: 'starting', urls: { get: `${BASE_URL}/predictions/id` } },
  media: 'url',
  // Their names differ between models: `fields.rename` or `metadata.replicate` names them.
  drops: ['last_image', 'images', 'n'],
  adaptOptions(options, order) {
    const { extras } = options
    const isExact = order.size?.includes('x') === true
    const tier = tierOf(order.size)
    if (!isExact && tier !== undefined) extras.resolution = tier
    if (order.audio_enable !== undefined) extras.generate_audio = order.audio_enable
    if (order.negative_prompt) extras.negative_prompt = order.negative_prompt
    if (order.seed === 0) extras.seed = 0 // the package treats it as absent
    const [video] = options.inputReferences ?? []
    if (video?.type === 'url') extras.video = video.url
    return { ...options, inputReferences: undefined, resolution: isExact ? options.resolution : undefined }
  },
  read: readVideo,
  cancel: ({ getUrl }) => (typeof getUrl === 'string' ? { method: 'POST', url: `${getUrl}/cancel` } : undefined),
  // "Get a paginated list of all predictions", newest first, with their inputs (replicate.com/docs/reference/http,
  // predictions.list). The inputs are removed after an hour ("Data retention").
  orderList: {
    // How soon a new prediction is in the list is not documented.
    absent: 'unknown',
    url: ({ since, base = BASE_URL }) =>
      `${base}/predictions?created_after=${encodeURIComponent(new Date(since * 1000).toISOString())}`,
    read(payload) {
      if (!isRecord(payload) || !Array.isArray(payload.results)) return undefined
      const next = typeof payload.next === 'string' ? payload.next : undefined
      return { orders: recordsIn(payload.results).flatMap(listed), next }
    },
    fieldsOf: ({ input }, model) => ({ always: { input }, where_shown: { model: model.split(':')[0] } }),
  },
}

function listed({ id, input, model, urls, created_at }: JsonRecord): ListedOrder[] {
  const getUrl = memberOf(urls, 'get')
  if (typeof id !== 'string' || typeof getUrl !== 'string') return []
  return [{ id, operation: { getUrl }, created_at: secondsOf(created_at), fields: { input, model } }]
}

function readVideo(payload: unknown): VideoStatus | undefined {
  if (!isRecord(payload)) return undefined
  const { status } = payload
  if (status === 'processing') return { ...IN_PROGRESS, ...percentIn(payload.logs) }
  if (status === 'succeeded') return { outputs: urlsIn(payload.output).map((url) => ({ url })) }
  if (status === 'failed') return { failure: failureOf(payload.error) }
  return statusIn({ starting: QUEUED, canceled: ENDED_EARLY, aborted: ENDED_EARLY }, status)
}

const ENDED_EARLY: VideoStatus = {
  failure: { fail_code: 'canceled', reason: 'The prediction was canceled at the upstream.' },
}

/** Models that are given width and height; all others a ratio. */
const BY_SIZE = ['*sdxl*', '*stable-diffusion*', '*sana*', '*playground*']
const FLUX_2 = ['black-forest-labs/flux-2-*']

const IMAGES: ImageFamily = {
  shape: (model) =>
    matchesAny(model, BY_SIZE) ? { by: 'size', options: { width: 'width', height: 'height' } } : { by: 'ratio' },
  edits: (model) => (matchesAny(model, FLUX_2) ? { max: 8 } : { max: 1, mask: 'white' }),
  media: 'url or bytes',
  options: { negative_prompt: 'negative_prompt', output_format: 'output_format', quality: 'quality' },
  hasSeed: true,
  maxImages: () => 1,
  pendingResponse: (receipt) => ({ ...receipt, status: 'processing' }),
  moreOptions: ({ output_format }) => ({
    maxPollAttempts: POLL_ATTEMPTS,
    ...(output_format === 'jpeg' ? { output_format: 'jpg' } : {}),
  }),
  read(payload) {
    const { outputs, failure } = readVideo(payload) ?? {}
    if (failure) return { failure }
    return outputs && { images: imagesIn(outputs.map((one) => ('url' in one ? one.url : undefined))) }
  },
}

export const REPLICATE = vendor({
  baseUrl: BASE_URL,
  load: async ({ key, fetch, baseUrl }) =>
    (await import('@ai-sdk/replicate')).createReplicate({ apiToken: key, baseURL: baseUrl, fetch }),
  images: { factory: (sdk) => sdk.image, ...IMAGES },
  video: { factory: (sdk) => sdk.video, ...VIDEO },
})

/** One file, a list, or an object of files. */
function urlsIn(output: unknown): string[] {
  if (typeof output === 'string') return /^(https?|data):/.test(output) ? [output] : []
  if (Array.isArray(output)) return output.flatMap(urlsIn)
  return isRecord(output) ? Object.values(output).flatMap(urlsIn) : []
}

/** Models write progress bars into their logs: ` 45%|####`. */
function percentIn(logs: unknown): Pick<VideoStatus, 'progress'> {
  const found = typeof logs === 'string' ? logs.match(/\d{1,3}(?=%\|)/g)?.at(-1) : undefined
  return found === undefined ? {} : { progress: Number(found) }
}

/** Codes are within the text; E005 is the one of flagged inputs and outputs. */
function failureOf(error: unknown): NonNullable<VideoStatus['failure']> {
  const reason = typeof error === 'string' ? error : ''
  const isPolicy = /\(E005\)/.test(reason) || POLICY_WORDING.test(reason)
  return isPolicy ? { fail_code: 'content_policy_violation', reason } : { reason }
}
