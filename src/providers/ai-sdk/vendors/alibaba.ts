/** Alibaba's Model Studio (DashScope): Qwen for chat, Wan for videos, embeddings. */
import { isRecord } from '../../../kit/json.ts'
import type { FailCode } from '../../../spec/task.ts'
import type { VideoOrder } from '../../../spec/video-request.ts'
import { ratioOf, tierOf, unsupportedValue } from '../../orders/order-fields.ts'
import { vendor } from '../vendor-row.ts'
import type { OrderOptions, VideoFamily, VideoModelOptions, VideoStatus } from '../video/video-family.ts'
import { CANCELED, IN_PROGRESS, QUEUED, statusIn } from './response-values.ts'

const ORIGIN = 'https://dashscope-intl.aliyuncs.com'
const BASE_URL = `${ORIGIN}/api/v1`

const VIDEO: VideoFamily = {
  acceptedResponse: { output: { task_status: 'PENDING', task_id: 'id' } },
  media: 'url',
  adaptOptions,
  // wan2.7 always generates sound; older models derive the ratio from the pixels.
  mayIgnore: ({ feature }, order) =>
    feature === 'generateAudio' || (feature === 'aspectRatio' && pixelsFor(order) !== undefined),
  classifyError: (payload, status) => {
    const code = isRecord(payload) ? String(payload.code) : ''
    if (REFUSED.test(code)) return 'policy'
    return /^Arrearage/.test(code) && status < 500 ? 402 : undefined
  },
  read(payload) {
    const output = isRecord(payload) && isRecord(payload.output) ? payload.output : undefined
    if (!output) return undefined
    const { task_status: status, video_url, code, message } = output
    if (status === 'SUCCEEDED') return typeof video_url === 'string' && video_url !== '' ? undefined : { outputs: [] }
    if (status === 'FAILED') return { failure: failureOf(String(code ?? ''), String(message ?? '')) }
    // An unknown one is, among others, UNKNOWN: that of ids that it does not know (any more).
    return statusIn({ PENDING: QUEUED, RUNNING: IN_PROGRESS, CANCELED }, status)
  },
  // It cancels tasks that have not started.
  cancel: ({ taskId }) =>
    typeof taskId === 'string'
      ? { method: 'POST', url: `${BASE_URL}/tasks/${encodeURIComponent(taskId)}/cancel` }
      : undefined,
}

export const ALIBABA = vendor({
  baseUrl: BASE_URL,
  adaptBaseUrl: (configured) => configured.replace(/\/compatible-mode\/v1\/?$/, '/api/v1'),
  load: async ({ key, fetch }) =>
    (await import('@ai-sdk/alibaba')).createAlibaba({ apiKey: key, videoBaseURL: ORIGIN, fetch }),
  chat: {
    factory: (sdk) => sdk.chatModel,
    baseUrl: `${ORIGIN}/compatible-mode/v1`,
    adaptBaseUrl: (configured) => configured.replace(/\/api\/v1\/?$/, '/compatible-mode/v1'),
    options: { parallel_tool_calls: 'parallelToolCalls' },
    thinking: ({ budget, enabled }) => ({
      enableThinking: enabled,
      ...(budget && budget > 0 ? { thinkingBudget: budget } : {}),
    }),
    reasoningHistory: 'text',
    modelsPath: '/models',
  },
  // By its own API: the one in OpenAI's shape does not distinguish queries and documents.
  embeddings: {
    factory: (sdk) => sdk.embedding,
    maxInputs: () => 10,
    options: () => ({
      dimensions: 'dimension',
      input_type: { option: 'textType', values: { query: 'query', document: 'document' } },
    }),
  },
  video: { factory: (sdk) => sdk.video, ...VIDEO },
})

/** Codes for refused content, of the prompt, the input or the output. */
const REFUSED = /^(DataInspectionFailed|IPInfringementSuspect|InvalidParameter\.DataInspection)/

function failureOf(code: string, reason: string): NonNullable<VideoStatus['failure']> {
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

/** The sizes that the models before wan2.7 generate from text, by tier and ratio. */
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

function adaptOptions(options: OrderOptions, order: VideoOrder, model: string): OrderOptions {
  if (order.negative_prompt) options.extras.negativePrompt = order.negative_prompt
  const isTiered = /^wan(3|2\.7)/.test(model) || model.includes('-i2v')
  const resolution = isTiered ? tierOf(order.size)?.toUpperCase() : pixelsFor(order)
  if (!isTiered && resolution === undefined && order.size !== undefined) {
    throw unsupportedValue('size', `${model} does not support ${order.size} at ${ratioOf(order) ?? '16:9'}.`)
  }
  const video = options.inputReferences?.find((file) => file.mediaType?.startsWith('video'))
  if (video?.type === 'url' && !/\.(mp4|mov)([?#]|$)/i.test(video.url)) {
    // Its package recognises a video by the end of its URL, and treats anything else as an image.
    throw unsupportedValue('video', 'This upstream accepts a video only by a URL that ends with .mp4 or .mov.')
  }
  return { ...options, resolution: resolution as VideoModelOptions['resolution'] }
}
