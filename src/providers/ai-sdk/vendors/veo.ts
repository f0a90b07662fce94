/** Veo, as Google's two APIs share it: sizes, refusals, and operations that end with or without a video. */
import { asRecord, isRecord, type JsonRecord, memberOf } from '../../../kit/json.ts'
import type { FailCode } from '../../../spec/task.ts'
import type { VideoOrder } from '../../../spec/video-request.ts'
import { tierOf, unsupportedValue } from '../../orders/order-fields.ts'
import { POLICY_WORDING } from '../../orders/order-messages.ts'
import type { OrderOptions, VideoModelOptions, VideoStatus } from '../video/video-family.ts'
import { filtered } from './response-values.ts'

export function veoOptions(options: OrderOptions, order: VideoOrder, model: string): OrderOptions {
  const isSilent = model.startsWith('veo-2')
  if (isSilent && order.audio_enable) throw unsupportedValue('audio_enable', `${model} generates no sound.`)
  if (order.negative_prompt) options.extras.negativePrompt = order.negative_prompt
  if (order.last_image !== undefined && order.images?.length) {
    throw unsupportedValue('images', 'Veo accepts a last frame or reference images, not both.')
  }
  // The package converts pixels of landscape only, and passes on anything else.
  return {
    ...options,
    generateAudio: isSilent ? undefined : options.generateAudio,
    resolution: tierOf(order.size) as VideoModelOptions['resolution'],
  }
}

/** By the `google.rpc.Code` of a failed operation. */
const FAIL_CODES: Record<number, FailCode> = {
  1: 'canceled',
  3: 'invalid_input',
  4: 'upstream_error',
  8: 'upstream_rate_limited',
  13: 'upstream_error',
  14: 'upstream_error',
}

/** `filesIn` finds the videos in the `response` of an operation that is done. */
export function readVeo(payload: unknown, filesIn: (response: JsonRecord) => NonNullable<VideoStatus['outputs']>) {
  if (!isRecord(payload)) return undefined
  if (payload.done !== true) return undefined
  if (isRecord(payload.error)) return { failure: failureOf(payload.error) }
  const response = asRecord(payload.response)
  const outputs = filesIn(response)
  const reason = outputs.length === 0 ? filterReasonIn(response) : undefined
  return reason === undefined ? { outputs } : filtered(reason)
}

function failureOf(error: JsonRecord): NonNullable<VideoStatus['failure']> {
  const reason = typeof error.message === 'string' ? error.message : ''
  if (POLICY_WORDING.test(reason)) return filtered(reason).failure
  const fail_code = FAIL_CODES[Number(error.code)]
  return fail_code === undefined ? { reason } : { fail_code, reason }
}

/** Why a filter removed all videos; undefined where it did not. */
function filterReasonIn(response: JsonRecord): string | undefined {
  const inner = isRecord(response.generateVideoResponse) ? response.generateVideoResponse : response
  const reasons = Array.isArray(inner.raiMediaFilteredReasons) ? inner.raiMediaFilteredReasons.join(' ') : ''
  if (reasons === '' && !(Number(inner.raiMediaFilteredCount) > 0)) return undefined
  return reasons || 'The result was removed by a filter.'
}

/** A refused prompt is an invalid argument. */
export const classifyVeoError = (payload: unknown, status: number) => {
  const error = asRecord(memberOf(payload, 'error'))
  return status === 400 && POLICY_WORDING.test(String(error.message)) ? ('policy' as const) : undefined
}
