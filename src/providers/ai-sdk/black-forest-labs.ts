/** Black Forest Labs: FLUX. */
import { isRecord } from '../../kit/json.ts'
import { tierOf } from '../orders/order-fields.ts'
import type { AiSdkVendor, Said, VideoModelOptions } from './vendor.ts'
import { AGAINST_POLICY, wordsOf } from './words.ts'

const HOME = 'https://api.bfl.ai/v1'

export const BLACK_FOREST_LABS: AiSdkVendor = {
  kind: 'black-forest-labs',
  home: HOME,
  key_env: ['BFL_API_KEY'],
  namespace: 'blackForestLabs',
  async load({ key, fetch }) {
    const { createBlackForestLabs } = await import('@ai-sdk/black-forest-labs')
    return createBlackForestLabs({ apiKey: key, baseURL: HOME, fetch }).video
  },
  // It answers with the region in which a task is to be asked for.
  hosts: /(^|\.)bfl\.ai$/,
  accepted: { id: 'id', polling_url: `${HOME}/get_result?id=id` },
  media: 'address or bytes',
  drops: ['negative_prompt'],
  write(wanted, order) {
    const named = TIERS[tierOf(order.size) ?? '']
    return { ...wanted, resolution: (named ?? wanted.resolution) as VideoModelOptions['resolution'] }
  },
  judge(payload, status) {
    if (status === 200) return isRecord(payload) && payload.status === 'Task not found' ? 404 : undefined
    return (status === 400 || status === 422) && AGAINST_POLICY.test(wordsOf(payload)) ? 'policy' : undefined
  },
  read(payload, status): Said | undefined {
    if (!isRecord(payload) || status >= 300) return undefined
    const word = payload.status ?? payload.state
    const result = isRecord(payload.result) ? payload.result : {}
    switch (word) {
      case 'Ready':
        return typeof result.sample === 'string' && result.sample !== '' ? undefined : { outputs: [] }
      case 'Request Moderated':
      case 'Content Moderated':
        return { failure: { fail_code: 'content_policy_violation', reason: reasonOf(word, payload.details) } }
      case 'Error':
      case 'Failed':
        return { failure: { reason: reasonOf(word, payload.details) } }
      case 'Task not found':
        return undefined
      default:
        return typeof word === 'string' ? pending(payload.progress) : undefined
    }
  },
}

/** It makes two sizes, by these names. */
const TIERS: Record<string, string> = { '720p': 'hd', '1080p': 'fhd' }

/** The details are reasons, or names of reasons in a list. */
function reasonOf(word: string, details: unknown): string {
  const reasons = isRecord(details)
    ? Object.values(details)
        .flat()
        .filter((one) => typeof one === 'string')
    : []
  const said = wordsOf(details) || reasons.join(', ')
  return said ? `${word}: ${said}` : `${word}.`
}

/** From 0 to 1, or nothing. */
function pending(progress: unknown): Said {
  if (typeof progress !== 'number') return { isPending: true }
  return { isPending: true, progress: progress * 100, status: progress > 0 ? 'IN_PROGRESS' : 'QUEUED' }
}
