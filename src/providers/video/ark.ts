/** ByteDance's Ark (Volcengine, BytePlus ModelArk), for the Seedance models: a content generation task, polled by its id. */
import { asRecord, isRecord, type JsonRecord, memberOf, recordsIn } from '../../kit/json.ts'
import type { FailCode } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, isHttpUrl, type OrderClient, taskMethods } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import {
  assertSupportedFields,
  matchesModel,
  onlyByUrl,
  ratioOf,
  tierOf,
  toMediaUrl,
  withExtras,
} from '../orders/order-fields.ts'
import { type ListedOrder, secondsOf } from '../orders/order-list.ts'
import { CANCELED } from '../orders/order-messages.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'

const TASKS = '/contents/generations/tasks'
/** The models before 1.5 have no sound, and reject the field that switches it. */
const WITHOUT_SOUND = ['*seedance-1-0*', '*wan2-1*']

/** `video_url` is cleared 24 hours after the task has ended (BytePlus ModelArk, "Retrieve a video generation task"). */
const RETENTION_SECONDS = 86_400

export function createArk(parts: AdapterParts): Provider {
  const client = createOrderClient(parts, {
    kind: 'ark',
    base_url: 'https://ark.ap-southeast.bytepluses.com/api/v3',
    key_env: 'ARK_API_KEY',
    classifyError,
  })
  const audioModels = parts.config.options?.audio_models
  const hasSound = (model: string) =>
    Array.isArray(audioModels) ? matchesModel(audioModels, [], model) : !matchesModel(undefined, WITHOUT_SOUND, model)
  return {
    id: parts.id,
    kind: 'ark',
    video: {
      // DELETE cancels a queued task, is rejected for a running one, and deletes the record of a finished one.
      ...taskMethods<VideoOrder>(client, {
        tasks: TASKS,
        order: (call) => ({ path: TASKS, body: writeOrder(call, parts.id, hasSound(call.model)) }),
        read: (task) => readTask(task, client),
      }),
      retention_seconds: RETENTION_SECONDS,
      // `content_generation.tasks.list` of volcengine-ark-runtime 5.0.54: the tasks of the last 7 days, newest first.
      orderList: {
        // How soon a new task is in the list is not documented.
        absent: 'unknown',
        since: (_, since, signal) =>
          client.listOrders(since, signal, {
            path: ({ number }) => `${TASKS}?page_num=${number}&page_size=${PAGE}`,
            read(payload) {
              const items = memberOf(payload, 'items')
              if (!Array.isArray(items)) return undefined
              return { orders: recordsIn(items).map((one) => listed(one, client)), isLast: items.length < PAGE }
            },
          }),
      },
    },
  }
}

const PAGE = 100

function listed(task: JsonRecord, client: OrderClient): ListedOrder {
  const id = client.readId(task.id)
  const order = { id, operation: { id }, created_at: secondsOf(task.created_at) }
  const label = task.safety_identifier
  return typeof label === 'string' && label !== '' ? { ...order, label } : order
}

function writeOrder({ model, request, task_id }: VideoCall, upstream: string, hasSound: boolean): JsonRecord {
  assertSupportedFields(request, upstream, [
    'image',
    'last_image',
    'images',
    'video',
    ...(hasSound ? (['audio_enable'] as const) : []),
  ])
  const own = request.metadata?.ark
  return withExtras(
    {
      model,
      content: contentOf(request, upstream),
      ratio: ratioOf(request),
      resolution: tierOf(request.size),
      duration: request.duration,
      seed: request.seed,
      generate_audio: hasSound ? request.audio_enable : undefined,
      // "The safety identifier associated with the task", which its list shows again; a client may set its own.
      safety_identifier: isRecord(own) && own.safety_identifier !== undefined ? undefined : task_id,
    },
    request.metadata,
    'ark',
    // `frames` overrides the duration.
    ['frames', 'generate_audio'],
  )
}

function contentOf(order: VideoOrder, upstream: string): JsonRecord[] {
  const image = (value: string, role: string) => ({ type: 'image_url', image_url: { url: toMediaUrl(value) }, role })
  const { image: first, last_image: last, images = [], video } = order
  if (video !== undefined && !isHttpUrl(video) && !video.startsWith('asset:')) {
    throw onlyByUrl(upstream, 'video', 'a video')
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
  cancelled: CANCELED,
  expired: {
    status: 'FAILURE',
    fail_code: 'timeout',
    fail_reason: 'The task exceeded the time limit of the upstream.',
  },
}

function readTask(task: JsonRecord, client: OrderClient): TaskProgress {
  const status = client.readStatus(task.status)
  if (status === 'succeeded') return client.success([memberOf(task.content, 'video_url')])
  if (status === 'failed') {
    const error = asRecord(task.error)
    return client.failure(failCodeOf(error.code), error.message)
  }
  return STATUSES[status] ?? {}
}

/** Codes are names, some with a second one after a dot: `OutputVideoSensitiveContentDetected.PolicyViolation`. */
function failCodeOf(code: unknown): FailCode {
  const name = typeof code === 'string' ? code : ''
  if (/Sensitive|PolicyViolation/.test(name)) return 'content_policy_violation'
  if (/^Invalid(Image|Video|Audio)/.test(name)) return 'input_media_invalid'
  if (/^(InvalidParameter|MissingParameter|InvalidArgument)/.test(name)) return 'invalid_input'
  if (/^Internal|ServerOverloaded/.test(name)) return 'upstream_error'
  return 'generation_failed'
}

/** 403 and 429 each have several meanings, which only the code distinguishes. */
const classifyError: ErrorClassifier = (payload, status) => {
  if (status < 400 || status >= 500 || !isRecord(payload)) return undefined
  const error = isRecord(payload.error) ? payload.error : payload
  const code = typeof error.code === 'string' ? error.code : ''
  if (/Sensitive|PolicyViolation/.test(code)) return 'policy'
  // The account's balance, its free quota, and its own spending limit.
  if (/^(AccountOverdue|ServiceOverdue|QuotaExceeded|SetLimitExceeded|InsufficientBalance)/.test(code)) return 402
  if (/^(ServerOverloaded|ModelLoading)/.test(code)) return 503
  return undefined
}
