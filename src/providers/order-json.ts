/** How a vendor of videos is spoken to that takes and gives JSON: one order, many questions, its refusals in our words. */
import type { ProviderConfig, Timeouts } from '../config/schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { FailCode, Json } from '../spec/task.ts'
import { refusalToError, scrub } from './chatcompat/error.ts'
import { isRecord, type JsonRecord, parseJson } from './chatcompat/json.ts'
import { settingsOf } from './chatcompat/settings.ts'
import type { TaskProgress } from './provider.ts'
import type { Transport } from './transport.ts'
import { refusalTaken } from './transport-failure.ts'

/** What a video adapter is made of; the registry's parts fit. */
export type VendorParts = {
  id: string
  config: ProviderConfig
  timeouts: Required<Timeouts>
  transport: Transport
  clock: Clock
  log: Log
  environment?: Record<string, string | undefined>
}

/**
 * What a vendor means by an answer whose status alone would mislead: the status that fits, or that the content was
 * refused. Undefined: the status tells, and in an answer of status 2xx there is no refusal.
 */
export type Judge = (payload: unknown, status: number) => number | 'policy' | undefined

type Dialect = {
  /** Where the vendor is, with the version, unless the configuration says otherwise. */
  base_url?: string
  /** The environment variable of the key, when the configuration has none. */
  key_env?: string
  /** Further headers of each request; made anew for each, since keys may expire. */
  headers?: () => Record<string, string>
  /** What else must never be seen in an error. */
  secrets?: () => string[]
  judge?: Judge
  /** A refusal after which the order may be under way all the same, whatever its status. */
  mayBeTaken?: (payload: unknown, status: number) => boolean
}

export type OrderRequest = {
  /** Below the base URL, with its slash. */
  path: string
  body: JsonRecord | { bytes: Uint8Array<ArrayBuffer>; content_type: string }
  headers?: Record<string, string>
  /** The vendor's own name of the model, for messages. */
  model: string
  signal: AbortSignal
}

export type OrderJson = {
  base_url: string
  /** Sends an order. A GatewayError has `taken: 'no'` when the vendor certainly did not take it. */
  order(request: OrderRequest): Promise<JsonRecord>
  /** Asks for a task. Everything but a JSON object with status 2xx is an error that says nothing of the task. */
  ask(path: string, signal: AbortSignal): Promise<JsonRecord>
  /** Tells the vendor something of a task; resolves when it has agreed. */
  tell(method: 'DELETE' | 'POST', path: string, signal: AbortSignal): Promise<void>
  /** The id of an order in the vendor's answer; none makes the answer unreadable, and the order perhaps taken. */
  idIn(...candidates: unknown[]): string
  /** What a task failed with; the vendor's words are cleaned, and looked through for a refusal of the content. */
  failure(fail_code: FailCode, reason: unknown): TaskProgress
  /** The status of a task as text; none makes the answer unreadable. */
  statusIn(value: unknown): string
  /** The end of a task that is done: without a file it has failed. */
  made(urls: unknown[]): TaskProgress
  /** The headers that hold the key. */
  headers(): Record<string, string>
}

/** Wordings for refused content in the reasons of failed tasks. */
const AGAINST_POLICY =
  /moderat|content[ _-]?polic|risk control|safety|sensitive|inappropriate|nsfw|prohibited|usage polic|copyright|public figure/i

/** Throws an Error that names the provider when its configuration cannot work. */
export function createOrderJson(parts: VendorParts, dialect: Dialect): OrderJson {
  const { id, transport, clock, log } = parts
  const key = parts.config.key ?? (dialect.key_env === undefined ? undefined : parts.environment?.[dialect.key_env])
  const settings = settingsOf({
    ...parts,
    config: {
      ...parts.config,
      ...(dialect.base_url === undefined ? {} : { base_url: parts.config.base_url ?? dialect.base_url }),
      ...(key ? { key } : {}),
    },
  })
  const secretsNow = () => [...settings.secrets, ...(dialect.secrets?.() ?? [])]
  const upstream = `The upstream "${id}"`
  const headersNow = () => ({ ...dialect.headers?.(), ...settings.headers })
  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `${upstream} ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  /** A refusal in our words. `status` is the true one, by which it is judged whether an order may have been taken. */
  function refused(said: { payload: unknown; status: number; headers: Headers }, model: string | undefined) {
    const { status, payload, headers } = said
    const meaning = dialect.judge?.(payload, status)
    const error = refusalToError({
      provider: id,
      model,
      status: meaning === 'policy' ? 400 : (meaning ?? status),
      headers,
      payload: meaning === 'policy' ? asPolicy(payload) : payload,
      secrets: secretsNow(),
      clock,
    })
    if (error.status >= 500) log.warn('upstream refused', { provider: id, upstream_status: status, error: error.code })
    const taken = model === undefined || dialect.mayBeTaken?.(payload, status) ? {} : takenBy(status, meaning)
    return new GatewayError(error.code, error.message, { ...error.detail, upstream_status: status, ...taken })
  }

  type Sent = { method: 'GET' | 'POST' | 'DELETE'; path: string; signal: AbortSignal; order?: OrderRequest }

  /** The answer's body as text, of status 2xx. */
  async function send({ method, path, signal, order }: Sent): Promise<{ status: number; payload: unknown }> {
    const bytes = order && isBytes(order.body) ? order.body : undefined
    const answer = await transport.send({
      provider: id,
      url: settings.base_url + path,
      method,
      headers: {
        accept: 'application/json',
        'user-agent': 'gatehouse',
        ...(order ? { 'content-type': bytes?.content_type ?? 'application/json', ...order.headers } : {}),
        ...headersNow(),
      },
      ...(order ? { body: bytes?.bytes ?? JSON.stringify(order.body), order: true as const } : {}),
      signal,
      timeouts: settings.timeouts,
      stream: false,
    })
    const { status, headers } = answer
    const isGood = status >= 200 && status < 300
    const payload = parseJson(isGood ? await answer.text() : await answer.excerpt())
    if (isGood && dialect.judge?.(payload, status) === undefined) return { status, payload }
    if (status === 404 && !order) throw notUnderstood('does not know the task (404)', 404)
    throw refused({ payload, status, headers }, order?.model)
  }

  const objectIn = ({ status, payload }: { status: number; payload: unknown }): JsonRecord => {
    if (isRecord(payload)) return payload
    throw notUnderstood('answered with something that is no JSON object', status)
  }

  return {
    base_url: settings.base_url,
    headers: headersNow,
    async order(request) {
      return objectIn(await send({ method: 'POST', path: request.path, signal: request.signal, order: request }))
    },
    async ask(path, signal) {
      return objectIn(await send({ method: 'GET', path, signal }))
    },
    async tell(method, path, signal) {
      await send({ method, path, signal })
    },
    idIn(...candidates) {
      const found = candidates.find((value) => (typeof value === 'string' && value !== '') || typeof value === 'number')
      if (found !== undefined) return String(found)
      throw notUnderstood('answered to an order without the id of a task')
    },
    statusIn(value) {
      if (typeof value === 'string' && value !== '') return value
      throw notUnderstood('answered without the status of the task')
    },
    failure(fail_code, reason) {
      const said = typeof reason === 'string' ? scrub(reason, secretsNow()) : ''
      return {
        status: 'FAILURE',
        fail_code:
          fail_code === 'generation_failed' && AGAINST_POLICY.test(said) ? 'content_policy_violation' : fail_code,
        fail_reason: said || `${upstream} failed without saying why.`,
      }
    },
    made(urls) {
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

/** By the true status, unless that one says that all went well. */
function takenBy(status: number, meaning: ReturnType<Judge>): { taken?: 'no' } {
  if (meaning === 'policy') return { taken: 'no' }
  return refusalTaken(status < 300 && meaning !== undefined ? meaning : status)
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

const isBytes = (body: OrderRequest['body']): body is { bytes: Uint8Array<ArrayBuffer>; content_type: string } =>
  'bytes' in body && body.bytes instanceof Uint8Array

/** The same refusal with the code by which our sheet knows refused content. */
function asPolicy(payload: unknown): JsonRecord {
  const body = isRecord(payload) ? payload : {}
  const inner = isRecord(body.error)
    ? body.error
    : { ...body, ...(typeof body.error === 'string' ? { message: body.error } : {}) }
  return { error: { ...inner, code: 'content_policy_violation' } }
}
