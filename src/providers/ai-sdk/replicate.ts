/** Replicate: predictions by the models of many makers, each with inputs of its own. */
import { isRecord } from '../../kit/json.ts'
import { tierOf } from '../orders/order-fields.ts'
import type { AiSdkVendor, Said } from './vendor.ts'
import { AGAINST_POLICY } from './words.ts'

const HOME = 'https://api.replicate.com/v1'

export const REPLICATE: AiSdkVendor = {
  kind: 'replicate',
  home: HOME,
  key_env: ['REPLICATE_API_TOKEN'],
  namespace: 'replicate',
  async load({ key, fetch }) {
    const { createReplicate } = await import('@ai-sdk/replicate')
    return createReplicate({ apiToken: key, baseURL: HOME, fetch }).video
  },
  accepted: { id: 'id', status: 'starting', urls: { get: `${HOME}/predictions/id` } },
  media: 'address',
  // Their names differ from model to model: `fields.rename` or `metadata.replicate` says them.
  drops: ['last_image', 'images', 'n'],
  write(wanted, order) {
    const { extras } = wanted
    const isExact = order.size?.includes('x') === true
    const tier = tierOf(order.size)
    if (!isExact && tier !== undefined) extras.resolution = tier
    if (order.audio_enable !== undefined) extras.generate_audio = order.audio_enable
    if (order.negative_prompt) extras.negative_prompt = order.negative_prompt
    if (order.seed === 0) extras.seed = 0 // the package takes it for none
    const [video] = wanted.inputReferences ?? []
    if (video?.type === 'url') extras.video = video.url
    return { ...wanted, inputReferences: undefined, resolution: isExact ? wanted.resolution : undefined }
  },
  read(payload) {
    if (!isRecord(payload)) return undefined
    switch (payload.status) {
      case 'starting':
        return { status: 'QUEUED', isPending: true }
      case 'processing':
        return { status: 'IN_PROGRESS', isPending: true, ...percentIn(payload.logs) }
      case 'succeeded':
        return { outputs: addressesIn(payload.output).map((url) => ({ url })) }
      case 'failed':
        return { failure: readFault(payload.error) }
      case 'canceled':
      case 'aborted':
        return { failure: { fail_code: 'canceled', reason: 'The prediction was canceled at the upstream.' } }
      default:
        // A word that is not known yet: nothing is known to have ended.
        return typeof payload.status === 'string' ? { isPending: true } : undefined
    }
  },
  cancel: ({ getUrl }) => (typeof getUrl === 'string' ? { method: 'POST', url: `${getUrl}/cancel` } : undefined),
}

/** One file, a list, or an object of files. */
function addressesIn(output: unknown): string[] {
  if (typeof output === 'string') return /^(https?|data):/.test(output) ? [output] : []
  if (Array.isArray(output)) return output.flatMap(addressesIn)
  return isRecord(output) ? Object.values(output).flatMap(addressesIn) : []
}

/** Models write progress bars into their logs: ` 45%|####`. */
function percentIn(logs: unknown): Pick<Said, 'progress'> {
  const found = typeof logs === 'string' ? logs.match(/\d{1,3}(?=%\|)/g)?.at(-1) : undefined
  return found === undefined ? {} : { progress: Number(found) }
}

/** Codes are within the text; E005 is the one for flagged inputs and outputs. */
function readFault(error: unknown): NonNullable<Said['failure']> {
  const reason = typeof error === 'string' ? error : ''
  const isPolicy = /\(E005\)/.test(reason) || AGAINST_POLICY.test(reason)
  return isPolicy ? { fail_code: 'content_policy_violation', reason } : { reason }
}
