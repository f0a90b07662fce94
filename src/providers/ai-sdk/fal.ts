/** fal: a queue before the models of many makers, each with fields of its own. */
import { isRecord } from '../../kit/json.ts'
import { tierOf } from '../orders/order-fields.ts'
import type { AiSdkVendor, Said } from './vendor.ts'
import { wordsOf } from './words.ts'

const HOME = 'https://queue.fal.run'

export const FAL: AiSdkVendor = {
  kind: 'fal',
  home: HOME,
  key_env: ['FAL_KEY', 'FAL_API_KEY'],
  namespace: 'fal',
  async load({ key, fetch }) {
    const { createFal } = await import('@ai-sdk/fal')
    return createFal({ apiKey: key, fetch }).video
  },
  /** The package puts every model below `fal-ai/`, where only some are. */
  send: (request, model) =>
    request.url === `${HOME}/fal-ai/${model.replace(/^fal(-ai)?\//, '')}` && model.includes('/')
      ? { ...request, url: `${HOME}/${model}` }
      : request,
  accepted: { request_id: 'id', response_url: `${HOME}/fal-ai/model/requests/id` },
  media: 'address',
  // Their names differ from model to model: `fields.rename` or `metadata.fal` says them.
  drops: ['last_image', 'images', 'n'],
  write(wanted, order, model) {
    const { extras } = wanted
    const tier = order.size?.includes('x') ? undefined : tierOf(order.size)
    if (tier !== undefined) extras.resolution = tier
    else if (order.size !== undefined) extras.resolution = order.size
    if (order.duration !== undefined) extras.duration = durationOf(order.duration, model)
    if (order.audio_enable !== undefined) extras.generate_audio = order.audio_enable
    if (order.negative_prompt) extras.negativePrompt = order.negative_prompt
    if (order.seed === 0) extras.seed = 0 // the package takes it for none
    const [video] = wanted.inputReferences ?? []
    if (video?.type === 'url') extras.video_url = video.url
    return { ...wanted, inputReferences: undefined }
  },
  judge(payload, status) {
    if (status === 403 && /exhausted balance|user is locked/i.test(wordsOf(payload))) return 402
    return status === 422 && typesIn(payload).includes('content_policy_violation') ? 'policy' : undefined
  },
  read,
  callsAnyFaultAnError: true,
  cancel: ({ responseUrl }) =>
    typeof responseUrl === 'string' ? { method: 'PUT', url: `${responseUrl}/cancel` } : undefined,
}

/** `8s` for some, a number for others, `"8"` for most. */
function durationOf(seconds: number, model: string): string | number {
  if (/veo|luma|\bray\b|kandinsky/.test(model)) return `${seconds}s`
  return /sora|ltx|vidu|grok/.test(model) ? seconds : String(seconds)
}

const detailsOf = (payload: unknown) =>
  isRecord(payload) && Array.isArray(payload.detail) ? payload.detail.filter(isRecord) : []
const typesIn = (payload: unknown) => detailsOf(payload).map(({ type }) => String(type))

/** The result is asked for at once: it is refused with a certain 400 until it is there, and is an error if it failed. */
function read(payload: unknown, status: number): Said | undefined {
  const reason = wordsOf(payload)
  if (status === 202 || (status === 400 && /still in progress|in queue/i.test(reason))) return { isPending: true }
  if (status >= 400) return readFault(payload, status, reason)
  if (!isRecord(payload) || status >= 300) return undefined
  const videos = [payload.video, ...(Array.isArray(payload.videos) ? payload.videos : [])]
  const outputs = videos.flatMap((video) => {
    if (!isRecord(video) || typeof video.url !== 'string') return []
    return [{ url: video.url, ...(typeof video.content_type === 'string' ? { content_type: video.content_type } : {}) }]
  })
  // An answer with neither is none that is known: asked again, it may be.
  if (!('video' in payload) && !('videos' in payload)) return undefined
  const flagged = Array.isArray(payload.has_nsfw_concepts) && payload.has_nsfw_concepts.includes(true)
  if (outputs.length === 0 && flagged) {
    return { failure: { fail_code: 'content_policy_violation', reason: 'What was made was taken away by a filter.' } }
  }
  return { outputs }
}

/** Errors with a list of typed details are the model's own, and final; others are the queue's, and pass. */
export function readFault(payload: unknown, status: number, reason: string): Said | undefined {
  const types = typesIn(payload)
  if (types.includes('content_policy_violation')) {
    return { failure: { fail_code: 'content_policy_violation', reason } }
  }
  if (types.some((type) => /^(file|image|video|audio)_|download/.test(type))) {
    return { failure: { fail_code: 'input_media_invalid', reason } }
  }
  if (status === 422) return { failure: { fail_code: 'invalid_input', reason } }
  if (types.length === 0 || [401, 403, 404, 408, 429].includes(status)) return undefined
  if (status < 500) return { failure: { reason } }
  return {
    failure: { fail_code: types.includes('generation_timeout') ? 'generation_failed' : 'upstream_error', reason },
  }
}
