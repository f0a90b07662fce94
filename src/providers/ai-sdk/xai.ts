/** xAI: Grok Imagine. */
import { isRecord } from '../../kit/json.ts'
import { tierOf } from '../orders/order-fields.ts'
import type { AiSdkVendor, Said } from './vendor.ts'
import { AGAINST_POLICY, wordsOf } from './words.ts'

const HOME = 'https://api.x.ai/v1'

export const XAI: AiSdkVendor = {
  kind: 'xai',
  home: HOME,
  key_env: ['XAI_API_KEY'],
  namespace: 'xai',
  async load({ key, fetch }) {
    const { createXai } = await import('@ai-sdk/xai')
    return createXai({ apiKey: key, baseURL: HOME, fetch }).video
  },
  accepted: { request_id: 'id' },
  media: 'address',
  drops: ['negative_prompt'],
  write(wanted, order) {
    // The package knows pixels of landscape only, but takes the tier as a field of its own.
    const tier = tierOf(order.size)
    const isKnown = tier !== undefined && ['480p', '720p', '1080p'].includes(tier)
    if (isKnown) wanted.extras.resolution = tier
    const [video, ...others] = [...(wanted.inputReferences ?? [])].reverse()
    const isVideo = order.video !== undefined && video?.type === 'url'
    if (isVideo) wanted.extras.videoUrl = video.url
    return {
      ...wanted,
      resolution: isKnown ? undefined : wanted.resolution,
      inputReferences: isVideo ? (others.length > 0 ? others.reverse() : undefined) : wanted.inputReferences,
    }
  },
  // An edited video keeps its own frame and length.
  tolerates: ({ feature }, { video }) =>
    video !== undefined && ['duration', 'aspectRatio', 'resolution'].includes(feature),
  judge(payload, status) {
    if (status !== 400 && status !== 403 && status !== 429) return undefined
    const words = wordsOf(payload)
    if (/spending limit|used all available credits|purchase (more )?credits/i.test(words)) return 402
    return status !== 429 && AGAINST_POLICY.test(words) ? 'policy' : undefined
  },
  read(payload, status): Said | undefined {
    if (status === 202) return pending(payload)
    if (!isRecord(payload) || status >= 300) return undefined
    const video = isRecord(payload.video) ? payload.video : undefined
    if (payload.status === 'failed') return { failure: readFault(payload.error) }
    if (payload.status === 'expired') return { failure: { reason: 'The request expired at the upstream.' } }
    if (payload.status === 'done' || (payload.status === undefined && video)) {
      if (video?.respect_moderation === false) {
        return {
          failure: { fail_code: 'content_policy_violation', reason: 'What was made was taken away by a filter.' },
        }
      }
      const file = isRecord(video?.file_output) ? video.file_output.public_url : undefined
      return [video?.url, file].some((url) => typeof url === 'string' && url !== '') ? undefined : { outputs: [] }
    }
    return typeof payload.status === 'string' ? pending(payload) : undefined
  },
}

function pending(payload: unknown): Said {
  const progress = isRecord(payload) && typeof payload.progress === 'number' ? payload.progress : undefined
  return {
    isPending: true,
    ...(progress === undefined ? {} : { progress, ...(progress > 0 ? { status: 'IN_PROGRESS' as const } : {}) }),
  }
}

function readFault(error: unknown): NonNullable<Said['failure']> {
  const reason = wordsOf(error)
  const code = isRecord(error) ? String(error.code ?? '') : ''
  if (AGAINST_POLICY.test(`${code} ${reason}`)) return { fail_code: 'content_policy_violation', reason }
  return /invalid_argument/i.test(code) ? { fail_code: 'invalid_input', reason } : { reason: reason || code }
}
