/** MiniMax: the H3 models, by the second version of its API. */
import { asRecord, isRecord } from '../../../kit/json.ts'
import type { ErrorClass } from '../../orders/order-error.ts'
import { tierOf } from '../../orders/order-fields.ts'
import { EXPIRED } from '../../orders/order-messages.ts'
import { vendor } from '../vendor-row.ts'
import type { VideoFamily, VideoModelOptions, VideoStatus } from '../video/video-family.ts'
import { CANCELED, IN_PROGRESS, messageIn, QUEUED, statusIn } from './response-values.ts'

const ORIGIN = 'https://api.minimax.io'

const VIDEO: VideoFamily = {
  acceptedResponse: { task_id: 'id' },
  media: 'url',
  drops: ['negative_prompt'],
  adaptOptions: (options, order) => ({
    ...options,
    // Its sizes are named 480P, 768P and 2K.
    resolution: (order.size?.includes('x')
      ? order.size
      : tierOf(order.size)?.toUpperCase()) as VideoModelOptions['resolution'],
  }),
  // Every video has sound.
  mayIgnore: ({ feature }) => feature === 'generateAudio',
  classifyError(payload, status) {
    const base = isRecord(payload) && isRecord(payload.base_resp) ? payload.base_resp : undefined
    const code = base ? Number(base.status_code) : codeIn(messageIn(payload))
    if (code === 0 || Number.isNaN(code)) return undefined
    if (status >= 300 && !POLICY.includes(code)) return undefined
    if (POLICY.includes(code)) return 'policy'
    return base ? (MEANINGS[code] ?? 500) : undefined
  },
  read(payload): VideoStatus | undefined {
    const task = isRecord(payload) && isRecord(payload.task) ? payload.task : undefined
    if (!task) return undefined
    const content = asRecord(task.content)
    const { status } = task
    if (status === 'succeeded')
      return typeof content.url === 'string' && content.url !== '' ? undefined : { outputs: [] }
    if (status === 'failed') return { failure: failureOf(task.error) }
    if (status === 'expired') return { failure: { fail_code: 'generation_failed', reason: EXPIRED } }
    return statusIn({ queued: QUEUED, running: IN_PROGRESS, cancelled: CANCELED }, status)
  },
}

export const MINIMAX = vendor({
  baseUrl: `${ORIGIN}/v2`,
  load: async ({ key, fetch }) =>
    (await import('@ai-sdk/minimax')).createMiniMax({ apiKey: key, videoBaseURL: ORIGIN, fetch }),
  video: { factory: (sdk) => sdk.video, ...VIDEO },
})

/** Codes of input and output with sensitive content. */
const POLICY = [1026, 1027]
/** Codes of refusals with status 200: rate, key, balance, parameters. */
const MEANINGS: Record<number, ErrorClass> = { 1002: 429, 1039: 429, 1004: 401, 2049: 401, 1008: 402, 2013: 400 }

/** Its messages end with the code: `insufficient balance (1008)`. */
const codeIn = (message: string) => Number(/\((\d{4})\)\s*$/.exec(message)?.[1] ?? Number.NaN)

function failureOf(error: unknown): NonNullable<VideoStatus['failure']> {
  const reason = isRecord(error) && typeof error.message === 'string' ? error.message : ''
  const code = isRecord(error) ? Number(error.code) : Number.NaN
  if (POLICY.includes(code) || POLICY.includes(codeIn(reason))) {
    return { fail_code: 'content_policy_violation', reason }
  }
  return code === 2013 ? { fail_code: 'invalid_input', reason } : { reason }
}
