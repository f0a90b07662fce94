/** One adapter for every vendor of videos that has an AI SDK package with `doStart` and `doStatus`. */
import { isRecord, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Json, JsonObject } from '../../../spec/task.ts'
import type { VideoOrder } from '../../../spec/video-request.ts'
import type { TaskProgress, VideoCall, VideoProvider } from '../../provider.ts'
import { neverSent } from '../../upstream/transport-failure.ts'
import { asFetch, type Wire } from '../../upstream/transport-fetch.ts'
import { type Connection, withoutUnusedKey } from '../connection.ts'
import { createPackageErrors, issuesIn, type UpstreamResponse } from '../errors.ts'
import { assertNotIgnored, optionsOf } from './call-options.ts'
import { packageOrderList } from './order-list.ts'
import { progressOf } from './task-progress.ts'
import type { VideoFamily, VideoModel, VideoModelOptions, VideoModelStatus } from './video-family.ts'
import { fetchAsDataUri } from './video-file.ts'

export function createAiSdkVideo(connection: Connection<VideoFamily, VideoModel>): VideoProvider {
  const { id, config, transport, clock, log, media, vendor, key, targetUrl, route, unroute } = connection
  const errors = createPackageErrors({ id, clock, log })

  async function open(model: string, signal: AbortSignal, order?: Pick<VideoCall, 'beforeSend'>) {
    const orders = order !== undefined
    const { fetch, wire } = await connection.fetchFor({ model, signal, orders, beforeSend: order?.beforeSend })
    return { model: await connection.model(model, fetch), wire }
  }

  /** The last response, and the error that it is. `model` is set for an order. */
  function responseIn(wire: Wire, model?: string) {
    if (!wire.response) return undefined
    const response = { ...wire.response, payload: parseJson(wire.response.text) }
    return { response, error: errorIn(response, model) }
  }

  function errorIn(response: UpstreamResponse, model: string | undefined): GatewayError | undefined {
    const order_kind = model === undefined ? undefined : vendor.kind
    const errorClass = vendor.classifyError?.(response.payload, response.status)
    const error = errors.rejected(response, { model, errorClass, order_kind })
    if (error && error.status >= 500) {
      log.warn('upstream refused', { provider: id, upstream_status: response.status, error: error.code })
    }
    return error
  }

  /** Runs the package without sending the order, to learn what it would ignore and what it does not accept. */
  async function dryRun({ model }: VideoCall, order: VideoOrder, options: VideoModelOptions): Promise<void> {
    let isSent = false
    const accept = asFetch(async () => {
      isSent = true
      return Response.json(vendor.acceptedResponse)
    })
    const started = await startOf(await connection.model(model, accept), options).catch((thrown: unknown) => {
      if (isSent) return undefined // it could not read our response: the vendor's own will tell
      const own = { name: `metadata.${vendor.kind}`, param: 'metadata' }
      throw errors.invalidOptions(issuesIn(thrown) ?? [], { own, accepted: 'no' })
    })
    for (const warning of started?.warnings ?? []) {
      if (warning.type === 'unsupported') assertNotIgnored(warning, order, vendor, id)
      const feature = 'feature' in warning ? warning.feature : warning.type
      log.info('upstream order changed by its package', { provider: id, feature })
    }
  }

  async function encode(call: VideoCall, signal: AbortSignal) {
    const order = await withBytes(call.request, signal)
    const { extras, ...common } = optionsOf({ order, vendor, model: call.model, config, upstream: id })
    const providerOptions = { [vendor.namespace]: extras }
    const options: VideoModelOptions = { ...common, providerOptions, abortSignal: signal }
    return { order, options }
  }

  async function start(call: VideoCall, signal: AbortSignal): Promise<{ operation: Json }> {
    const { order, options } = await encode(call, signal)
    await dryRun(call, order, options)
    const { model, wire } = await open(call.model, signal, call).catch(throwUnsent)
    try {
      const { operation } = await startOf(model, options)
      const error = responseIn(wire, call.model)?.error
      if (error) throw error
      return { operation: { model: call.model, operation: unrouted(operation) } }
    } catch (thrown) {
      throw startError(thrown, wire, call.model)
    }
  }

  function startError(thrown: unknown, wire: Wire, model: string): GatewayError {
    if (thrown instanceof GatewayError && !wire.failure) return thrown
    if (wire.failure) return wire.orderSent ? wire.failure : neverSent(wire.failure)
    const received = responseIn(wire, model)
    if (!received) return unsentError(thrown)
    if (received.error) return received.error
    const message = `The upstream "${id}" responded to an order without an operation.`
    return new GatewayError('bad_upstream_response', message, { upstream_status: received.response.status })
  }

  const unsentError = (thrown: unknown) =>
    thrown instanceof GatewayError ? neverSent(thrown) : errors.unsent(thrown, { accepted: 'no' })
  const throwUnsent = (thrown: unknown): never => {
    throw unsentError(thrown)
  }

  const unrouted = (operation: unknown): Json =>
    JSON.parse(JSON.stringify(operation ?? null), (_, value) => (typeof value === 'string' ? unroute(value) : value))

  async function status(stored: Json, signal: AbortSignal): Promise<TaskProgress> {
    const { name, operation } = readStored(stored, id)
    const { model, wire } = await open(name, signal)
    let result: VideoModelStatus | undefined
    try {
      if (!model.doStatus) throw foreignOperation(id)
      result = await model.doStatus({ operation, abortSignal: signal })
    } catch (thrown) {
      if (!wire.response || wire.failure) throw wire.failure ?? thrown
    }
    const received = responseIn(wire)
    if (!received) throw foreignOperation(id)
    return progressOf({ id, vendor, ...received, result, reroute: connection.reroute })
  }

  /** Fetches the media that are given by URL, where the vendor accepts only bytes. */
  async function withBytes(order: VideoOrder, signal: AbortSignal): Promise<VideoOrder> {
    if (vendor.media !== 'bytes') return order
    const change = async (value: string, field: 'image' | 'last_image' | 'images' | 'video') =>
      fetchAsDataUri(value, { media, field, signal }).catch(throwUnsent)
    const bytes: VideoOrder = { ...order }
    if (order.image) bytes.image = await change(order.image, 'image')
    if (order.last_image) bytes.last_image = await change(order.last_image, 'last_image')
    if (order.images) bytes.images = await Promise.all(order.images.map((image) => change(image, 'images')))
    return bytes
  }

  async function cancel(stored: Json, signal: AbortSignal): Promise<void> {
    const { name, operation } = readStored(stored, id)
    const request = vendor.cancel?.(operation)
    if (!request) throw new GatewayError('unsupported_parameter', `The upstream "${id}" does not support cancellation.`)
    const url = route(request.url)
    if (url === undefined) throw foreignOperation(id)
    // The package knows how the key is sent; no response to its query is needed for that.
    const headers = await headersOf(name, operation, signal)
    const { timeouts } = connection
    const { method } = request
    const answer = await transport.send({ provider: id, url, method, headers, signal, timeouts, stream: false })
    const payload = parseJson(await answer.excerpt())
    if (answer.status < 300) return
    throw errorIn({ status: answer.status, headers: answer.headers, payload }, undefined)
  }

  /** The headers with which the package would query the operation. */
  async function headersOf(model: string, operation: JsonObject, signal: AbortSignal): Promise<Record<string, string>> {
    let headers: Record<string, string> = {}
    const capture = asFetch(async (_, init) => {
      headers = Object.fromEntries(new Headers(init?.headers))
      return new Response('', { status: 503 })
    })
    const sdk = await connection.model(model, capture)
    await Promise.resolve(sdk.doStatus?.({ operation, abortSignal: signal })).catch(() => {}) // only its request matters
    return { ...withoutUnusedKey(headers), 'user-agent': 'gatehouse', ...connection.headers }
  }

  const orderList =
    vendor.orderList &&
    packageOrderList(connection, vendor.orderList, async (call, signal, capture) => {
      const { options } = await encode(call, signal)
      return startOf(await connection.model(call.model, capture), options)
    })

  return {
    // No vendor documents a key by which it recognises a repeated order.
    resubmit: 'unsafe',
    awaits_before_send: true,
    start,
    status,
    ...(vendor.cancel ? { cancel } : {}),
    ...(orderList ? { orderList } : {}),
    outputHeaders: (url) => vendor.outputHeaders?.(key, URL.parse(url)?.origin === new URL(targetUrl).origin) ?? {},
  }
}

async function startOf(model: VideoModel, options: VideoModelOptions) {
  if (!model.doStart) throw new GatewayError('internal_error', 'The package of this vendor cannot start a video.')
  return model.doStart(options)
}

const foreignOperation = (id: string) =>
  new GatewayError('internal_error', `The stored operation does not belong to the provider "${id}".`)

/** `{ model, operation }`: the package's own operation lacks the model, which some need for their URLs. */
function readStored(stored: Json, id: string): { name: string; operation: JsonObject } {
  if (!isRecord(stored) || typeof stored.model !== 'string' || !isRecord(stored.operation)) throw foreignOperation(id)
  return { name: stored.model, operation: stored.operation as JsonObject }
}
