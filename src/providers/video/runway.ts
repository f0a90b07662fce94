/** Runway's own API, and the models of other companies behind it: an order, its task, its files. */
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { FailCode } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, type OrderClient, taskMethods } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import {
  assertSupportedFields,
  matchesModel,
  pixelsOf,
  ratioOf,
  tierOf,
  toMediaUrl,
  withExtras,
} from '../orders/order-fields.ts'
import { CANCELED } from '../orders/order-messages.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { type RunwayModel, runwayModel } from './runway-models.ts'

export function createRunway(parts: AdapterParts): Provider {
  const client = createOrderClient(parts, {
    kind: 'runway',
    base_url: 'https://api.dev.runwayml.com/v1',
    key_env: 'RUNWAYML_API_SECRET',
    // The only version; requests without it are rejected.
    headers: () => ({ 'x-runway-version': '2024-11-06' }),
    classifyError,
  })
  /** The operator's list of models with a switch for sound overrides our table. */
  const modelOf = (model: string): RunwayModel => {
    const known = runwayModel(model)
    return matchesModel(parts.config.options?.audio_models, [], model) ? { ...known, sound: 'switch' } : known
  }
  return {
    id: parts.id,
    kind: 'runway',
    video: taskMethods<VideoOrder>(client, {
      tasks: '/tasks',
      order: (call) => writeOrder(call, modelOf(call.model), parts.id),
      read: (task) => readTask(task, client),
    }),
  }
}

function writeOrder({ model, request }: VideoCall, traits: RunwayModel, upstream: string) {
  const { fields, sound } = traits
  const images = request.images ?? []
  assertSupportedFields(request, upstream, [
    'image',
    ...fields.filter((field) => field !== 'seed'),
    ...(sound === 'none' ? [] : (['audio_enable'] as const)),
  ])
  const isFromImage = request.image !== undefined || request.last_image !== undefined
  const frame = (isFromImage ? traits.image_frame : traits.text_frame) ?? 'pixels'
  const body = withExtras(
    {
      model,
      promptText: request.prompt || undefined,
      ...(isFromImage ? { promptImage: promptImage(request) } : {}),
      ...frameOf(request, frame, traits.sides ?? {}),
      duration: request.duration,
      seed: fields.includes('seed') ? request.seed : undefined,
      audio: sound === 'switch' ? request.audio_enable : sound === 'ask' && request.audio_enable ? true : undefined,
      negativePrompt: request.negative_prompt,
      references: images.length > 0 ? images.map((image) => ({ uri: toMediaUrl(image) })) : undefined,
    },
    request.metadata,
    'runway',
    ['audio'],
  )
  return { path: isFromImage ? '/image_to_video' : '/text_to_video', body }
}

function promptImage({ image, last_image }: VideoOrder) {
  if (last_image === undefined) return toMediaUrl(image ?? '')
  return [
    ...(image === undefined ? [] : [{ uri: toMediaUrl(image), position: 'first' }]),
    { uri: toMediaUrl(last_image), position: 'last' },
  ]
}

function frameOf(order: VideoOrder, frame: NonNullable<RunwayModel['text_frame']>, sides: Record<string, string>) {
  const tier = tierOf(order.size)
  const ratio = ratioOf(order)
  if (frame === 'named') return { ratio, resolution: tier }
  if (frame === 'resolution') return { resolution: tier }
  if (frame === 'auto') return { ratio: tier === undefined ? undefined : `auto_${tier}` }
  // A ratio without a size still needs pixels: every model has 720p.
  const known = order.size?.includes('x') ? undefined : sides[`${tier ?? '720p'} ${ratio ?? '16:9'}`]
  const pixels = pixelsOf(order.size ?? (ratio === undefined ? undefined : '720p'), ratio)
  return { ratio: known ?? (pixels && `${pixels.width}:${pixels.height}`) }
}

const STATUSES: Record<string, TaskProgress> = {
  PENDING: { status: 'QUEUED' },
  THROTTLED: { status: 'QUEUED' },
  CANCELLED: CANCELED,
}

/** An unknown status keeps the state of the task. */
function readTask(task: JsonRecord, client: OrderClient): TaskProgress {
  const status = client.readStatus(task.status)
  if (status === 'RUNNING') {
    const done = typeof task.progress === 'number' && task.progress >= 0 ? Math.min(1, task.progress) : undefined
    return { status: 'IN_PROGRESS', ...(done === undefined ? {} : { progress: Math.floor(done * 100) }) }
  }
  if (status === 'SUCCEEDED') return client.success(Array.isArray(task.output) ? task.output : [])
  if (status === 'FAILED') return client.failure(failCodeOf(task.failureCode), task.failure)
  return STATUSES[status] ?? {}
}

/** The codes are dotted, from general to specific; `SAFETY` is first, or second after the name of a step. */
function failCodeOf(code: unknown): FailCode {
  const name = typeof code === 'string' ? code : ''
  if (/(^|\.)SAFETY(\.|$)/.test(name)) return 'content_policy_violation'
  if (/^(ASSET|INPUT_PREPROCESSING\.(?!INTERNAL))/.test(name)) return 'input_media_invalid'
  if (/^(INTERNAL|THIRD_PARTY|INPUT_PREPROCESSING)/.test(name)) return 'upstream_error'
  return 'generation_failed'
}

/** Runway also returns 400 for an account without credits and for rejected content. */
const classifyError: ErrorClassifier = (payload, status) => {
  if (status !== 400 && status !== 429) return undefined
  const message = isRecord(payload) && typeof payload.error === 'string' ? payload.error : ''
  if (/not (have )?enough credits|out of credits/i.test(message)) return 402
  return status === 400 && /content moderation|safety/i.test(message) ? 'policy' : undefined
}
