/** The client of an order API with JSON: submits one order, polls it, and turns error responses into the gateway's errors. */
import type { ProviderKind } from '../../config/schema/provider-kinds.ts'
import { asRecord, isRecord, type JsonRecord, memberOf, parseJson } from '../../kit/json.ts'
import { scrub } from '../../protocols/shared/provider-error.ts'
import { GatewayError } from '../../spec/error.ts'
import type { FailCode, Json } from '../../spec/task.ts'
import type { OrderCall, TaskProgress } from '../provider.ts'
import { type AdapterParts, type ProviderSettings, settingsOf } from '../settings.ts'
import { type ErrorClassifier, orderError } from './order-error.ts'
import { hasNoList, listSince, type Page, type PagePlace } from './order-list.ts'
import { foreignOperation, POLICY_WORDING } from './order-messages.ts'

type OrderApi = {
  kind: ProviderKind
  /** The provider's base URL with its version, unless the configuration has one. */
  base_url?: string
  /** The environment variable of the key, when the configuration has none. */
  key_env?: string
  /** More headers, created for each request, since keys may expire. */
  headers?: () => Record<string, string>
  classifyError?: ErrorClassifier
}

export type Bytes = { bytes: Uint8Array<ArrayBuffer>; content_type: string }

type OrderRequest = {
  /** Below the base URL, with its slash. */
  path: string
  body: JsonRecord | Bytes
  headers?: Record<string, string>
  signal: AbortSignal
  /** `model`: the provider's own name, for messages. `beforeSend`: awaited right before the order is written. */
  call: { model: string; beforeSend?: (() => Promise<void>) | undefined }
}

export type OrderClient = ReturnType<typeof createOrderClient>

/** Throws an Error that names the provider when its configuration cannot work. */
export function createOrderClient(parts: AdapterParts, dialect: OrderApi) {
  const { id, transport, clock, log } = parts
  const settings = settingsWith(parts, dialect)
  const headers = () => ({ ...dialect.headers?.(), ...settings.headers })
  const reading = createResponseReader(id)

  type Sent = { method: 'GET' | 'POST' | 'PUT' | 'DELETE'; path: string; signal: AbortSignal; order?: OrderRequest }

  async function exchange({ method, path, signal, order }: Sent) {
    const form = order && isBytes(order.body) ? order.body : undefined
    const answer = await transport.send({
      provider: id,
      url: /^https?:/.test(path) ? path : settings.base_url + path,
      method,
      headers: {
        accept: 'application/json',
        'user-agent': 'gatehouse',
        ...(order ? { 'content-type': form?.content_type ?? 'application/json', ...order.headers } : {}),
        ...headers(),
      },
      ...(order
        ? { body: form?.bytes ?? JSON.stringify(order.body), order: true, beforeSend: order.call.beforeSend }
        : {}),
      signal,
      timeouts: settings.timeouts,
      stream: false,
    })
    const { status } = answer
    const isGood = status >= 200 && status < 300
    const payload = parseJson(isGood ? await answer.text() : await answer.excerpt())
    return { status, payload, headers: answer.headers }
  }

  /** Returns a response with status 2xx; throws for any other. */
  async function send(sent: Sent) {
    const response = await exchange(sent)
    const { status, payload } = response
    const errorClass = dialect.classifyError?.(payload, status)
    if (status >= 200 && status < 300 && errorClass === undefined) return response
    const model = sent.order?.call.model
    const order_kind = sent.order && dialect.kind
    const error = orderError({ provider: id, model, ...response, errorClass, order_kind, clock })
    if (error.status >= 500)
      log.warn('upstream error response', { provider: id, upstream_status: status, error: error.code })
    throw error
  }

  return {
    ...reading,
    base_url: settings.base_url,
    /** The headers that hold the key. */
    headers,
    /** Sends an order. A GatewayError has `accepted: 'no'` when the provider certainly did not accept it. */
    async submit(order: OrderRequest) {
      return reading.readObject(await send({ method: 'POST', path: order.path, signal: order.signal, order }))
    },
    /**
     * Polls a task. Everything but a readable JSON object with status 2xx is an error that says nothing about the task. When
     * the provider says when to poll again, the result has it.
     */
    async poll(path: string, signal: AbortSignal, read: (answer: JsonRecord) => TaskProgress) {
      const answer = await send({ method: 'GET', path, signal })
      const progress = read(reading.readObject(answer))
      const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
      if (progress.status === 'SUCCESS' || progress.status === 'FAILURE' || !(seconds > 0)) return progress
      return { ...progress, retry_after_seconds: seconds }
    },
    /**
     * Returns any response, errors too: some providers report by an error status how a task has ended. `path` may be a
     * whole URL, for an API at another host of the vendor.
     */
    async get(path: string, signal: AbortSignal) {
      const { status, payload } = await exchange({ method: 'GET', path, signal })
      return { status, payload }
    },
    /**
     * The orders of a list since then, newest first; undefined: the upstream has no such list. `read` returns undefined for
     * what is no page of it.
     */
    listOrders: (
      since: number,
      signal: AbortSignal,
      { path, read }: { path(place: PagePlace): string; read(payload: unknown): Page | undefined },
    ) =>
      listSince(
        since,
        async (place) => {
          const { status, payload } = await exchange({ method: 'GET', path: path(place), signal })
          if (hasNoList(status)) return undefined
          const page = status === 200 ? read(payload) : undefined
          if (!page) throw reading.unreadable(status)
          return page
        },
        () => reading.unreadable(200),
      ),
    /** Sends a command about a task, such as a cancel; resolves when the provider has agreed. */
    async send(method: 'DELETE' | 'POST' | 'PUT', path: string, signal: AbortSignal) {
      await send({ method, path, signal })
    },
  }
}

function settingsWith(parts: AdapterParts, { base_url, key_env }: OrderApi): ProviderSettings {
  const { id, config, environment } = parts
  const key = config.key ?? (key_env === undefined ? undefined : environment?.[key_env])
  // Behind a base URL of the operator's own, a proxy may add the key.
  if (!key && key_env !== undefined && config.base_url === undefined) {
    throw new Error(`providers.${id} needs a key: write key, or set ${key_env} in the environment`)
  }
  const home = config.base_url ?? base_url
  return settingsOf({
    ...parts,
    config: { ...config, ...(home === undefined ? {} : { base_url: home }), ...(key ? { key } : {}) },
  })
}

/** Reads the parts that every order API has in its responses. */
function createResponseReader(id: string) {
  const upstream = `The upstream "${id}"`
  const notUnderstood = (what: string, detail = {}) =>
    new GatewayError('bad_upstream_response', `${upstream} ${what}.`, detail)
  return {
    readObject({ status, payload }: { status: number; payload: unknown }): JsonRecord {
      if (isRecord(payload)) return payload
      throw notUnderstood('answered with something that is not a JSON object', { upstream_status: status })
    },
    /** The error for a response with this status that has none of the expected content. */
    unreadable: (status: number) => notUnderstood(`answered with HTTP ${status}`, { upstream_status: status }),
    /** The id of an order, the first that there is; without one the response is unreadable, and the order may be accepted. */
    readId(...candidates: unknown[]): string {
      const found = candidates.find((value) => (typeof value === 'string' && value !== '') || typeof value === 'number')
      if (found !== undefined) return String(found)
      throw notUnderstood('accepted an order without returning the id of a task')
    },
    /** The status of a task as text; without one the response is unreadable. */
    readStatus(value: unknown): string {
      if (typeof value === 'string' && value !== '') return value
      throw notUnderstood('answered without the status of the task')
    },
    /** The failure of a task; the provider's message is scrubbed, and searched for a rejection of the content. */
    failure(fail_code: FailCode, reason: unknown): TaskProgress {
      const message = typeof reason === 'string' ? scrub(reason) : ''
      const isRefused = fail_code === 'generation_failed' && POLICY_WORDING.test(message)
      return {
        status: 'FAILURE',
        fail_code: isRefused ? 'content_policy_violation' : fail_code,
        fail_reason: message || `${upstream} failed without a reason.`,
      }
    },
    /** The success of a task with its files; without a file it has failed. */
    success(urls: unknown[]): TaskProgress {
      const outputs = urls.flatMap((url) => (typeof url === 'string' && isHttpUrl(url) ? [{ url }] : []))
      if (outputs.length > 0) return { status: 'SUCCESS', outputs }
      return {
        status: 'FAILURE',
        fail_code: 'no_output',
        fail_reason: `${upstream} reported success, but returned no file.`,
      }
    },
  }
}

type TaskApi<Order> = {
  /** The path below which tasks are polled and canceled. */
  tasks: string
  order(call: OrderCall<Order>): { path: string; body: JsonRecord }
  read(task: JsonRecord): TaskProgress
}

/** The methods of an API that accepts no idempotency key, returns the `id` of a task, and cancels it by DELETE. */
export const taskMethods = <Order>(client: OrderClient, { tasks, order, read }: TaskApi<Order>) => ({
  resubmit: 'unsafe' as const,
  awaits_before_send: true as const,
  async start(call: OrderCall<Order>, signal: AbortSignal) {
    const response = await client.submit({ ...order(call), signal, call })
    return { operation: { id: client.readId(response.id) } }
  },
  async status(operation: Json, signal: AbortSignal) {
    return client.poll(withId(tasks, operationId(operation)), signal, read)
  },
  async cancel(operation: Json, signal: AbortSignal) {
    await client.send('DELETE', withId(tasks, operationId(operation)), signal)
  },
})

/** The id in an operation that the gateway has stored. */
export function operationId(operation: Json): string {
  const id = memberOf(operation, 'id')
  if (typeof id === 'string' && id !== '') return id
  throw foreignOperation()
}

/** By which of several ways it was ordered, as its operation has it. */
export function wayOf<Way extends string>(operation: Json, ways: readonly Way[]): Way {
  const way = ways.find((known) => isRecord(operation) && operation.way === known)
  if (way) return way
  throw foreignOperation()
}

/** The `data` of a response. */
export const dataOf = (response: JsonRecord): JsonRecord => asRecord(response.data)

/** A path with an id of the provider appended. */
export const withId = (path: string, id: string): string => `${path}/${encodeURIComponent(id)}`

export const isHttpUrl = (value: string): boolean => /^https?:\/\//i.test(value)

const isBytes = (body: OrderRequest['body']): body is Bytes => 'bytes' in body && body.bytes instanceof Uint8Array
