/** Black Forest Labs: FLUX. */
import { asRecord, isRecord, memberOf } from '../../../kit/json.ts'
import { tierOf } from '../../orders/order-fields.ts'
import type { ImageFamily } from '../images/image-family.ts'
import { vendor } from '../vendor-row.ts'
import type { VideoFamily, VideoModelOptions, VideoStatus } from '../video/video-family.ts'
import { classifyByWording, filtered, imagesIn, matchesAny, messageIn } from './response-values.ts'

const BASE_URL = 'https://api.bfl.ai/v1'
/** For as long as an order of images may take. */
const POLL_MILLISECONDS = 280_000

const VIDEO: VideoFamily = {
  acceptedResponse: { id: 'id', polling_url: `${BASE_URL}/get_result?id=id` },
  media: 'url or bytes',
  drops: ['negative_prompt'],
  adaptOptions(options, order) {
    const named = TIERS[tierOf(order.size) ?? '']
    return { ...options, resolution: (named ?? options.resolution) as VideoModelOptions['resolution'] }
  },
  classifyError,
  read: readVideo,
}

function readVideo(payload: unknown, status: number): VideoStatus | undefined {
  if (!isRecord(payload) || status >= 300) return undefined
  const state = payload.status ?? payload.state
  const result = asRecord(payload.result)
  switch (state) {
    case 'Ready':
      return typeof result.sample === 'string' && result.sample !== '' ? undefined : { outputs: [] }
    case 'Request Moderated':
    case 'Content Moderated':
      return filtered(reasonOf(state, payload.details))
    case 'Error':
    case 'Failed':
      return { failure: { reason: reasonOf(state, payload.details) } }
    case 'Task not found':
      return undefined
    default:
      return typeof state === 'string' ? pending(payload.progress) : undefined
  }
}

function classifyError(payload: unknown, status: number) {
  if (status === 200) return isRecord(payload) && payload.status === 'Task not found' ? 404 : undefined
  return classifyByWording(payload, status)
}

/** FLUX models that are given a ratio. */
const BY_RATIO = ['*ultra*', '*kontext*']
const FILL = ['*fill*']

/** FLUX, as Black Forest Labs serve it, and Fireworks for them. */
export const readFlux: NonNullable<ImageFamily['read']> = (payload, status) => {
  if (!isRecord(payload)) return undefined
  const sample = memberOf(payload.result, 'sample')
  if ((payload.status ?? payload.state) === 'Ready') {
    return { images: typeof sample === 'string' ? imagesIn([sample]) : [] }
  }
  const failure = readVideo(payload, status)?.failure
  return failure && { failure }
}

export const BLACK_FOREST_LABS = vendor({
  baseUrl: BASE_URL,
  namespace: 'blackForestLabs',
  // A task is queried in the region that the response names.
  hosts: /(^|\.)bfl\.ai$/,
  async load({ key, fetch, baseUrl }) {
    const { createBlackForestLabs } = await import('@ai-sdk/black-forest-labs')
    return createBlackForestLabs({ apiKey: key, baseURL: baseUrl, fetch, pollTimeoutMillis: POLL_MILLISECONDS })
  },
  images: {
    factory: (sdk) => sdk.image,
    shape: (model) => (matchesAny(model, BY_RATIO) ? { by: 'ratio' } : { by: 'size' }),
    edits: (model) => (matchesAny(model, FILL) ? { max: 1, mask: 'white' } : { max: 10 }),
    media: 'url or bytes',
    options: { output_format: 'outputFormat' },
    hasSeed: true,
    pendingResponse: () => ({ status: 'Pending' }),
    classifyError,
    read: readFlux,
  },
  video: { factory: (sdk) => sdk.video, ...VIDEO },
})

/** It generates two sizes, by these names. */
const TIERS: Record<string, string> = { '720p': 'hd', '1080p': 'fhd' }

/** The details are text, or names of reasons in a list. */
function reasonOf(state: string, details: unknown): string {
  const reasons = isRecord(details)
    ? Object.values(details)
        .flat()
        .filter((one) => typeof one === 'string')
    : []
  const message = messageIn(details) || reasons.join(', ')
  return message ? `${state}: ${message}` : `${state}.`
}

/** `progress` is from 0 to 1, or absent. */
function pending(progress: unknown): VideoStatus {
  if (typeof progress !== 'number') return { isPending: true }
  return { isPending: true, progress: progress * 100, status: progress > 0 ? 'IN_PROGRESS' : 'QUEUED' }
}
