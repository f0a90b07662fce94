/** Shared by the rows of several vendors: messages of errors, refused content, images in responses. */
import { matchesGlob } from '../../../kit/glob.ts'
import { isRecord } from '../../../kit/json.ts'
import { imageIn } from '../../chatcompat/image-response.ts'
import { CANCELED_REASON, POLICY_WORDING } from '../../orders/order-messages.ts'
import type { GeneratedImage } from '../../provider.ts'
import type { VideoStatus } from '../video/video-family.ts'

/** The message of an error or of a failed task, wherever the vendor puts it. */
export function messageIn(payload: unknown): string {
  if (typeof payload === 'string') return payload
  if (Array.isArray(payload)) return payload.map(messageIn).filter(Boolean).join('; ')
  if (!isRecord(payload)) return ''
  for (const name of ['error', 'detail', 'message', 'msg', 'details']) {
    const message = messageIn(payload[name])
    if (message) return message
  }
  return ''
}

/** An invalid request whose message reports refused content. */
export const classifyByWording = (payload: unknown, status: number) =>
  (status === 400 || status === 422) && POLICY_WORDING.test(messageIn(payload)) ? ('policy' as const) : undefined

export const QUEUED: VideoStatus = { status: 'QUEUED', isPending: true }
export const IN_PROGRESS: VideoStatus = { status: 'IN_PROGRESS', isPending: true }
export const CANCELED: VideoStatus = { failure: { fail_code: 'canceled', reason: CANCELED_REASON } }

/** By the vendor's own status. An unknown one does not end the task; what is no text is no status. */
export const statusIn = (statuses: Record<string, VideoStatus>, status: unknown): VideoStatus | undefined =>
  typeof status !== 'string' ? undefined : Object.hasOwn(statuses, status) ? statuses[status] : { isPending: true }

/** A vendor's filter removed the result. */
export const filtered = (reason = 'The result was removed by a filter.') => ({
  failure: { fail_code: 'content_policy_violation' as const, reason },
})

export const imagesIn = (values: readonly unknown[]): GeneratedImage[] =>
  values.flatMap((value) => imageIn(value) ?? [])

export const matchesAny = (model: string, globs: readonly string[]) =>
  globs.some((glob) => matchesGlob(glob, model.toLowerCase()))

/** Twice a second, for as long as an order of images may take. */
export const POLL_ATTEMPTS = 560
