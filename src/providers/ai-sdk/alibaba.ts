/** Alibaba's Model Studio (DashScope): the Wan models. */

import { isRecord } from '../../kit/json.ts'
import type { FailCode } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { ratioOf, tierOf, unsupportedValue } from '../orders/order-fields.ts'
import type { AiSdkVendor, Said, VideoModelOptions, Wanted } from './vendor.ts'

const ORIGIN = 'https://dashscope-intl.aliyuncs.com'
const HOME = `${ORIGIN}/api/v1`

export const ALIBABA: AiSdkVendor = {
  kind: 'alibaba',
  home: HOME,
  key_env: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'],
  namespace: 'alibaba',
  async load({ key, fetch }) {
    const { createAlibaba } = await import('@ai-sdk/alibaba')
    return createAlibaba({ apiKey: key, videoBaseURL: ORIGIN, fetch }).video
  },
  accepted: { output: { task_status: 'PENDING', task_id: 'id' } },
  media: 'address',
  write,
  // wan2.7 always makes sound; older models take the ratio from the pixels.
  tolerates: ({ feature }, order) =>
    feature === 'generateAudio' || (feature === 'aspectRatio' && pixelsFor(order) !== undefined),
  judge: (payload, status) => {
    const code = isRecord(payload) ? String(payload.code) : ''
    if (REFUSED.test(code)) return 'policy'
    return /^Arrearage/.test(code) && status < 500 ? 402 : undefined
  },
  read(payload) {
    const output = isRecord(payload) && isRecord(payload.output) ? payload.output : undefined
    if (!output) return undefined
    switch (output.task_status) {
      case 'PENDING':
        return { status: 'QUEUED', isPending: true }
      case 'RUNNING':
        return { status: 'IN_PROGRESS', isPending: true }
      case 'SUCCEEDED':
        return typeof output.video_url === 'string' && output.video_url !== '' ? undefined : { outputs: [] }
      case 'FAILED':
        return { failure: readFault(String(output.code ?? ''), String(output.message ?? '')) }
      case 'CANCELED':
        return { failure: { fail_code: 'canceled', reason: 'The task was canceled at the upstream.' } }
      default:
        // Among them UNKNOWN, which it says of ids that it does not know (any more).
        return typeof output.task_status === 'string' ? { isPending: true } : undefined
    }
  },
  // It stops what has not begun.
  cancel: ({ taskId }) =>
    typeof taskId === 'string'
      ? { method: 'POST', url: `${HOME}/tasks/${encodeURIComponent(taskId)}/cancel` }
      : undefined,
}

/** Refused for its content, whether prompt, input or output. */
const REFUSED = /^(DataInspectionFailed|IPInfringementSuspect|InvalidParameter\.DataInspection)/

function readFault(code: string, reason: string): NonNullable<Said['failure']> {
  const codes: [RegExp, FailCode][] = [
    [/^InvalidParameter\.DataInspection/, 'input_media_invalid'],
    [REFUSED, 'content_policy_violation'],
    [/^Invalid(URL|File|Image|Video)/, 'input_media_invalid'],
    [/^InvalidParameter/, 'invalid_input'],
    [/^Throttling/, 'upstream_rate_limited'],
    [/^InternalError/, 'upstream_error'],
  ]
  const fail_code = codes.find(([pattern]) => pattern.test(code))?.[1]
  return fail_code === undefined ? { reason } : { fail_code, reason }
}

/** The sizes that the models before wan2.7 make of a text, by tier and ratio. */
const PIXELS: Record<string, string> = {
  '480p 16:9': '832x480',
  '480p 9:16': '480x832',
  '480p 1:1': '624x624',
  '720p 16:9': '1280x720',
  '720p 9:16': '720x1280',
  '720p 1:1': '960x960',
  '720p 4:3': '1088x832',
  '720p 3:4': '832x1088',
  '1080p 16:9': '1920x1080',
  '1080p 9:16': '1080x1920',
  '1080p 1:1': '1440x1440',
  '1080p 4:3': '1632x1248',
  '1080p 3:4': '1248x1632',
}

function pixelsFor(order: VideoOrder): string | undefined {
  if (order.size?.includes('x')) return order.size
  if (order.size === undefined && order.aspect_ratio === undefined) return undefined
  return PIXELS[`${tierOf(order.size ?? '720p')} ${ratioOf(order) ?? '16:9'}`]
}

function write(wanted: Wanted, order: VideoOrder, model: string): Wanted {
  if (order.negative_prompt) wanted.extras.negativePrompt = order.negative_prompt
  const isTiered = /^wan(3|2\.7)/.test(model) || model.includes('-i2v')
  const resolution = isTiered ? tierOf(order.size)?.toUpperCase() : pixelsFor(order)
  if (!isTiered && resolution === undefined && order.size !== undefined) {
    throw unsupportedValue('size', `${model} makes no ${order.size} at ${ratioOf(order) ?? '16:9'}.`)
  }
  const video = wanted.inputReferences?.find((file) => file.mediaType?.startsWith('video'))
  if (video?.type === 'url' && !/\.(mp4|mov)([?#]|$)/i.test(video.url)) {
    // Its package knows a video by the end of its address, and takes anything else for a picture.
    throw unsupportedValue('video', 'A video for this upstream is given by an address that ends with .mp4 or .mov.')
  }
  return { ...wanted, resolution: resolution as VideoModelOptions['resolution'] }
}
