/** The HTTP side of a provider: sends requests, and turns bad responses into the gateway's errors. */
import type { Abortable } from '../../kit/abortable.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import type { ChatChunk } from '../../protocols/shared/canonical.ts'
import { type ChunkDecoder, ChunkStream } from '../../protocols/shared/chunk-stream.ts'
import { type ErrorResponse, errorFromBody, errorFromResponse } from '../../protocols/shared/provider-error.ts'
import type { Faults } from '../../protocols/shared/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ChatCall, PassthroughResponse } from '../provider.ts'
import type { AdapterParts, ProviderSettings } from '../settings.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

export type UpstreamParts = Pick<AdapterParts, 'id' | 'transport' | 'clock' | 'log'> & {
  settings: Pick<ProviderSettings, 'base_url' | 'headers' | 'timeouts'>
}

type ApiRules = {
  /** The error for a response with an error status. */
  errorFromResponse?: (refusal: ErrorResponse) => GatewayError
  /** The error for an error body where a result was expected. */
  errorFromBody?: (refusal: Omit<ErrorResponse, 'status' | 'headers'>) => GatewayError
  /** Headers that hold lists: the values of the client and of the operator are merged. */
  listHeaders?: readonly string[]
  /** Headers for which the client's value overrides the operator's. */
  clientHeaders?: readonly string[]
}

type UpstreamCall = {
  /** Below the base URL, with its slash. */
  path: string
  /** JSON, or a form; without a body it is a GET. */
  body?: string | { bytes: Uint8Array<ArrayBuffer>; content_type: string }
  call?: { request_id: string; model: string }
  stream?: boolean
  /** The transport must not repeat it. */
  order?: true
  /** The client's own headers that are passed to the provider. */
  headers?: Record<string, string> | undefined
}

type PassthroughAnswer = PassthroughResponse | AsyncIterable<ChatChunk[]>

/** How a kind decodes the response to one call: its events, or its text where it came as one body. */
type ReadChunks<Call> = (call: Call, faults: Faults) => { decoder(): ChunkDecoder; whole(text: string): ChatChunk[] }

export function createUpstream({ id, settings, transport, clock, log }: UpstreamParts, rules: ApiRules = {}) {
  const { listHeaders = [], clientHeaders = [] } = rules
  const { errorFromResponse: toResponseError = errorFromResponse, errorFromBody: toBodyError = errorFromBody } = rules
  const { base_url, timeouts } = settings

  /** Merges the client's headers with the operator's. The operator's value overrides, unless the header is a list: then both count. */
  function addHeaders(headers: Record<string, string>, client: Record<string, string> | undefined): void {
    if (client) Object.assign(headers, client)
    Object.assign(headers, settings.headers)
    if (!client) return
    for (const name of clientHeaders) if (client[name] !== undefined) headers[name] = client[name]
    for (const name of listHeaders) {
      const fromClient = client[name]
      const set = settings.headers[name]
      if (fromClient === undefined || set === undefined) continue
      headers[name] = [...new Set([...set.split(','), ...fromClient.split(',')].map((one) => one.trim()))].join(',')
    }
  }

  function requestOf(question: UpstreamCall, signal: Abortable): UpstreamRequest {
    const { path, body, call, stream = false, order, headers } = question
    const accept = stream ? 'text/event-stream' : 'application/json'
    const own: Record<string, string> = { accept, 'accept-encoding': 'identity', 'user-agent': 'gatehouse' }
    if (body !== undefined) own['content-type'] = typeof body === 'string' ? 'application/json' : body.content_type
    if (call !== undefined) own['x-request-id'] = call.request_id
    const method = body === undefined ? 'GET' : 'POST'
    const url = base_url + path
    const request: UpstreamRequest = { provider: id, timeouts, url, method, headers: own, signal, stream }
    addHeaders(own, headers)
    if (body !== undefined) request.body = typeof body === 'string' ? body : body.bytes
    if (order) request.order = order
    return request
  }

  /** Returns the response, whatever its status. */
  const send = (question: UpstreamCall, signal: Abortable) => transport.send(requestOf(question, signal))

  /** Returns a response with a 2xx status; throws an error for any other. */
  function request(question: UpstreamCall, signal: Abortable): Promise<UpstreamResponse> {
    // Not an async function: it would keep its parameters, and so the body, until the response arrives.
    const sent = requestOf(question, signal)
    sent.refused = refuse
    if (question.call) sent.model = question.call.model
    if (!sent.stream) sent.reads_text = true
    return transport.send(sent)
  }

  async function refuse(response: UpstreamResponse, model: string | undefined): Promise<never> {
    throw await errorFrom(response, model)
  }

  async function errorFrom(response: UpstreamResponse, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = response
    const payload = parseJson(await response.excerpt())
    const error = toResponseError({ provider: id, model, status, headers, payload, clock })
    if (error.status >= 500) {
      const upstream_request_id = requestIdOf(headers)
      log.warn('upstream error response', {
        provider: id,
        model,
        upstream_status: status,
        error: error.code,
        upstream_request_id,
      })
    }
    return error
  }

  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `The upstream "${id}" ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  const cut = () =>
    new GatewayError('upstream_cut', `The upstream "${id}" ended its response in the middle, without a finish.`)

  function inAnswer(payload: unknown, model: string, response: Pick<UpstreamResponse, 'headers'>): GatewayError {
    const error = toBodyError({ provider: id, model, payload, clock })
    const upstream_request_id = requestIdOf(response.headers)
    log.warn('upstream error in response body', { provider: id, model, error: error.code, upstream_request_id })
    return error
  }

  const faultParts: FaultParts = { inAnswer, notUnderstood, cut }

  const faultsOf = (model: string, response: Pick<UpstreamResponse, 'headers'>): Faults =>
    new ResponseFaults(faultParts, model, response)

  /** Whether it came as events or as one body: some providers return one JSON body instead of a stream, or label it as one. */
  async function isStream(response: UpstreamResponse): Promise<boolean> {
    if (response.contentType.includes('text/html')) throw notUnderstood('answered with a web page', response.status)
    return await isEventStream(response)
  }

  /** The chunks of the response to a stream request, which is sent when they are read. */
  function chunks<Call extends ChatCall>(
    send: () => Promise<UpstreamResponse>,
    call: Call,
    reading: ReadChunks<Call>,
  ): ChunkStream {
    return new ChunkStream(async () => {
      const response = await send()
      try {
        const faults = faultsOf(call.model, response)
        const { decoder, whole } = reading(call, faults)
        if (await isStream(response)) return { body: response, decoder: decoder(), faults }
        const chunks = whole(await response.text())
        response.release()
        return { whole: chunks }
      } catch (thrown) {
        response.drop()
        throw thrown
      }
    })
  }

  /** Reads the response to a stream request to its end. */
  async function* readStreamOrWhole<T>(
    response: UpstreamResponse,
    { events, whole }: { events(): AsyncIterable<T>; whole(): Promise<T> },
  ): AsyncGenerator<T> {
    let isComplete = false
    try {
      if (await isStream(response)) yield* events()
      else yield await whole()
      isComplete = true
    } finally {
      if (isComplete) response.release()
      else response.drop()
    }
  }

  /** The response to a stream request for the client: as it is, or as chunks where the body is no stream. */
  async function streamToPass<Call extends ChatCall>(
    response: UpstreamResponse,
    call: Call,
    reading: ReadChunks<Call>,
  ): Promise<PassthroughAnswer> {
    return (await isEventStream(response)) ? response : chunks(() => Promise.resolve(response), call, reading)
  }

  /** Reads the named member of a response as a token count. */
  async function readTokenCount(response: UpstreamResponse, member: string): Promise<number> {
    const payload = parseJson(await response.text())
    const tokens = isRecord(payload) ? payload[member] : undefined
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0) return tokens
    throw notUnderstood('answered with something that is not a token count')
  }

  /** Fetches a list of models, or one page of it; `read` knows its shape. */
  async function list<T>(path: string, read: (payload: unknown) => T | undefined, signal: AbortSignal): Promise<T> {
    const response = await request({ path }, signal)
    const found = read(parseJson(await response.text()))
    if (found) return found
    throw notUnderstood('answered with something that is not a list of models', response.status)
  }

  return {
    send,
    request,
    errorFrom,
    notUnderstood,
    faultsOf,
    chunks,
    readStreamOrWhole,
    streamToPass,
    readTokenCount,
    list,
  }
}

type FaultParts = Pick<Faults, 'notUnderstood' | 'cut'> & {
  inAnswer(payload: unknown, model: string, response: Pick<UpstreamResponse, 'headers'>): GatewayError
}

/** One object for each response, without closures: nearly none has a fault. */
class ResponseFaults implements Faults {
  readonly #parts: FaultParts
  readonly #model: string
  readonly #response: Pick<UpstreamResponse, 'headers'>

  constructor(parts: FaultParts, model: string, response: Pick<UpstreamResponse, 'headers'>) {
    this.#parts = parts
    this.#model = model
    this.#response = response
  }

  inAnswer(payload: unknown): GatewayError {
    return this.#parts.inAnswer(payload, this.#model, this.#response)
  }

  notUnderstood(what: string, upstream_status?: number): GatewayError {
    return this.#parts.notUnderstood(what, upstream_status)
  }

  cut(): GatewayError {
    return this.#parts.cut()
  }
}

export const isSuccess = ({ status }: UpstreamResponse): boolean => status >= 200 && status < 300

/** The first byte of `data:`, `event:`, `id:`, `retry:`, a comment and a byte order mark. No JSON text begins with one. */
const EVENT_BYTES = new Set([100, 101, 105, 114, 58, 0xef])

/** Decides by the content type, and by the first byte where the type is wrong: no event stream begins with an object. */
async function isEventStream(response: UpstreamResponse): Promise<boolean> {
  const type = response.contentType
  if (type.includes('text/html')) return false
  const first = await response.firstByte()
  if (/^[^;]*\bjson\b/.test(type)) return first !== undefined && EVENT_BYTES.has(first)
  return first !== 123
}

/** For an operator who reports a problem to the provider. */
const requestIdOf = (headers: Headers): string | undefined =>
  headers.get('request-id') ?? headers.get('x-request-id') ?? undefined
