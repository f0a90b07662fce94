/**
 * Meshy: from words in two orders, of which the second puts a texture on what the first has made; from images in one.
 */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json } from '../../spec/task.ts'
import { THREE_D_FORMATS, type ThreeDFormat, type ThreeDOrder } from '../../spec/three-d-request.ts'
import { createOrderClient, type OrderClient, operationId, withId } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import { toMediaUrl, unsupportedValue, withExtras, withoutEmpty } from '../orders/order-fields.ts'
import type { Provider, TaskProgress, ThreeDCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { assertSupportedThreeDFields, outputFiles } from './three-d-outputs.ts'

/** On which path a task is ordered, and asked for. */
const WAYS = { text: '/v2/text-to-3d', image: '/v1/image-to-3d', images: '/v1/multi-image-to-3d' } as const
type Way = keyof typeof WAYS

/** As many views as it takes. */
const MOST_VIEWS = 4
/** Of the vendor's own members, those that are about the texture: they go with the order that makes it. */
const OF_TEXTURE = ['texture_prompt', 'texture_image_url', 'hd_texture', 'remove_lighting']
/** Decided by fields in other words, or by us. */
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
  const vendor = createOrderClient(parts, {
    kind: 'meshy',
    base_url: 'https://api.meshy.ai/openapi',
    key_env: 'MESHY_API_KEY',
    classifyError: judge,
  })
  return {
    id: parts.id,
    kind: 'meshy',
    threeD: {
      // It takes no key by which a repeated order would be known.
      resubmit: 'unsafe',
      retention_seconds: RETENTION_SECONDS,
      async start(call, signal) {
        const { way, body, texture } = writeOrder(call, parts.id)
        const answer = await vendor.submit({ path: WAYS[way], body, model: call.model, signal })
        const operation = { way, id: vendor.readId(answer.result), model: call.model, format: call.request.format }
        return { operation: texture ? { ...operation, texture: texture as Json } : operation }
      },
      async status(operation, signal) {
        const path = withId(WAYS[wayOf(operation)], operationId(operation))
        return vendor.poll(path, signal, (answer) => readTask(answer, operation, vendor))
      },
      /** The texture on what was made of words. */
      async proceed(operation, _, signal) {
        const { model, format, texture } = isRecord(operation) ? operation : {}
        const body = { ...(isRecord(texture) ? texture : {}), preview_task_id: operationId(operation) }
        const answer = await vendor.submit({ path: WAYS.text, body, model: String(model), signal })
        return { operation: { way: 'text', id: vendor.readId(answer.result), model, format, part: 2 } as Json }
      },
    },
  }
}

type Written = { way: Way; body: JsonRecord; texture?: JsonRecord }

function writeOrder({ model, request }: ThreeDCall, upstream: string): Written {
  const { image, images = [] } = request
  if (image === undefined && images.length === 0) return writeText(model, request, upstream)
  assertSupportedThreeDFields(request, upstream, ['prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'])
  if (images.length > MOST_VIEWS) {
    throw unsupportedValue(
      'images',
      `The upstream "${upstream}" takes at most ${MOST_VIEWS} images, not ${images.length}.`,
    )
  }
  if (request.prompt !== undefined && request.texture === false) {
    throw unsupportedValue('prompt', `The upstream "${upstream}" takes words beside an image for its texture only.`)
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

/** A model is meant to be seen: without a word to the contrary it gets its texture. */
function writeText(model: string, request: ThreeDOrder, upstream: string): Written {
  assertSupportedThreeDFields(request, upstream, ['prompt', 'texture', 'pbr', 'target_polycount'])
  const extras = Object.entries(withExtras({}, request.metadata, 'meshy', DECIDED))
  const of = (isOfTexture: boolean) =>
    Object.fromEntries(extras.filter(([name]) => OF_TEXTURE.includes(name) === isOfTexture))
  const preview = { ...of(false), mode: 'preview', prompt: request.prompt, ai_model: model, ...shapeOf(request) }
  const target_formats = formatsOf(request)
  if (request.texture === false) return { way: 'text', body: withoutEmpty({ ...preview, target_formats }) }
  const texture = { ...of(true), mode: 'refine', ai_model: model, enable_pbr: request.pbr, target_formats }
  return { way: 'text', body: withoutEmpty(preview), texture: withoutEmpty(texture) }
}

/** How many polygons is heeded only where the mesh is made anew. */
const shapeOf = ({ target_polycount }: ThreeDOrder): JsonRecord =>
  target_polycount === undefined ? {} : { should_remesh: true, target_polycount }

/** Each further format is a further file to fetch: those that the client has asked the vendor for by name. */
function formatsOf({ format, metadata }: ThreeDOrder): string[] {
  const { target_formats: asked } = isRecord(metadata?.meshy) ? metadata.meshy : {}
  const more = Array.isArray(asked) ? THREE_D_FORMATS.filter((one) => asked.includes(one)) : []
  return [...new Set<string>([format, ...more])]
}

function readTask(task: JsonRecord, operation: Json, vendor: OrderClient): TaskProgress {
  const { texture, part, format } = isRecord(operation) ? operation : {}
  switch (vendor.readStatus(task.status)) {
    case 'PENDING':
      return { status: 'QUEUED' }
    case 'IN_PROGRESS':
      return underWay(task.progress, texture ? 1 : part === 2 ? 2 : undefined)
    case 'SUCCEEDED':
      return texture ? { status: 'PROCEED' } : filesIn(task, format as ThreeDFormat, vendor)
    case 'FAILED':
      return vendor.failure('generation_failed', isRecord(task.task_error) ? task.task_error.message : undefined)
    case 'EXPIRED':
      return vendor.failure('generation_failed', 'The task expired at the upstream.')
    case 'CANCELED':
      return vendor.failure('canceled', 'The task was canceled at the upstream.')
    default:
      return {}
  }
}

/** Of an order in two parts each is a half. */
function underWay(progress: unknown, part: 1 | 2 | undefined): TaskProgress {
  if (typeof progress !== 'number') return { status: 'IN_PROGRESS' }
  return { status: 'IN_PROGRESS', progress: part === undefined ? progress : (progress + (part === 2 ? 100 : 0)) / 2 }
}

function filesIn(task: JsonRecord, format: ThreeDFormat, vendor: OrderClient): TaskProgress {
  const models = isRecord(task.model_urls) ? task.model_urls : {}
  const textures = Array.isArray(task.texture_urls) ? task.texture_urls.filter(isRecord) : []
  const outputs = outputFiles({
    format,
    models,
    material: models.mtl,
    pictures: textures.flatMap((maps) => Object.values(maps)),
    preview: task.thumbnail_url,
  })
  return outputs.length > 0 ? { status: 'SUCCESS', outputs } : vendor.success([])
}

function wayOf(operation: Json): Way {
  const way = isRecord(operation) ? operation.way : undefined
  if (way === 'text' || way === 'image' || way === 'images') return way
  throw new GatewayError('internal_error', 'What was stored of the order is not of this kind of provider.')
}

/** Refused content is a 400 like any other, told by its words alone. */
const judge: ErrorClassifier = (payload, status) => {
  const message = isRecord(payload) && typeof payload.message === 'string' ? payload.message : ''
  return status === 400 && /moderat|harmful|violat|polic|nsfw/i.test(message) ? 'policy' : undefined
}
