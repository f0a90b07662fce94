/** MiniMax: the H3 models, by the second version of its API. */
import { isRecord } from '../../kit/json.ts'
import type { ErrorClass } from '../orders/order-error.ts'
import { tierOf } from '../orders/order-fields.ts'
import type { AiSdkVendor, Said, VideoModelOptions } from './vendor.ts'
import { wordsOf } from './words.ts'

const ORIGIN = 'https://api.minimax.io'

export const MINIMAX: AiSdkVendor = {
  kind: 'minimax',
  home: `${ORIGIN}/v2`,
  key_env: ['MINIMAX_API_KEY'],
  namespace: 'minimax',
  async load({ key, fetch }) {
    const { createMiniMax } = await import('@ai-sdk/minimax')
    return createMiniMax({ apiKey: key, videoBaseURL: ORIGIN, fetch }).video
  },
  accepted: { task_id: 'id' },
  media: 'address',
  drops: ['negative_prompt'],
  write: (wanted, order) => ({
    ...wanted,
    // It names sizes 480P, 768P and 2K.
    resolution: (order.size?.includes('x')
      ? order.size
      : tierOf(order.size)?.toUpperCase()) as VideoModelOptions['resolution'],
  }),
  // Picture and sound are made together, always.
  tolerates: ({ feature }) => feature === 'generateAudio',
  judge(payload, status) {
    const base = isRecord(payload) && isRecord(payload.base_resp) ? payload.base_resp : undefined
    const code = base ? Number(base.status_code) : codeIn(wordsOf(payload))
    if (code === 0 || Number.isNaN(code)) return undefined
    if (status >= 300 && !POLICY.includes(code)) return undefined
    if (POLICY.includes(code)) return 'policy'
    return base ? (MEANINGS[code] ?? 500) : undefined
  },
  read(payload): Said | undefined {
    const task = isRecord(payload) && isRecord(payload.task) ? payload.task : undefined
    if (!task) return undefined
    const content = isRecord(task.content) ? task.content : {}
    switch (task.status) {
      case 'queued':
        return { status: 'QUEUED', isPending: true }
      case 'running':
        return { status: 'IN_PROGRESS', isPending: true }
      case 'succeeded':
        return typeof content.url === 'string' && content.url !== '' ? undefined : { outputs: [] }
      case 'failed':
        return { failure: readFault(task.error) }
      case 'cancelled':
        return { failure: { fail_code: 'canceled', reason: 'The task was canceled at the upstream.' } }
      case 'expired':
        return { failure: { fail_code: 'generation_failed', reason: 'The task expired at the upstream.' } }
      default:
        return typeof task.status === 'string' ? { isPending: true } : undefined
    }
  },
}

/** Input and output with sensitive content. */
const POLICY = [1026, 1027]
/** Its own codes, for answers of status 200 that refuse: rate, key, balance, parameters. */
const MEANINGS: Record<number, ErrorClass> = { 1002: 429, 1039: 429, 1004: 401, 2049: 401, 1008: 402, 2013: 400 }

/** Its messages end with the code: `insufficient balance (1008)`. */
const codeIn = (message: string) => Number(/\((\d{4})\)\s*$/.exec(message)?.[1] ?? Number.NaN)

function readFault(error: unknown): NonNullable<Said['failure']> {
  const reason = isRecord(error) && typeof error.message === 'string' ? error.message : ''
  const code = isRecord(error) ? Number(error.code) : Number.NaN
  if (POLICY.includes(code) || POLICY.includes(codeIn(reason))) {
    return { fail_code: 'content_policy_violation', reason }
  }
  return code === 2013 ? { fail_code: 'invalid_input', reason } : { reason }
}
