/** A vendor behind HTTP: questions to it, and what is wrong with its answers in the house's words. */

import { isRecord, parseJson } from '../../kit/json.ts'
import type { ChatChunk } from '../../protocols/canonical.ts'
import { type ErrorResponse, errorFromResponse, errorInResponse } from '../../protocols/provider-error.ts'
import type { Faults } from '../../protocols/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ChatCall, PassthroughResponse } from '../provider.ts'
import type { AdapterParts, ProviderSettings } from '../settings.ts'
import type { UpstreamResponse } from './transport-response.ts'

export type UpstreamParts = Pick<AdapterParts, 'id' | 'transport' | 'clock' | 'log'> & {
  settings: Pick<ProviderSettings, 'base_url' | 'headers' | 'timeouts'>
}

/** What a kind of vendors says in its own way. */
type ApiRules = {
  /** An error with a status. */
  errorFromResponse?: (refusal: ErrorResponse) => GatewayError
  /** An error where an answer was expected. */
  errorFromBody?: (refusal: Omit<ErrorResponse, 'status' | 'headers'>) => GatewayError
  /** Headers that are lists, of which the client and the operator may each have a part. */
  listHeaders?: readonly string[]
  /** Headers in which the client's word counts before the operator's. */
  clientHeaders?: readonly string[]
}

type UpstreamCallRequest = {
  /** Below the base URL, with its slash. */
  path: string
  /** JSON, or a form; without a body it is a GET. */
  body?: string | { bytes: Uint8Array<ArrayBuffer>; content_type: string }
  call?: { request_id: string; model: string }
  stream?: boolean
  /** May not be repeated by the transport. */
  order?: boolean
  /** What the client's own headers ask of the vendor. */
  headers?: Record<string, string> | undefined
}

export function createUpstream({ id, settings, transport, clock, log }: UpstreamParts, rules: ApiRules = {}) {
  const { listHeaders = [], clientHeaders = [] } = rules
  const { errorFromResponse: toResponseError = errorFromResponse, errorFromBody: toBodyError = errorInResponse } = rules
  const { base_url, timeouts } = settings

  /** The operator's headers with the client's. Of the same header the operator's counts, unless it is a list: then both. */
  function headersWith(client: Record<string, string> = {}): Record<string, string> {
    const headers = { ...client, ...settings.headers }
    for (const name of clientHeaders) if (client[name] !== undefined) headers[name] = client[name]
    for (const name of listHeaders) {
      const [asked, set] = [client[name], settings.headers[name]]
      if (asked === undefined || set === undefined) continue
      headers[name] = [...new Set([...set.split(','), ...asked.split(',')].map((one) => one.trim()))].join(',')
    }
    return headers
  }

  /** The answer, whatever its status. */
  function send({ path, body, call, stream = false, order, headers }: UpstreamCallRequest, signal: AbortSignal) {
    const form = typeof body === 'object' ? body : undefined
    return transport.send({
      provider: id,
      url: `${base_url}${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(body === undefined ? {} : { 'content-type': form?.content_type ?? 'application/json' }),
        accept: stream ? 'text/event-stream' : 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'gatehouse',
        ...(call === undefined ? {} : { 'x-request-id': call.request_id }),
        ...headersWith(headers),
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : body.bytes }),
      ...(order ? { order } : {}),
      signal,
      timeouts,
      stream,
    })
  }

  /** The answer, if it can be one; everything but a status 2xx is thrown. */
  async function request(question: UpstreamCallRequest, signal: AbortSignal): Promise<UpstreamResponse> {
    const answer = await send(question, signal)
    if (isGood(answer)) return answer
    throw await errorFrom(answer, question.call?.model)
  }

  async function errorFrom(answer: UpstreamResponse, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = answer
    const payload = parseJson(await answer.excerpt())
    const error = toResponseError({ provider: id, model, status, headers, payload, clock })
    if (error.status >= 500) {
      const upstream_request_id = requestIdOf(headers)
      log.warn('upstream refused', {
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

  const faultsOf = (model: string, { headers }: UpstreamResponse): Faults => ({
    inAnswer(payload) {
      const error = toBodyError({ provider: id, model, payload, clock })
      const upstream_request_id = requestIdOf(headers)
      log.warn('upstream failed in its answer', { provider: id, model, error: error.code, upstream_request_id })
      return error
    },
    notUnderstood,
    cut: () =>
      new GatewayError('upstream_cut', `The upstream "${id}" ended its answer in the middle, without a finish.`),
  })

  /** An answer to a request for a stream, by the one of the two ways in which it came, to its end. */
  async function* readStreamOrWhole<T>(
    answer: UpstreamResponse,
    { events, whole }: { events(): AsyncIterable<T>; whole(): Promise<T> },
  ): AsyncGenerator<T> {
    let isComplete = false
    try {
      const type = answer.headers.get('content-type') ?? ''
      if (type.includes('text/html')) throw notUnderstood('answered with a web page', answer.status)
      // JSON in one piece instead of a stream; some vendors label it as a stream even so.
      if (await isEventStream(answer)) yield* events()
      else yield await whole()
      isComplete = true
    } finally {
      if (isComplete) answer.release()
      else answer.drop()
    }
  }

  /** An answer for the client itself: as it is, or as chunks where a stream was asked for and it is none. */
  async function toPassthroughResponse(
    answer: UpstreamResponse,
    call: ChatCall,
    chunksIn?: (answer: UpstreamResponse, call: ChatCall) => AsyncIterable<ChatChunk[]>,
  ): Promise<PassthroughResponse | AsyncIterable<ChatChunk[]>> {
    if (chunksIn && !(await isEventStream(answer))) return chunksIn(answer, call)
    return { ...answer, faults: faultsOf(call.model, answer) }
  }

  /** The member of an answer that is a count of tokens. */
  async function readTokenCount(answer: UpstreamResponse, member: string): Promise<number> {
    const payload = parseJson(await answer.text())
    const tokens = isRecord(payload) ? payload[member] : undefined
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0) return tokens
    throw notUnderstood('answered with something that is no count of tokens')
  }

  /** A list of models, or a page of one; `read` knows its shape. */
  async function list<T>(path: string, read: (payload: unknown) => T | undefined, signal: AbortSignal): Promise<T> {
    const answer = await request({ path }, signal)
    const found = read(parseJson(await answer.text()))
    if (found) return found
    throw notUnderstood('answered with something that is no list of models', answer.status)
  }

  return {
    send,
    ask: request,
    refused: errorFrom,
    notUnderstood,
    faultsOf,
    readAsked: readStreamOrWhole,
    passed: toPassthroughResponse,
    readCount: readTokenCount,
    listed: list,
  }
}

export const isGood = ({ status }: UpstreamResponse): boolean => status >= 200 && status < 300

/** By its label, and by its first byte where that lies: no event stream begins as an object does. */
async function isEventStream(answer: UpstreamResponse): Promise<boolean> {
  const type = answer.headers.get('content-type') ?? ''
  if (type.includes('text/html') || /^[^;]*\bjson\b/.test(type)) return false
  const first = (await answer.peek())?.find((byte) => byte > 32) // 9, 10, 13 and 32 are white space
  return first !== 123
}

/** For the operator who asks the vendor what happened. */
const requestIdOf = (headers: Headers): string | undefined =>
  headers.get('request-id') ?? headers.get('x-request-id') ?? undefined
