/** 3D models at fal: its queue API in front of many companies' models, called directly since its package has no 3D. */
import { KINDS } from '../../config/schema/provider-kinds.ts'
import { asRecord, isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json } from '../../spec/task.ts'
import { THREE_D_FORMATS, THREE_D_TYPES, type ThreeDFormat } from '../../spec/three-d-request.ts'
import { FAL_LIST, falListUrl, readFalList } from '../ai-sdk/vendors/fal-list.ts'
import { classifyFalError, failureOf, QUEUE_URL } from '../ai-sdk/vendors/fal-queue.ts'
import { messageIn } from '../ai-sdk/vendors/response-values.ts'
import { createOrderClient, isHttpUrl, type OrderClient } from '../orders/order-client.ts'
import { withExtras } from '../orders/order-fields.ts'
import { foreignOperation } from '../orders/order-messages.ts'
import type { TaskProgress, ThreeDCall, ThreeDProvider } from '../provider.ts'
import { type AdapterParts, firstOf } from '../settings.ts'
import { falModelsFor } from './fal-models.ts'
import { assertSupportedThreeDFields, endingIn, modelOutputs } from './three-d-outputs.ts'

/** Deeper than any of its models puts a file. */
const MAX_DEPTH = 4
/** The names under which its models return a preview image. */
const PREVIEW = /thumbnail|preview|rendered_image/

/** Throws an Error that names the provider when its configuration cannot work. */
export function createFalThreeD(parts: AdapterParts): ThreeDProvider {
  const { id, config, environment = {} } = parts
  const { key: own, preset: _, ...rest } = config
  const key = own ?? firstOf(environment, KINDS.fal.environment)
  const client = createOrderClient(
    { ...parts, config: rest, environment: {} },
    {
      kind: 'fal',
      base_url: QUEUE_URL,
      ...(key ? { headers: () => ({ authorization: `Key ${key}` }) } : {}),
      classifyError: classifyFalError,
    },
  )
  return {
    // It accepts no idempotency key.
    resubmit: 'unsafe',
    awaits_before_send: true,
    async start(call, signal) {
      const body = writeOrder(call, id)
      const response = await client.submit({ path: `/${call.model}`, body, signal, call })
      const request_id = client.readId(response.request_id)
      return { operation: { path: pathOf(response, call.model, request_id), format: call.request.format } }
    },
    async status(operation, signal) {
      const { path, format } = readOperation(operation)
      let queueError: unknown
      const progress = await client.poll(`${path}/status`, signal, (response) => {
        queueError = response.error
        return readStatus(response, client)
      })
      if (progress.status !== 'SUCCESS') return progress
      return resultOf({ ...(await client.get(path, signal)), queueError }, format, client)
    },
    orderList: {
      ...FAL_LIST,
      since(call, since, signal) {
        const { model } = call
        const format = call.request.format
        const base = config.base_url === undefined ? undefined : client.base_url
        let url = falListUrl({ model, since, base })
        // The URL has the time already, and the list is sorted by the end of requests.
        return client.listOrders(Number.NEGATIVE_INFINITY, signal, {
          path: () => url,
          read(payload) {
            const page = readFalList(payload, { model, url }, ({ path }) => ({ path, format }))
            url = page?.next ?? ''
            return page && { orders: page.orders, isLast: page.next === undefined }
          },
        })
      },
      fieldsOf: (call) => ({ always: { json_input: writeOrder(call, id) } }),
    },
    async cancel(operation, signal) {
      await client.send('PUT', `${readOperation(operation).path}/cancel`, signal)
    },
  }
}

function writeOrder({ model, request }: ThreeDCall, upstream: string): JsonRecord {
  const row = falModelsFor(model)
  assertSupportedThreeDFields(request, upstream, row.fields)
  if (row.format === undefined) return withExtras(row.encode(request), request.metadata, 'fal')
  return withExtras({ ...row.encode(request), [row.format]: request.format }, request.metadata, 'fal')
}

/**
 * The path on which a request is polled comes from fal: it omits what follows the app in the model's name. Only the path of
 * the URL is used, so the key goes nowhere but to fal's own host.
 */
function pathOf(response: JsonRecord, model: string, request_id: string): string {
  const [owner = '', app = ''] = model.split('/')
  const path = typeof response.response_url === 'string' ? URL.parse(response.response_url)?.pathname : undefined
  if (path?.startsWith(`/${owner}/`) && path.endsWith(`/requests/${request_id}`)) return path
  return `/${owner}/${app}/requests/${encodeURIComponent(request_id)}`
}

function readOperation(operation: Json): { path: string; format: ThreeDFormat } {
  const { path, format } = asRecord(operation)
  const requested = THREE_D_FORMATS.find((one) => one === format)
  if (typeof path === 'string' && path.startsWith('/') && requested) return { path, format: requested }
  throw foreignOperation()
}

/** SUCCESS here only means that there is a result, which may be an error. */
function readStatus(response: JsonRecord, client: OrderClient): TaskProgress {
  switch (client.readStatus(response.status)) {
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

/** `queueError`: the queue's own error for a request that failed. */
type Result = { status: number; payload: unknown; queueError: unknown }

/** A result that is an error of the model ends the task; an error of the queue says nothing about it. */
function resultOf({ status, payload, queueError }: Result, format: ThreeDFormat, client: OrderClient): TaskProgress {
  if (status >= 200 && status < 300) return filesIn(client.readObject({ status, payload }), format, client)
  const fault = failureOf(payload, status, messageIn(payload))
  if (fault && 'failure' in fault) {
    return client.failure(fault.failure.fail_code ?? 'generation_failed', fault.failure.reason)
  }
  if (typeof queueError === 'string' && queueError !== '') return client.failure('upstream_error', queueError)
  throw new GatewayError('bad_upstream_response', `The upstream's result could not be read (${status}).`, {
    upstream_status: status,
  })
}

type Found = { name: string; url: string; content_type: string }

function filesIn(result: JsonRecord, format: ThreeDFormat, client: OrderClient): TaskProgress {
  const files = filesOf(result, '', 0)
  const models: { [format in ThreeDFormat]?: string } = {}
  // Of two files of one format the first is the final one: intermediate files follow it.
  for (const file of files) {
    const kind = formatOf(file)
    if (kind !== undefined && !PREVIEW.test(file.name)) models[kind] ??= file.url
  }
  const pictures = files.filter(({ name, content_type, url }) => isPicture(content_type, url) && !PREVIEW.test(name))
  const preview = files.find(({ name, content_type, url }) => isPicture(content_type, url) && PREVIEW.test(name))
  const material = files.find(({ url }) => endingIn(url) === 'mtl')
  const archive = files.find(({ url }) => endingIn(url) === 'zip')
  // Some models return several files as one archive.
  if (models[format] === undefined && archive && format !== 'glb') models[format] = archive.url
  return modelOutputs(client, {
    format,
    models,
    material: material?.url,
    pictures: pictures.map(({ url }) => url),
    preview: preview?.url,
  })
}

/** Returns every member that is a file, in order: their places differ from model to model. */
function filesOf(value: unknown, name: string, depth: number): Found[] {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return []
  if (isRecord(value) && typeof value.url === 'string' && isHttpUrl(value.url)) {
    return [{ name, url: value.url, content_type: typeof value.content_type === 'string' ? value.content_type : '' }]
  }
  return Object.entries(value).flatMap(([member, one]) => filesOf(one, `${name}.${member}`, depth + 1))
}

/** Decides by the extension of the URL, else by the content type, else by the member's name. */
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
