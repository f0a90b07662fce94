/** Veo, as Google's two doors to it share it: sizes, refusals, and operations that are done with or without a video. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { FailCode } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { tierOf, unsupportedValue } from '../orders/order-fields.ts'
import type { Said, VideoModelOptions, Wanted } from './vendor.ts'
import { AGAINST_POLICY } from './words.ts'

export function writeVeo(wanted: Wanted, order: VideoOrder, model: string): Wanted {
  const isSilent = model.startsWith('veo-2')
  if (isSilent && order.audio_enable) throw unsupportedValue('audio_enable', `${model} makes no sound.`)
  if (order.negative_prompt) wanted.extras.negativePrompt = order.negative_prompt
  if (order.last_image !== undefined && order.images?.length) {
    throw unsupportedValue('images', 'Veo takes a last frame or reference images, not both.')
  }
  // The package knows pixels of landscape only, and hands on what it does not know.
  return {
    ...wanted,
    generateAudio: isSilent ? undefined : wanted.generateAudio,
    resolution: tierOf(order.size) as VideoModelOptions['resolution'],
  }
}

/** `google.rpc.Code`, for what an operation failed with. */
const FAIL_CODES: Record<number, FailCode> = {
  1: 'canceled',
  3: 'invalid_input',
  4: 'upstream_error',
  8: 'upstream_rate_limited',
  13: 'upstream_error',
  14: 'upstream_error',
}

/** `filesIn` finds what was made in the `response` of an operation that is done. */
export function readVeo(payload: unknown, filesIn: (response: JsonRecord) => NonNullable<Said['outputs']>) {
  if (!isRecord(payload)) return undefined
  if (payload.done !== true) return undefined
  if (isRecord(payload.error)) return { failure: readFault(payload.error) }
  const response = isRecord(payload.response) ? payload.response : {}
  const outputs = filesIn(response)
  const filtered = outputs.length === 0 ? filteredIn(response) : undefined
  return filtered === undefined
    ? { outputs }
    : { failure: { fail_code: 'content_policy_violation' as const, reason: filtered } }
}

function readFault(error: JsonRecord): NonNullable<Said['failure']> {
  const reason = typeof error.message === 'string' ? error.message : ''
  if (AGAINST_POLICY.test(reason)) return { fail_code: 'content_policy_violation', reason }
  const fail_code = FAIL_CODES[Number(error.code)]
  return fail_code === undefined ? { reason } : { fail_code, reason }
}

/** Why a filter took everything away; undefined where it did not. */
function filteredIn(response: JsonRecord): string | undefined {
  const inner = isRecord(response.generateVideoResponse) ? response.generateVideoResponse : response
  const reasons = Array.isArray(inner.raiMediaFilteredReasons) ? inner.raiMediaFilteredReasons.join(' ') : ''
  if (reasons === '' && !(Number(inner.raiMediaFilteredCount) > 0)) return undefined
  return reasons || 'What was made was taken away by a filter.'
}

/** A refusal of the prompt comes as an invalid argument. */
export const judgeVeo = (payload: unknown, status: number) => {
  const error = isRecord(payload) && isRecord(payload.error) ? payload.error : {}
  return status === 400 && AGAINST_POLICY.test(String(error.message)) ? ('policy' as const) : undefined
}
