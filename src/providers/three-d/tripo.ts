/** Tripo: one order generates a GLB; any other format is a second order, which converts the result of the first. */
import { asRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json } from '../../spec/task.ts'
import type { ThreeDFormat, ThreeDOrder } from '../../spec/three-d-request.ts'
import { createOrderClient, dataOf, isHttpUrl, type OrderClient, operationId, withId } from '../orders/order-client.ts'
import { classifyByCode, type ErrorClass } from '../orders/order-error.ts'
import { toMediaUrl, unsupportedValue, withExtras, withoutEmpty } from '../orders/order-fields.ts'
import { CANCELED, CONTENT_REJECTED, EXPIRED } from '../orders/order-messages.ts'
import type { Provider, TaskProgress, ThreeDCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { neverSent } from '../upstream/transport-failure.ts'
import { assertMostImages, assertSupportedThreeDFields, modelOutputs } from './three-d-outputs.ts'

/** In this order: front, left, back, right. */
const VIEWS = 4
/** Set by fields under other names, or by the gateway. */
const DECIDED = [
  'type',
  'model_version',
  'file',
  'files',
  'face_limit',
  'texture',
  'pbr',
  'original_model_task_id',
  'format',
]

export function createTripo(parts: AdapterParts): Provider {
  const client = createOrderClient(parts, {
    kind: 'tripo',
    base_url: 'https://api.tripo3d.ai/v2/openapi',
    key_env: 'TRIPO_API_KEY',
    classifyError,
  })

  /** A file with a URL is passed on as it is; one that came as data is uploaded first, which costs nothing. */
  async function fileOf(value: string, param: string, { model, signal }: { model: string; signal: AbortSignal }) {
    if (isHttpUrl(value)) return { type: typeOf(URL.parse(value)?.pathname ?? ''), url: value }
    try {
      if (!parts.media) throw unsupportedValue(param, `The upstream "${parts.id}" accepts "${param}" only as a URL.`)
      const { bytes, content_type } = await parts.media.read(toMediaUrl(value), signal, param)
      const type = content_type.replace('image/', '').replace('jpeg', 'jpg')
      const form = new FormData()
      form.set('file', new File([new Uint8Array(bytes)], `image.${type}`, { type: content_type }))
      const response = await client.submit({ path: '/upload/sts', body: await bytesOf(form), signal, call: { model } })
      return { type, file_token: client.readId(dataOf(response).image_token) }
    } catch (error) {
      // Whatever happened to the file, nothing was ordered.
      throw error instanceof GatewayError ? neverSent(error) : error
    }
  }

  async function writeOrder({ model, request }: ThreeDCall, signal: AbortSignal): Promise<JsonRecord> {
    const { image, images = [] } = request
    const to = { model, signal }
    if (image === undefined && images.length === 0) {
      assertSupportedThreeDFields(request, parts.id, [
        'prompt',
        'texture',
        'pbr',
        'target_polycount',
        'negative_prompt',
      ])
      const { prompt, negative_prompt } = request
      return { type: 'text_to_model', prompt, negative_prompt, ...commonOf(model, request) }
    }
    assertSupportedThreeDFields(request, parts.id, ['image', 'images', 'texture', 'pbr', 'target_polycount'])
    assertMostImages(images, VIEWS, parts.id)
    const [only = image ?? '', second] = images
    if (second === undefined) {
      const file = await fileOf(only, image === undefined ? 'images[0]' : 'image', to)
      return { type: 'image_to_model', file, ...commonOf(model, request) }
    }
    const files: JsonRecord[] = []
    for (const [index, one] of images.entries()) files.push(await fileOf(one, `images[${index}]`, to))
    // A missing view is an empty object.
    while (files.length < VIEWS) files.push({})
    return { type: 'multiview_to_model', files, ...commonOf(model, request) }
  }

  return {
    id: parts.id,
    kind: 'tripo',
    threeD: {
      // It accepts no idempotency key.
      resubmit: 'unsafe',
      awaits_before_send: true,
      async start(call, signal) {
        const order = await writeOrder(call, signal)
        const body = withExtras(order, call.request.metadata, 'tripo', DECIDED)
        const response = await client.submit({ path: '/task', body, signal, call })
        const { format, target_polycount: polycount } = call.request
        const operation = { id: client.readId(dataOf(response).task_id), model: call.model, format }
        // A model with quads is an FBX.
        if (format === 'glb' || (format === 'fbx' && body.quad === true)) return { operation }
        return { operation: { ...operation, convert: withoutEmpty({ face_limit: polycount }) as Json } }
      },
      async status(operation, signal) {
        const progress = await ask(operation, signal)
        const { first } = asRecord(operation)
        if (progress.status !== 'SUCCESS' || typeof first !== 'string') return progress
        // The unconverted file and its preview belong to the first task: a poll returns fresh links.
        const before = await ask({ id: first, format: 'glb' }, signal)
        if (before.status !== 'SUCCESS') return progress
        return { status: 'SUCCESS', outputs: [...progress.outputs, ...before.outputs] }
      },
      async proceed(operation, _, signal) {
        const { model, format, convert } = asRecord(operation)
        const id = operationId(operation)
        const conversion = { type: 'convert_model', format: String(format).toUpperCase(), original_model_task_id: id }
        const body = { ...conversion, ...asRecord(convert) }
        const response = await client.submit({ path: '/task', body, signal, call: { model: String(model) } })
        return { operation: { id: client.readId(dataOf(response).task_id), model, format, first: id } as Json }
      },
    },
  }

  function ask(operation: Json, signal: AbortSignal): Promise<TaskProgress> {
    const path = withId('/task', operationId(operation))
    return client.poll(path, signal, (response) => readTask(dataOf(response), operation, client))
  }
}

/** PBR maps are on by default and imply a texture: without a texture they are turned off. */
function commonOf(model: string, { texture, pbr, target_polycount, seed }: ThreeDOrder): JsonRecord {
  return {
    model_version: model,
    face_limit: target_polycount,
    texture,
    pbr: texture === false ? false : pbr,
    model_seed: seed,
  }
}

const typeOf = (path: string): string =>
  /\.(png|webp|jpe?g)$/i.exec(path)?.[1]?.toLowerCase().replace('jpeg', 'jpg') ?? 'jpg'

async function bytesOf(form: FormData) {
  const encoded = new Response(form)
  const content_type = encoded.headers.get('content-type') ?? ''
  return { bytes: new Uint8Array(await encoded.arrayBuffer()), content_type }
}

function readTask(task: JsonRecord, operation: Json, client: OrderClient): TaskProgress {
  const { convert, first, format } = asRecord(operation)
  const reason = task.error_msg
  switch (client.readStatus(task.status)) {
    case 'queued':
      return { status: 'QUEUED' }
    case 'running':
      return typeof task.progress === 'number' && first === undefined
        ? { status: 'IN_PROGRESS', progress: task.progress }
        : { status: 'IN_PROGRESS' }
    case 'success':
      return convert === undefined ? filesIn(task, format as ThreeDFormat, client) : { status: 'PROCEED' }
    case 'failed':
      return client.failure('generation_failed', reason)
    case 'banned':
      return client.failure('content_policy_violation', reason ?? CONTENT_REJECTED)
    case 'expired':
      return client.failure('generation_failed', reason ?? EXPIRED)
    case 'cancelled':
      return CANCELED
    default:
      return {}
  }
}

function filesIn(task: JsonRecord, format: ThreeDFormat, client: OrderClient): TaskProgress {
  const { pbr_model, model, base_model, rendered_image } = asRecord(task.output)
  return modelOutputs(client, {
    format,
    models: { [format]: pbr_model ?? model ?? base_model },
    preview: rendered_image,
  })
}

/** Tripo's own codes, where the status alone would mislead. */
const ERROR_CLASSES: Record<number, ErrorClass> = {
  2000: 429, // too many at a time
  2008: 'policy',
  2010: 402, // no credits; returned as a 403
  2014: 503, // its own content check is down
}

const classifyError = classifyByCode(ERROR_CLASSES)
