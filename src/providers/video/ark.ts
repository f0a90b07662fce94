/** ByteDance's Ark (Volcengine, BytePlus ModelArk), for the Seedance models: a task of content, asked for by its id. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { FailCode } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, isHttpUrl, type OrderClient, operationId, withId } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import {
  assertSupportedFields,
  matchesModel,
  ratioOf,
  tierOf,
  toMediaUrl,
  unsupportedValue,
  withExtras,
} from '../orders/order-fields.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'

const TASKS = '/contents/generations/tasks'
/** The models before 1.5 have no sound, and refuse the field by which it is switched. */
const WITHOUT_SOUND = ['*seedance-1-0*', '*wan2-1*']

/** `video_url` is cleared 24 hours after the task has ended (BytePlus ModelArk, "Retrieve a video generation task"). */
const RETENTION_SECONDS = 86_400

export function createArk(parts: AdapterParts): Provider {
  const vendor = createOrderClient(parts, {
    kind: 'ark',
    base_url: 'https://ark.ap-southeast.bytepluses.com/api/v3',
    key_env: 'ARK_API_KEY',
    classifyError: judge,
  })
  const audioModels = parts.config.options?.audio_models
  const hasSound = (model: string) =>
    Array.isArray(audioModels) ? matchesModel(audioModels, [], model) : !matchesModel(undefined, WITHOUT_SOUND, model)
  return {
    id: parts.id,
    kind: 'ark',
    video: {
      // It takes no key by which a repeated order would be known.
      resubmit: 'unsafe',
      retention_seconds: RETENTION_SECONDS,
      async start(call, signal) {
        const body = writeOrder(call, parts.id, hasSound(call.model))
        const answer = await vendor.submit({ path: TASKS, body, model: call.model, signal })
        return { operation: { id: vendor.readId(answer.id) } }
      },
      async status(operation, signal) {
        return vendor.poll(withId(TASKS, operationId(operation)), signal, (answer) => readTask(answer, vendor))
      },
      // Cancels what is queued; of what runs it refuses, and what has ended it forgets.
      async cancel(operation, signal) {
        await vendor.send('DELETE', withId(TASKS, operationId(operation)), signal)
      },
    },
  }
}

function writeOrder({ model, request }: VideoCall, upstream: string, hasSound: boolean): JsonRecord {
  assertSupportedFields(request, upstream, [
    'image',
    'last_image',
    'images',
    'video',
    ...(hasSound ? (['audio_enable'] as const) : []),
  ])
  return withExtras(
    {
      model,
      content: contentOf(request, upstream),
      ratio: ratioOf(request),
      resolution: tierOf(request.size),
      duration: request.duration,
      seed: request.seed,
      generate_audio: hasSound ? request.audio_enable : undefined,
    },
    request.metadata,
    'ark',
    // Frames count before the duration.
    ['frames', 'generate_audio'],
  )
}

function contentOf(order: VideoOrder, upstream: string): JsonRecord[] {
  const image = (value: string, role: string) => ({ type: 'image_url', image_url: { url: toMediaUrl(value) }, role })
  const { image: first, last_image: last, images = [], video } = order
  if (video !== undefined && !isHttpUrl(video) && !video.startsWith('asset:')) {
    throw unsupportedValue('video', `The upstream "${upstream}" takes a video only by its https address, not as data.`)
  }
  return [
    ...(order.prompt ? [{ type: 'text', text: order.prompt }] : []),
    ...(first === undefined ? [] : [image(first, 'first_frame')]),
    ...(last === undefined ? [] : [image(last, 'last_frame')]),
    ...images.map((value) => image(value, 'reference_image')),
    ...(video === undefined ? [] : [{ type: 'video_url', video_url: { url: video }, role: 'reference_video' }]),
  ]
}

const STATUSES: Record<string, TaskProgress> = {
  queued: { status: 'QUEUED' },
  running: { status: 'IN_PROGRESS' },
  cancelled: { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'The task was canceled at the upstream.' },
  expired: {
    status: 'FAILURE',
    fail_code: 'timeout',
    fail_reason: 'The upstream did not make it within its own time.',
  },
}

function readTask(task: JsonRecord, vendor: OrderClient): TaskProgress {
  const status = vendor.readStatus(task.status)
  if (status === 'succeeded') return vendor.success([isRecord(task.content) ? task.content.video_url : undefined])
  if (status === 'failed') {
    const error = isRecord(task.error) ? task.error : {}
    return vendor.failure(failCodeOf(error.code), error.message)
  }
  return STATUSES[status] ?? {}
}

/** Codes are words, some with a second one after a dot: `OutputVideoSensitiveContentDetected.PolicyViolation`. */
function failCodeOf(code: unknown): FailCode {
  const word = typeof code === 'string' ? code : ''
  if (/Sensitive|PolicyViolation/.test(word)) return 'content_policy_violation'
  if (/^Invalid(Image|Video|Audio)/.test(word)) return 'input_media_invalid'
  if (/^(InvalidParameter|MissingParameter|InvalidArgument)/.test(word)) return 'invalid_input'
  if (/^Internal|ServerOverloaded/.test(word)) return 'upstream_error'
  return 'generation_failed'
}

/** 403 and 429 each stand for several things, which only the code tells apart. */
const judge: ErrorClassifier = (payload, status) => {
  if (status < 400 || status >= 500 || !isRecord(payload)) return undefined
  const error = isRecord(payload.error) ? payload.error : payload
  const code = typeof error.code === 'string' ? error.code : ''
  if (/Sensitive|PolicyViolation/.test(code)) return 'policy'
  // The account's money, its free quota, and the limit of spending that it has set itself.
  if (/^(AccountOverdue|ServiceOverdue|QuotaExceeded|SetLimitExceeded|InsufficientBalance)/.test(code)) return 402
  if (/^(ServerOverloaded|ModelLoading)/.test(code)) return 503
  return undefined
}
