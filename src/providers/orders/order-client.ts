/** How a vendor of orders is spoken to that takes and gives JSON: one order, many questions, its refusals in our words. */

import type { ProviderKind } from '../../config/provider-kinds.ts'
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { scrub } from '../../protocols/provider-error.ts'
import { GatewayError } from '../../spec/error.ts'
import type { FailCode, Json } from '../../spec/task.ts'
import type { TaskProgress } from '../provider.ts'
import { type AdapterParts, type ProviderSettings, settingsOf } from '../settings.ts'
import { type ErrorClassifier, orderError } from './order-error.ts'

/** How one vendor differs. */
type OrderApi = {
  kind: ProviderKind
  /** Where the vendor is, with the version, unless the configuration says otherwise. */
  base_url?: string
  /** The environment variable of the key, when the configuration has none. */
  key_env?: string
  /** Further headers, made anew for each request, since keys may expire. */
  headers?: () => Record<string, string>
  classifyError?: ErrorClassifier
}

export type Bytes = { bytes: Uint8Array<ArrayBuffer>; content_type: string }

type OrderRequest = {
  /** Below the base URL, with its slash. */
  path: string
  body: JsonRecord | Bytes
  headers?: Record<string, string>
  /** The vendor's own name of the model, for messages. */
  model: string
  signal: AbortSignal
}

export type OrderClient = {
  base_url: string
  /** Sends an order. A GatewayError has `accepted: 'no'` when the vendor certainly did not take it. */
  submit(request: OrderRequest): Promise<JsonRecord>
  /**
   * Asks for a task. Everything but a JSON object with status 2xx that can be read is an error that says nothing of the
   * task. When the vendor says when to ask again, that is handed on.
   */
  poll(path: string, signal: AbortSignal, read: (answer: JsonRecord) => TaskProgress): Promise<TaskProgress>
  /** What the vendor answers, refusals too: for those that say by them how a task has ended. */
  get(path: string, signal: AbortSignal): Promise<{ status: number; payload: unknown }>
  /** Tells the vendor something of a task; resolves when it has agreed. */
  send(method: 'DELETE' | 'POST' | 'PUT', path: string, signal: AbortSignal): Promise<void>
  /** The headers that hold the key. */
  headers(): Record<string, string>
} & ResponseReader

/** Throws an Error that names the provider when its configuration cannot work. */
export function createOrderClient(parts: AdapterParts, dialect: OrderApi): OrderClient {
  const { id, transport, clock, log } = parts
  const settings = settingsWith(parts, dialect)
  const headers = () => ({ ...dialect.headers?.(), ...settings.headers })
  const reading = createResponseReader(id)

  type Sent = { method: 'GET' | 'POST' | 'PUT' | 'DELETE'; path: string; signal: AbortSignal; order?: OrderRequest }

  async function exchange({ method, path, signal, order }: Sent) {
    const form = order && isBytes(order.body) ? order.body : undefined
    const answer = await transport.send({
      provider: id,
      url: settings.base_url + path,
      method,
      headers: {
        accept: 'application/json',
        'user-agent': 'gatehouse',
        ...(order ? { 'content-type': form?.content_type ?? 'application/json', ...order.headers } : {}),
        ...headers(),
      },
      ...(order ? { body: form?.bytes ?? JSON.stringify(order.body), order: true } : {}),
      signal,
      timeouts: settings.timeouts,
      stream: false,
    })
    const { status } = answer
    const isGood = status >= 200 && status < 300
    const payload = parseJson(isGood ? await answer.text() : await answer.excerpt())
    return { status, payload, headers: answer.headers }
  }

  /** An answer of status 2xx; everything else is thrown. */
  async function send(sent: Sent) {
    const said = await exchange(sent)
    const { status, payload } = said
    const meaning = dialect.classifyError?.(payload, status)
    if (status >= 200 && status < 300 && meaning === undefined) return said
    const model = sent.order?.model
    const order_kind = sent.order && dialect.kind
    const error = orderError({ provider: id, model, ...said, errorClass: meaning, order_kind, clock })
    if (error.status >= 500) log.warn('upstream refused', { provider: id, upstream_status: status, error: error.code })
    throw error
  }

  return {
    ...reading,
    base_url: settings.base_url,
    headers,
    async submit(request) {
      return reading.readObject(
        await send({ method: 'POST', path: request.path, signal: request.signal, order: request }),
      )
    },
    async poll(path, signal, read) {
      const answer = await send({ method: 'GET', path, signal })
      const progress = read(reading.readObject(answer))
      const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
      if (progress.status === 'SUCCESS' || progress.status === 'FAILURE' || !(seconds > 0)) return progress
      return { ...progress, retry_after_seconds: seconds }
    },
    async get(path, signal) {
      const { status, payload } = await exchange({ method: 'GET', path, signal })
      return { status, payload }
    },
    async send(method, path, signal) {
      await send({ method, path, signal })
    },
  }
}

function settingsWith(parts: AdapterParts, { base_url, key_env }: OrderApi): ProviderSettings {
  const { id, config, environment } = parts
  const key = config.key ?? (key_env === undefined ? undefined : environment?.[key_env])
  // Behind an address of the operator's own, somebody else may add the key.
  if (!key && key_env !== undefined && config.base_url === undefined) {
    throw new Error(`providers.${id} needs a key: write key, or set ${key_env} in the environment`)
  }
  const home = config.base_url ?? base_url
  return settingsOf({
    ...parts,
    config: { ...config, ...(home === undefined ? {} : { base_url: home }), ...(key ? { key } : {}) },
  })
}

/** What is read from answers, whoever gives them. */
type ResponseReader = {
  readObject(answer: { status: number; payload: unknown }): JsonRecord
  /** An answer of this status, in which nothing of what was asked for can be read. */
  unreadable(status: number): GatewayError
  /** The id of an order, the first that there is; none makes the answer unreadable, and the order perhaps taken. */
  readId(...candidates: unknown[]): string
  /** The status of a task as text; none makes the answer unreadable. */
  readStatus(value: unknown): string
  /** What a task failed with; the vendor's words are cleaned, and looked through for a refusal of the content. */
  failure(fail_code: FailCode, reason: unknown): TaskProgress
  /** The end of a task that is done: without a file it has failed. */
  success(urls: unknown[]): TaskProgress
}

/** Wordings for refused content in the reasons of failed tasks. */
const AGAINST_POLICY =
  /moderat|content[ _-]?polic|risk control|safety|sensitive|inappropriate|nsfw|prohibited|usage polic|copyright|public figure/i

function createResponseReader(id: string): ResponseReader {
  const upstream = `The upstream "${id}"`
  const notUnderstood = (what: string, detail = {}) =>
    new GatewayError('bad_upstream_response', `${upstream} ${what}.`, detail)
  return {
    readObject({ status, payload }) {
      if (isRecord(payload)) return payload
      throw notUnderstood('answered with something that is no JSON object', { upstream_status: status })
    },
    unreadable: (status) => notUnderstood(`answered with HTTP ${status}`, { upstream_status: status }),
    readId(...candidates) {
      const found = candidates.find((value) => (typeof value === 'string' && value !== '') || typeof value === 'number')
      if (found !== undefined) return String(found)
      throw notUnderstood('answered to an order without the id of a task')
    },
    readStatus(value) {
      if (typeof value === 'string' && value !== '') return value
      throw notUnderstood('answered without the status of the task')
    },
    failure(fail_code, reason) {
      const said = typeof reason === 'string' ? scrub(reason) : ''
      const isRefused = fail_code === 'generation_failed' && AGAINST_POLICY.test(said)
      return {
        status: 'FAILURE',
        fail_code: isRefused ? 'content_policy_violation' : fail_code,
        fail_reason: said || `${upstream} failed without saying why.`,
      }
    },
    success(urls) {
      const outputs = urls.flatMap((url) => (typeof url === 'string' && isHttpUrl(url) ? [{ url }] : []))
      if (outputs.length > 0) return { status: 'SUCCESS', outputs }
      return {
        status: 'FAILURE',
        fail_code: 'no_output',
        fail_reason: `${upstream} said it was done, but gave no file.`,
      }
    },
  }
}

/** The id that an operation of ours holds. */
export function operationId(operation: Json): string {
  const id = isRecord(operation) ? operation.id : undefined
  if (typeof id === 'string' && id !== '') return id
  throw new GatewayError('internal_error', 'What was stored of the order is not of this kind of provider.')
}

/** A path of the vendor with an id of the vendor's making in it. */
export const withId = (path: string, id: string): string => `${path}/${encodeURIComponent(id)}`

export const isHttpUrl = (value: string): boolean => /^https?:\/\//i.test(value)

const isBytes = (body: OrderRequest['body']): body is Bytes => 'bytes' in body && body.bytes instanceof Uint8Array
