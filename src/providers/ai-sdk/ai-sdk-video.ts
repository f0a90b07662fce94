/** One adapter for every vendor of videos that has an AI SDK package with `doStart` and `doStatus`. */
import { createGuardedFetch } from '../../kit/guarded-fetch.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import { scrub } from '../../protocols/provider-error.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json, JsonObject } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createMedia } from '../media.ts'
import { type ErrorClass, orderError } from '../orders/order-error.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import { neverSent } from '../upstream/transport-failure.ts'
import { asFetch, createTransportFetch, type Wire } from '../upstream/transport-fetch.ts'
import { accountOf, isOwn, moved } from './account.ts'
import { fetched } from './media.ts'
import { progressOf } from './progress.ts'
import type { AiSdkParts, AiSdkVendor, VideoModel, VideoModelOptions, VideoModelStatus } from './vendor.ts'
import { refuseUnheard, wantedOf } from './wanted.ts'

/** Throws an Error that names the provider when its configuration cannot work. */
export function createAiSdkVideo(parts: AiSdkParts, vendor: AiSdkVendor): Provider {
  const {
    id,
    config,
    transport,
    clock,
    log,
    media = createMedia({ guardedFetch: createGuardedFetch({ clock }) }),
  } = parts
  const account = accountOf(parts, vendor)
  const { base_url } = account

  /** The model of one call, and what it does on the wire. */
  async function open(model: string, signal: AbortSignal, orders: boolean) {
    const authorization = await vendor.authorize?.(signal)
    const { fetch, wire } = createTransportFetch({
      provider: id,
      transport,
      timeouts: account.timeouts,
      signal,
      isOrder: orders,
      route(asked) {
        const { url, headers } = vendor.send?.(asked, model) ?? asked
        const target = moved(url, vendor.home, base_url)
        if (!isOwn(target, account, vendor)) return undefined
        return { url: target, headers: { ...presented(headers), ...account.headers, ...authorization } }
      },
    })
    const make = await vendor.load({ key: account.key || UNUSED_KEY, fetch })
    return { model: make(model), wire }
  }

  /** An answer, read; and the refusal that it is. The model is named where one was ordered. */
  function heard(wire: Wire, ordered?: string) {
    if (!wire.response) return undefined
    const { status, headers, text } = wire.response
    const payload = parseJson(text)
    const meaning = vendor.judge?.(payload, status)
    const answer = { status, headers, payload }
    return { answer, refusal: status < 300 && meaning === undefined ? undefined : refusalOf(answer, meaning, ordered) }
  }

  type Answer = { status: number; headers: Headers; payload: unknown }
  function refusalOf(answer: Answer, meaning: ErrorClass | undefined, model: string | undefined): GatewayError {
    const order_kind = model === undefined ? undefined : vendor.kind
    const error = orderError({ provider: id, model, ...answer, errorClass: meaning, order_kind, clock })
    if (error.status >= 500) {
      log.warn('upstream refused', { provider: id, upstream_status: answer.status, error: error.code })
    }
    return error
  }

  /** Everything but the sending: what the package would ignore, and what it would not take, is known by this. */
  async function dryRun({ model }: VideoCall, order: VideoOrder, options: VideoModelOptions): Promise<void> {
    let isSent = false
    const make = await vendor.load({
      key: account.key || UNUSED_KEY,
      fetch: asFetch(async () => {
        isSent = true
        return Response.json(vendor.accepted)
      }),
    })
    const started = await startOf(make(model), options).catch((thrown: unknown) => {
      if (isSent) return undefined // it could not read our stand-in: the true answer will tell
      throw new GatewayError('invalid_value', `metadata.${vendor.kind} was not understood: ${faultsOf(thrown)}.`, {
        param: 'metadata',
        accepted: 'no',
      })
    })
    for (const warning of started?.warnings ?? []) {
      if (warning.type === 'unsupported') refuseUnheard(warning, order, vendor, id)
      log.info('upstream order changed by its package', {
        provider: id,
        feature: 'feature' in warning ? warning.feature : warning.type,
      })
    }
  }

  async function start(call: VideoCall, signal: AbortSignal): Promise<{ operation: Json }> {
    const order = await withBytes(call.request, signal)
    const { extras, ...words } = wantedOf({ order, vendor, model: call.model, config, upstream: id })
    const options: VideoModelOptions = {
      ...words,
      providerOptions: { [vendor.namespace]: extras },
      abortSignal: signal,
    }
    await dryRun(call, order, options)
    const { model, wire } = await open(call.model, signal, true).catch(beforeSending)
    try {
      const started = await startOf(model, options)
      const refusal = heard(wire, call.model)?.refusal
      if (refusal) throw refusal
      return { operation: { model: call.model, operation: atHome(started.operation) } }
    } catch (thrown) {
      throw startFailure(thrown, wire, call.model)
    }
  }

  function startFailure(thrown: unknown, wire: Wire, model: string): GatewayError {
    if (thrown instanceof GatewayError && !wire.failure) return thrown
    if (wire.failure) return wire.orderSent ? wire.failure : neverSent(wire.failure)
    const said = heard(wire, model)
    if (!said) return beforeSendingFailed(thrown)
    if (said.refusal) return said.refusal
    return new GatewayError(
      'bad_upstream_response',
      `The upstream "${id}" answered to an order with something that is no receipt.`,
      { upstream_status: said.answer.status },
    )
  }

  const beforeSendingFailed = (thrown: unknown) =>
    thrown instanceof GatewayError
      ? neverSent(thrown)
      : new GatewayError('internal_error', `The order for "${id}" could not be written.`, {
          accepted: 'no',
          cause: thrown,
        })
  const beforeSending = (thrown: unknown): never => {
    throw beforeSendingFailed(thrown)
  }

  /** Addresses of the vendor's own making are kept as the package knows them, wherever base_url may lead later. */
  const atHome = (operation: unknown): Json =>
    JSON.parse(JSON.stringify(operation ?? null), (_, value) =>
      typeof value === 'string' ? moved(value, base_url, vendor.home) : value,
    )

  async function status(stored: Json, signal: AbortSignal): Promise<TaskProgress> {
    const { name, operation } = readStored(stored, id)
    const { model, wire } = await open(name, signal, false)
    let result: VideoModelStatus | undefined
    try {
      if (!model.doStatus) throw noStatus(id)
      result = await model.doStatus({ operation, abortSignal: signal })
    } catch (thrown) {
      if (!wire.response || wire.failure) throw wire.failure ?? thrown
    }
    const said = heard(wire)
    if (!said) throw noStatus(id)
    return progressOf({ vendor, account, ...said, result })
  }

  /** Addresses become bytes where the vendor takes nothing else. */
  async function withBytes(order: VideoOrder, signal: AbortSignal): Promise<VideoOrder> {
    if (vendor.media !== 'bytes') return order
    const change = async (value: string, field: 'image' | 'last_image' | 'images' | 'video') =>
      fetched(value, { media, field, signal }).catch(beforeSending)
    const bytes: VideoOrder = { ...order }
    if (order.image) bytes.image = await change(order.image, 'image')
    if (order.last_image) bytes.last_image = await change(order.last_image, 'last_image')
    if (order.images) bytes.images = await Promise.all(order.images.map((image) => change(image, 'images')))
    return bytes
  }

  async function cancel(stored: Json, signal: AbortSignal): Promise<void> {
    const { name, operation } = readStored(stored, id)
    const told = vendor.cancel?.(operation)
    if (!told) throw new GatewayError('unsupported_parameter', `The upstream "${id}" cannot be told to stop.`)
    const target = moved(told.url, vendor.home, base_url)
    if (!isOwn(target, account, vendor)) throw noStatus(id)
    // The package knows how the key is presented: its answer to a question is not needed for that.
    const headers = await headersOf(name, operation, signal)
    const answer = await transport.send({
      provider: id,
      url: target,
      method: told.method,
      headers,
      signal,
      timeouts: account.timeouts,
      stream: false,
    })
    const payload = parseJson(await answer.excerpt())
    if (answer.status < 300) return
    const { headers: said, status: word } = answer
    throw refusalOf({ status: word, headers: said, payload }, vendor.judge?.(payload, word), undefined)
  }

  /** The headers with which the package would ask for the operation. */
  async function headersOf(model: string, operation: JsonObject, signal: AbortSignal): Promise<Record<string, string>> {
    let headers: Record<string, string> = {}
    const make = await vendor.load({
      key: account.key || UNUSED_KEY,
      fetch: asFetch(async (_, init) => {
        headers = Object.fromEntries(new Headers(init?.headers))
        return new Response('', { status: 503 })
      }),
    })
    await make(model)
      .doStatus?.({ operation, abortSignal: signal })
      .then(
        () => {},
        () => {},
      )
    return { ...presented(headers), 'user-agent': 'gatehouse', ...account.headers }
  }

  return {
    id,
    kind: vendor.kind,
    video: {
      // None of them documents a key by which a repeated order would be known.
      resubmit: 'unsafe',
      start,
      status,
      ...(vendor.cancel ? { cancel } : {}),
      outputHeaders: (url) =>
        vendor.outputHeaders?.(account.key, URL.parse(url)?.origin === new URL(base_url).origin) ?? {},
    },
  }
}

/** Packages look into the process's environment for a key when they are given none. */
const UNUSED_KEY = 'gatehouse-has-no-key'

const presented = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => !value.includes(UNUSED_KEY)))

async function startOf(model: VideoModel, options: VideoModelOptions) {
  if (!model.doStart) throw new GatewayError('internal_error', 'The package of this vendor cannot start a video.')
  return model.doStart(options)
}

const noStatus = (id: string) =>
  new GatewayError('internal_error', `What was stored of the order is not of the provider "${id}".`)

/** `{ model, operation }`: the package's own operation lacks the model, by which some build their addresses. */
function readStored(stored: Json, id: string): { name: string; operation: JsonObject } {
  if (!isRecord(stored) || typeof stored.model !== 'string' || !isRecord(stored.operation)) throw noStatus(id)
  return { name: stored.model, operation: stored.operation as JsonObject }
}

/** Which of a vendor's own fields a package did not take; it quotes the values, which may be large or private. */
function faultsOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined
  const issues = isRecord(cause) && Array.isArray(cause.issues) ? cause.issues.filter(isRecord) : []
  const faults = issues.map((issue) => `${Array.isArray(issue.path) ? issue.path.join('.') : ''}: ${issue.message}`)
  return scrub(faults.join('; ') || 'its fields do not fit together').slice(0, 300)
}
