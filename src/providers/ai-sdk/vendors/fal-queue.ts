/** The errors of fal's queue and of the models behind it, for videos and for 3D models. */
import { memberOf, recordsIn } from '../../../kit/json.ts'
import { CANCELED_REASON } from '../../orders/order-messages.ts'
import type { VideoStatus } from '../video/video-family.ts'
import { filtered, messageIn } from './response-values.ts'

export const QUEUE_URL = 'https://queue.fal.run'

const detailsOf = (payload: unknown) => recordsIn(memberOf(payload, 'detail'))
const typesIn = (payload: unknown) => detailsOf(payload).map(({ type }) => String(type))

export function classifyFalError(payload: unknown, status: number) {
  if (status === 403 && /exhausted balance|user is locked/i.test(messageIn(payload))) return 402
  return status === 422 && typesIn(payload).includes('content_policy_violation') ? ('policy' as const) : undefined
}

/** The status with which an app of fal reports that its request was canceled. */
const CANCELED_STATUS = 499
/** The queue reports a canceled request by a message of its own, with various statuses. */
const CANCELED_WORDING = /\bcancell?(ed|ation)\b/i

/** Errors with a list of typed details come from the model and are final; others come from the queue and are transient. */
export function failureOf(payload: unknown, status: number, reason: string): VideoStatus | undefined {
  const types = typesIn(payload)
  if (status === CANCELED_STATUS || (types.length === 0 && status < 500 && CANCELED_WORDING.test(reason))) {
    return { failure: { fail_code: 'canceled', reason: CANCELED_REASON } }
  }
  if (types.includes('content_policy_violation')) return filtered(reason)
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
