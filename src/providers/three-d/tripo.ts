/** Tripo: one order makes a GLB; any other format is a second order, which converts what the first has made. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json } from '../../spec/task.ts'
import type { ThreeDFormat, ThreeDOrder } from '../../spec/three-d-request.ts'
import { createOrderClient, isHttpUrl, type OrderClient, operationId, withId } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import { toMediaUrl, unsupportedValue, withExtras, withoutEmpty } from '../orders/order-fields.ts'
import type { Provider, TaskProgress, ThreeDCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { neverSent } from '../upstream/transport-failure.ts'
import { assertSupportedThreeDFields, outputFiles } from './three-d-outputs.ts'

/** In this order: from the front, the left, the back, the right. */
const VIEWS = 4
/** Decided by fields in other words, or by us. */
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
  const vendor = createOrderClient(parts, {
    kind: 'tripo',
    base_url: 'https://api.tripo3d.ai/v2/openapi',
    key_env: 'TRIPO_API_KEY',
    classifyError: judge,
  })

  /** A file by its address as it is; one that came as data is sent ahead, which costs nothing. */
  async function fileOf(value: string, param: string, { model, signal }: { model: string; signal: AbortSignal }) {
    if (isHttpUrl(value)) return { type: typeOf(URL.parse(value)?.pathname ?? ''), url: value }
    try {
      if (!parts.media)
        throw unsupportedValue(param, `The upstream "${parts.id}" takes "${param}" only by its address.`)
      const { bytes, content_type } = await parts.media.read(toMediaUrl(value), signal, param)
      const type = content_type.replace('image/', '').replace('jpeg', 'jpg')
      const form = new FormData()
      form.set('file', new File([new Uint8Array(bytes)], `image.${type}`, { type: content_type }))
      const answer = await vendor.submit({ path: '/upload/sts', body: await bytesOf(form), model, signal })
      return { type, file_token: vendor.readId(dataOf(answer).image_token) }
    } catch (error) {
      // Whatever became of the file, nothing was ordered.
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
    if (images.length > VIEWS) {
      throw unsupportedValue(
        'images',
        `The upstream "${parts.id}" takes at most ${VIEWS} images, not ${images.length}.`,
      )
    }
    const [only = image ?? '', second] = images
    if (second === undefined) {
      const file = await fileOf(only, image === undefined ? 'images[0]' : 'image', to)
      return { type: 'image_to_model', file, ...commonOf(model, request) }
    }
    const files: JsonRecord[] = []
    for (const [index, one] of images.entries()) files.push(await fileOf(one, `images[${index}]`, to))
    // A side that is not shown has an empty place.
    while (files.length < VIEWS) files.push({})
    return { type: 'multiview_to_model', files, ...commonOf(model, request) }
  }

  return {
    id: parts.id,
    kind: 'tripo',
    threeD: {
      // It takes no key by which a repeated order would be known.
      resubmit: 'unsafe',
      async start(call, signal) {
        const written = await writeOrder(call, signal)
        const body = withExtras(written, call.request.metadata, 'tripo', DECIDED)
        const answer = await vendor.submit({ path: '/task', body, model: call.model, signal })
        const { format, target_polycount: polycount } = call.request
        const operation = { id: vendor.readId(dataOf(answer).task_id), model: call.model, format }
        // A model with quads comes as FBX.
        if (format === 'glb' || (format === 'fbx' && body.quad === true)) return { operation }
        return { operation: { ...operation, convert: withoutEmpty({ face_limit: polycount }) as Json } }
      },
      async status(operation, signal) {
        const progress = await ask(operation, signal)
        const { first } = isRecord(operation) ? operation : {}
        if (progress.status !== 'SUCCESS' || typeof first !== 'string') return progress
        // The file before its conversion, and the view of it, belong to the first task: its links are fresh when asked.
        const before = await ask({ id: first, format: 'glb' }, signal)
        if (before.status !== 'SUCCESS') return progress
        return { status: 'SUCCESS', outputs: [...progress.outputs, ...before.outputs] }
      },
      async proceed(operation, _, signal) {
        const { model, format, convert } = isRecord(operation) ? operation : {}
        const id = operationId(operation)
        const wanted = { type: 'convert_model', format: String(format).toUpperCase(), original_model_task_id: id }
        const body = { ...wanted, ...(isRecord(convert) ? convert : {}) }
        const answer = await vendor.submit({ path: '/task', body, model: String(model), signal })
        return { operation: { id: vendor.readId(dataOf(answer).task_id), model, format, first: id } as Json }
      },
    },
  }

  function ask(operation: Json, signal: AbortSignal): Promise<TaskProgress> {
    const path = withId('/task', operationId(operation))
    return vendor.poll(path, signal, (answer) => readTask(dataOf(answer), operation, vendor))
  }
}

/** Its maps are on by default, and bring the texture along: who wants no texture wants none of them. */
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
  const written = new Response(form)
  const content_type = written.headers.get('content-type') ?? ''
  return { bytes: new Uint8Array(await written.arrayBuffer()), content_type }
}

function readTask(task: JsonRecord, operation: Json, vendor: OrderClient): TaskProgress {
  const { convert, first, format } = isRecord(operation) ? operation : {}
  const reason = task.error_msg
  switch (vendor.readStatus(task.status)) {
    case 'queued':
      return { status: 'QUEUED' }
    case 'running':
      return typeof task.progress === 'number' && first === undefined
        ? { status: 'IN_PROGRESS', progress: task.progress }
        : { status: 'IN_PROGRESS' }
    case 'success':
      return convert === undefined ? filesIn(task, format as ThreeDFormat, vendor) : { status: 'PROCEED' }
    case 'failed':
      return vendor.failure('generation_failed', reason)
    case 'banned':
      return vendor.failure('content_policy_violation', reason ?? 'The upstream refused the content.')
    case 'expired':
      return vendor.failure('generation_failed', reason ?? 'The task expired at the upstream.')
    case 'cancelled':
      return vendor.failure('canceled', 'The task was canceled at the upstream.')
    default:
      return {}
  }
}

function filesIn(task: JsonRecord, format: ThreeDFormat, vendor: OrderClient): TaskProgress {
  const { pbr_model, model, base_model, rendered_image } = isRecord(task.output) ? task.output : {}
  const outputs = outputFiles({
    format,
    models: { [format]: pbr_model ?? model ?? base_model },
    preview: rendered_image,
  })
  return outputs.length > 0 ? { status: 'SUCCESS', outputs } : vendor.success([])
}

const dataOf = (answer: JsonRecord): JsonRecord => (isRecord(answer.data) ? answer.data : {})

/** The vendor's own codes, where the status alone would mislead. */
const MEANINGS: Record<number, number | 'policy'> = {
  2000: 429, // too many at a time
  2008: 'policy',
  2010: 402, // no credits; comes as a 403
  2014: 503, // its own check of the content is down
}

const judge: ErrorClassifier = (payload, status) => {
  const code = isRecord(payload) ? Number(payload.code ?? 0) : 0
  if (code === 0 || Number.isNaN(code)) return undefined
  // A code that is not known, in an answer that went well otherwise: nobody knows what it means.
  return MEANINGS[code] ?? (status < 300 ? 502 : undefined)
}
