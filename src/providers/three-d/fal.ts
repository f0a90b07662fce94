/** 3D models at fal: the queue before the models of many makers, spoken to as it is, for want of a package. */

import { KINDS } from '../../config/provider-kinds.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json } from '../../spec/task.ts'
import { THREE_D_FORMATS, THREE_D_TYPES, type ThreeDFormat } from '../../spec/three-d-request.ts'
import { classifyFalError, failureOf, QUEUE_URL } from '../ai-sdk/vendors/fal-queue.ts'
import { messageIn } from '../ai-sdk/vendors/response-values.ts'
import { createOrderClient, isHttpUrl, type OrderClient } from '../orders/order-client.ts'
import { withExtras } from '../orders/order-fields.ts'
import type { TaskProgress, ThreeDCall, ThreeDProvider } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import { makerOf } from './fal-models.ts'
import { assertSupportedThreeDFields, endingIn, outputFiles } from './three-d-outputs.ts'

/** Deeper than any of its models puts a file. */
const DEEPEST = 4
/** Under which names its models put a picture of what they have made. */
const PREVIEW = /thumbnail|preview|rendered_image/

/** Throws an Error that names the provider when its configuration cannot work. */
export function createFalThreeD(parts: AdapterParts): ThreeDProvider {
  const { id, config, environment = {} } = parts
  const { key: own, preset: _, ...rest } = config
  const key = own ?? KINDS.fal.environment.map((name) => environment[name]).find((value) => value)
  const vendor = createOrderClient(
    { ...parts, config: rest, environment: {} },
    {
      kind: 'fal',
      base_url: QUEUE_URL,
      ...(key ? { headers: () => ({ authorization: `Key ${key}` }) } : {}),
      classifyError: classifyFalError,
    },
  )
  return {
    // It takes no key by which a repeated order would be known.
    resubmit: 'unsafe',
    async start(call, signal) {
      const body = writeOrder(call, id)
      const answer = await vendor.submit({ path: `/${call.model}`, body, model: call.model, signal })
      const request_id = vendor.readId(answer.request_id)
      return { operation: { path: pathOf(answer, call.model, request_id), format: call.request.format } }
    },
    async status(operation, signal) {
      const { path, format } = known(operation)
      let complaint: unknown
      const progress = await vendor.poll(`${path}/status`, signal, (answer) => {
        complaint = answer.error
        return readStatus(answer, vendor)
      })
      if (progress.status !== 'SUCCESS') return progress
      return resultOf({ ...(await vendor.get(path, signal)), complaint }, format, vendor)
    },
    async cancel(operation, signal) {
      await vendor.send('PUT', `${known(operation).path}/cancel`, signal)
    },
  }
}

function writeOrder({ model, request }: ThreeDCall, upstream: string): JsonRecord {
  const maker = makerOf(model)
  assertSupportedThreeDFields(request, upstream, maker.takes)
  if (maker.format === undefined) return withExtras(maker.write(request), request.metadata, 'fal')
  return withExtras({ ...maker.write(request), [maker.format]: request.format }, request.metadata, 'fal')
}

/**
 * Where the request is asked for is said by the vendor: it leaves out what follows the model's app. Only its path is
 * kept, so that the key goes nowhere but to the vendor's own address.
 */
function pathOf(answer: JsonRecord, model: string, request_id: string): string {
  const [owner = '', app = ''] = model.split('/')
  const told = typeof answer.response_url === 'string' ? URL.parse(answer.response_url)?.pathname : undefined
  if (told?.startsWith(`/${owner}/`) && told.endsWith(`/requests/${request_id}`)) return told
  return `/${owner}/${app}/requests/${encodeURIComponent(request_id)}`
}

function known(operation: Json): { path: string; format: ThreeDFormat } {
  const { path, format } = isRecord(operation) ? operation : {}
  const wanted = THREE_D_FORMATS.find((one) => one === format)
  if (typeof path === 'string' && path.startsWith('/') && wanted) return { path, format: wanted }
  throw new GatewayError('internal_error', 'What was stored of the order is not of this kind of provider.')
}

/** Success here is only that there is a result, which may be an error. */
function readStatus(answer: JsonRecord, vendor: OrderClient): TaskProgress {
  switch (vendor.readStatus(answer.status)) {
    case 'IN_QUEUE':
      return { status: 'QUEUED' }
    case 'IN_PROGRESS':
      return { status: 'IN_PROGRESS' }
    case 'COMPLETED':
      return { status: 'SUCCESS', outputs: [] }
    default:
      return {}
  }
}

/** `complaint`: what the queue itself says of a request that did not end well. */
type Result = { status: number; payload: unknown; complaint: unknown }

/** A result that is an error of the model's own ends the task; one of the queue's says nothing of it. */
function resultOf({ status, payload, complaint }: Result, format: ThreeDFormat, vendor: OrderClient): TaskProgress {
  if (status >= 200 && status < 300) return filesIn(vendor.readObject({ status, payload }), format, vendor)
  const fault = failureOf(payload, status, messageIn(payload))
  if (fault && 'failure' in fault) {
    return vendor.failure(fault.failure.fail_code ?? 'generation_failed', fault.failure.reason)
  }
  if (typeof complaint === 'string' && complaint !== '') return vendor.failure('upstream_error', complaint)
  throw new GatewayError('bad_upstream_response', `The upstream's result could not be read (${status}).`, {
    upstream_status: status,
  })
}

type Found = { name: string; url: string; content_type: string }

function filesIn(result: JsonRecord, format: ThreeDFormat, vendor: OrderClient): TaskProgress {
  const files = filesOf(result, '', 0)
  const models: { [format in ThreeDFormat]?: string } = {}
  // Of two of one format the first is the finished one: what it was made of comes after it.
  for (const file of files) {
    const kind = formatOf(file)
    if (kind !== undefined && !PREVIEW.test(file.name)) models[kind] ??= file.url
  }
  const pictures = files.filter(({ name, content_type, url }) => isPicture(content_type, url) && !PREVIEW.test(name))
  const preview = files.find(({ name, content_type, url }) => isPicture(content_type, url) && PREVIEW.test(name))
  const material = files.find(({ url }) => endingIn(url) === 'mtl')
  const archive = files.find(({ url }) => endingIn(url) === 'zip')
  // Some makers pack a model that has several files.
  if (models[format] === undefined && archive && format !== 'glb') models[format] = archive.url
  const outputs = outputFiles({
    format,
    models,
    material: material?.url,
    pictures: pictures.map(({ url }) => url),
    preview: preview?.url,
  })
  return outputs.length > 0 ? { status: 'SUCCESS', outputs } : vendor.success([])
}

/** Their places differ from model to model: every member that is a file, in the order in which they stand. */
function filesOf(value: unknown, name: string, depth: number): Found[] {
  if (depth > DEEPEST || typeof value !== 'object' || value === null) return []
  if (isRecord(value) && typeof value.url === 'string' && isHttpUrl(value.url)) {
    return [{ name, url: value.url, content_type: typeof value.content_type === 'string' ? value.content_type : '' }]
  }
  return Object.entries(value).flatMap(([member, one]) => filesOf(one, `${name}.${member}`, depth + 1))
}

/** By the ending of its address, else by its type, else by its member's name. */
function formatOf({ name, url, content_type }: Found): ThreeDFormat | undefined {
  const ending = endingIn(url)
  const byEnding = THREE_D_FORMATS.find((format) => format === ending)
  if (byEnding || (ending !== undefined && ending !== 'bin')) return byEnding
  return THREE_D_FORMATS.find(
    (format) => THREE_D_TYPES[format] === content_type || new RegExp(`[._]${format}$`).test(name),
  )
}

const isPicture = (content_type: string, url: string): boolean =>
  content_type.startsWith('image/') || /^(png|jpe?g|webp)$/.test(endingIn(url) ?? '')
