/**
 * Meshy: text to 3D takes two orders, of which the second adds a texture to the result of the first; image to 3D takes one.
 */
import { asRecord, isRecord, type JsonRecord, memberOf, recordsIn } from '../../kit/json.ts'
import type { Json } from '../../spec/task.ts'
import { THREE_D_FORMATS, type ThreeDFormat, type ThreeDOrder } from '../../spec/three-d-request.ts'
import { createOrderClient, type OrderClient, operationId, wayOf, withId } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import { toMediaUrl, unsupportedValue, withExtras, withoutEmpty } from '../orders/order-fields.ts'
import { type ListedOrder, type OrderList, secondsOf } from '../orders/order-list.ts'
import { CANCELED, EXPIRED } from '../orders/order-messages.ts'
import type { Provider, TaskProgress, ThreeDCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { assertMostImages, assertSupportedThreeDFields, modelOutputs } from './three-d-outputs.ts'

/** The path on which a task is ordered and polled. */
const PATHS = { text: '/v2/text-to-3d', image: '/v1/image-to-3d', images: '/v1/multi-image-to-3d' } as const
type Route = keyof typeof PATHS
const ROUTES = Object.keys(PATHS) as Route[]

/** The largest page of its lists. */
const PAGE = 50
/** Meshy's limit. */
const MAX_VIEWS = 4
/** The members of `metadata.meshy` that belong to the order for the texture. */
const TEXTURE_FIELDS = ['texture_prompt', 'texture_image_url', 'hd_texture', 'remove_lighting']
/** Set by fields under other names, or by the gateway. */
const DECIDED = [
  'mode',
  'ai_model',
  'preview_task_id',
  'enable_pbr',
  'should_texture',
  'target_polycount',
  'target_formats',
]

/** Text to 3D and image to 3D: 3 days after the task has ended (help.meshy.ai, "How long does Meshy keep API-generated assets?"). */
const RETENTION_SECONDS = 3 * 86_400

export function createMeshy(parts: AdapterParts): Provider {
  const client = createOrderClient(parts, {
    kind: 'meshy',
    base_url: 'https://api.meshy.ai/openapi',
    key_env: 'MESHY_API_KEY',
    classifyError,
  })
  return {
    id: parts.id,
    kind: 'meshy',
    threeD: {
      // It accepts no idempotency key.
      resubmit: 'unsafe',
      awaits_before_send: true,
      retention_seconds: RETENTION_SECONDS,
      async start(call, signal) {
        const order = writeOrder(call, parts.id)
        const { way, body } = order
        const response = await client.submit({ path: PATHS[way], body, signal, call })
        return { operation: operationOf(order, client.readId(response.result), call) }
      },
      async status(operation, signal) {
        const path = withId(PATHS[wayOf(operation, ROUTES)], operationId(operation))
        return client.poll(path, signal, (response) => readTask(response, operation, client))
      },
      orderList: listOf(client, parts.id),
      /** Orders the texture for a mesh made from text. */
      async proceed(operation, _, signal) {
        const { model, format, texture } = asRecord(operation)
        const body = { ...asRecord(texture), preview_task_id: operationId(operation) }
        const response = await client.submit({ path: PATHS.text, body, signal, call: { model: String(model) } })
        const id = client.readId(response.result)
        // `first`: that order is ours too, in the provider's list.
        return { operation: { way: 'text', id, model, format, part: 2, first: operationId(operation) } as Json }
      },
    },
  }
}

type EncodedOrder = { way: Route; body: JsonRecord; texture?: JsonRecord }

function operationOf({ way, texture }: EncodedOrder, id: string, { model, request }: ThreeDCall): Json {
  const operation = { way, id, model, format: request.format }
  return texture ? { ...operation, texture: texture as Json } : operation
}

/** "List Text to 3D Tasks" (docs.meshy.ai/api/text-to-3d): newest first, each with its unmodified prompt. */
function listOf(client: OrderClient, upstream: string): OrderList<ThreeDCall> {
  return {
    // How soon a new task is in the list is not documented.
    absent: 'unknown',
    since(call, since, signal) {
      const order = writeOrder(call, upstream)
      return client.listOrders(since, signal, {
        path: ({ number }) => `${PATHS[order.way]}?page_num=${number}&page_size=${PAGE}&sort_by=-created_at`,
        read(payload) {
          if (!Array.isArray(payload)) return undefined
          const orders = recordsIn(payload).map(({ id, created_at, prompt, ai_model, type }): ListedOrder => {
            const task = client.readId(id)
            const operation = operationOf(order, task, call)
            return { id: task, operation, created_at: secondsOf(created_at), fields: { prompt, ai_model, type } }
          })
          return { orders, isLast: payload.length < PAGE }
        },
      })
    },
    fieldsOf(call) {
      const { way, body } = writeOrder(call, upstream)
      if (way !== 'text') return undefined // tasks from images do not show their images
      // The texture of a mesh is in the same list, with the same prompt.
      return { always: { prompt: body.prompt }, where_shown: { ai_model: body.ai_model, type: 'text-to-3d-preview' } }
    },
  }
}

function writeOrder({ model, request }: ThreeDCall, upstream: string): EncodedOrder {
  const { image, images = [] } = request
  if (image === undefined && images.length === 0) return writeText(model, request, upstream)
  assertSupportedThreeDFields(request, upstream, ['prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'])
  assertMostImages(images, MAX_VIEWS, upstream)
  if (request.prompt !== undefined && request.texture === false) {
    throw unsupportedValue('prompt', `The upstream "${upstream}" uses a prompt beside an image for the texture only.`)
  }
  const media =
    image === undefined ? { image_urls: images.map((one) => toMediaUrl(one)) } : { image_url: toMediaUrl(image) }
  const body = withExtras(
    {
      ...media,
      ai_model: model,
      ...shapeOf(request),
      should_texture: request.texture,
      enable_pbr: request.pbr,
      texture_prompt: request.prompt,
      target_formats: formatsOf(request),
    },
    request.metadata,
    'meshy',
    DECIDED,
  )
  return { way: image === undefined ? 'images' : 'image', body }
}

/** A model gets a texture unless the request says otherwise. */
function writeText(model: string, request: ThreeDOrder, upstream: string): EncodedOrder {
  assertSupportedThreeDFields(request, upstream, ['prompt', 'texture', 'pbr', 'target_polycount'])
  const extras = Object.entries(withExtras({}, request.metadata, 'meshy', DECIDED))
  const of = (isOfTexture: boolean) =>
    Object.fromEntries(extras.filter(([name]) => TEXTURE_FIELDS.includes(name) === isOfTexture))
  const preview = { ...of(false), mode: 'preview', prompt: request.prompt, ai_model: model, ...shapeOf(request) }
  const target_formats = formatsOf(request)
  if (request.texture === false) return { way: 'text', body: withoutEmpty({ ...preview, target_formats }) }
  const texture = { ...of(true), mode: 'refine', ai_model: model, enable_pbr: request.pbr, target_formats }
  return { way: 'text', body: withoutEmpty(preview), texture: withoutEmpty(texture) }
}

/** The number of polygons has an effect only with a remesh. */
const shapeOf = ({ target_polycount }: ThreeDOrder): JsonRecord =>
  target_polycount === undefined ? {} : { should_remesh: true, target_polycount }

/** Each further format is one more file to fetch: only those that the client requests in `metadata.meshy`. */
function formatsOf({ format, metadata }: ThreeDOrder): string[] {
  const { target_formats: requested } = isRecord(metadata?.meshy) ? metadata.meshy : {}
  const more = Array.isArray(requested) ? THREE_D_FORMATS.filter((one) => requested.includes(one)) : []
  return [...new Set<string>([format, ...more])]
}

function readTask(task: JsonRecord, operation: Json, client: OrderClient): TaskProgress {
  const { texture, part, format } = asRecord(operation)
  switch (client.readStatus(task.status)) {
    case 'PENDING':
      return { status: 'QUEUED' }
    case 'IN_PROGRESS':
      return inProgress(task.progress, texture ? 1 : part === 2 ? 2 : undefined)
    case 'SUCCEEDED':
      return texture ? { status: 'PROCEED' } : filesIn(task, format as ThreeDFormat, client)
    case 'FAILED':
      return client.failure('generation_failed', memberOf(task.task_error, 'message'))
    case 'EXPIRED':
      return client.failure('generation_failed', EXPIRED)
    case 'CANCELED':
      return CANCELED
    default:
      return {}
  }
}

/** Each of two orders counts as half of the progress. */
function inProgress(progress: unknown, part: 1 | 2 | undefined): TaskProgress {
  if (typeof progress !== 'number') return { status: 'IN_PROGRESS' }
  return { status: 'IN_PROGRESS', progress: part === undefined ? progress : (progress + (part === 2 ? 100 : 0)) / 2 }
}

function filesIn(task: JsonRecord, format: ThreeDFormat, client: OrderClient): TaskProgress {
  const models = asRecord(task.model_urls)
  const textures = recordsIn(task.texture_urls)
  return modelOutputs(client, {
    format,
    models,
    material: models.mtl,
    pictures: textures.flatMap((maps) => Object.values(maps)),
    preview: task.thumbnail_url,
  })
}

/** Rejected content is a 400 like any other; only the message shows it. */
const classifyError: ErrorClassifier = (payload, status) => {
  const message = isRecord(payload) && typeof payload.message === 'string' ? payload.message : ''
  return status === 400 && /moderat|harmful|violat|polic|nsfw/i.test(message) ? 'policy' : undefined
}
