/** Luma's Dream Machine API: an order is a "generation", whose state is `dreaming` until it is completed. */
import { asRecord, isRecord, type JsonRecord, memberOf, recordsIn } from '../../kit/json.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, isHttpUrl, type OrderClient, taskMethods } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import { assertSupportedFields, onlyByUrl, ratioOf, tierOf, withExtras, withoutEmpty } from '../orders/order-fields.ts'
import { type ListedOrder, secondsOf } from '../orders/order-list.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'

export function createLuma(parts: AdapterParts): Provider {
  const client = createOrderClient(parts, {
    kind: 'luma',
    base_url: 'https://api.lumalabs.ai/dream-machine/v1',
    key_env: 'LUMAAI_API_KEY',
    classifyError,
  })
  return {
    id: parts.id,
    kind: 'luma',
    video: {
      // Its cancel deletes the generation: Luma has no other way.
      ...taskMethods<VideoOrder>(client, {
        tasks: '/generations',
        order: (call) => ({ path: '/generations/video', body: writeOrder(call, parts.id) }),
        read: (generation) => readGeneration(generation, client),
      }),
      // "Retrieve a list of generations with optional filtering and sorting" (lumaai 1.19.1, `generations.list`).
      orderList: {
        // How soon a new generation is in the list is not documented.
        absent: 'unknown',
        since: (_, since, signal) =>
          client.listOrders(since, signal, {
            path: ({ number }) => `/generations?limit=${PAGE}&offset=${(number - 1) * PAGE}`,
            read(payload) {
              const { generations, has_more } = asRecord(payload)
              if (!Array.isArray(generations)) return undefined
              return { orders: recordsIn(generations).map((one) => listed(one, client)), isLast: has_more !== true }
            },
          }),
        fieldsOf(call) {
          const { prompt, keyframes, ...others } = writeOrder(call, parts.id)
          return { always: { prompt, keyframes }, where_shown: withoutEmpty(others) }
        },
      },
    },
  }
}

const PAGE = 100

function listed(generation: JsonRecord, client: OrderClient): ListedOrder {
  const id = client.readId(generation.id)
  const fields = asRecord(generation.request)
  return { id, operation: { id }, created_at: secondsOf(generation.created_at), fields }
}

function writeOrder({ model, request }: VideoCall, upstream: string): JsonRecord {
  assertSupportedFields(request, upstream, ['image', 'last_image'])
  const frame0 = keyframe(request, 'image', upstream)
  const frame1 = keyframe(request, 'last_image', upstream)
  return withExtras(
    {
      model,
      prompt: request.prompt || undefined,
      aspect_ratio: ratioOf(request),
      duration: request.duration === undefined ? undefined : `${request.duration}s`,
      resolution: tierOf(request.size),
      keyframes: frame0 || frame1 ? { ...(frame0 ? { frame0 } : {}), ...(frame1 ? { frame1 } : {}) } : undefined,
    },
    request.metadata,
    'luma',
  )
}

function keyframe(order: VideoOrder, field: 'image' | 'last_image', upstream: string) {
  const url = order[field]
  if (url === undefined) return undefined
  if (isHttpUrl(url)) return { type: 'image', url }
  throw onlyByUrl(upstream, field, 'an image')
}

const STATES: Record<string, TaskProgress> = {
  pending: { status: 'QUEUED' },
  queued: { status: 'QUEUED' },
  dreaming: { status: 'IN_PROGRESS' },
}

function readGeneration(generation: JsonRecord, client: OrderClient): TaskProgress {
  const state = client.readStatus(generation.state)
  if (state === 'completed') return client.success([memberOf(generation.assets, 'video')])
  if (state === 'failed') return client.failure('generation_failed', generation.failure_reason)
  return STATES[state] ?? {}
}

/** Rejected content is a 400 like any other; only the message shows it. */
const classifyError: ErrorClassifier = (payload, status) => {
  const detail = isRecord(payload) && typeof payload.detail === 'string' ? payload.detail : ''
  return status === 400 && /moderation|not allowed|polic/i.test(detail) ? 'policy' : undefined
}
