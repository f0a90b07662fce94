/** A vendor behind HTTP: questions to it, and what is wrong with its answers in the house's words. */

import { isRecord, parseJson } from '../../kit/json.ts'
import type { ChatChunk } from '../../protocols/canonical.ts'
import { errorInResponse, type Refusal, refusalToError } from '../../protocols/provider-error.ts'
import type { Faults } from '../../protocols/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ChatCall, PassthroughResponse } from '../provider.ts'
import type { ProviderSettings } from '../settings.ts'
import type { VendorParts } from '../vendor-parts.ts'
import type { UpstreamAnswer } from './transport-response.ts'

export type UpstreamParts = Pick<VendorParts, 'id' | 'transport' | 'clock' | 'log'> & {
  settings: Pick<ProviderSettings, 'base_url' | 'headers' | 'timeouts'>
}

/** What a kind of vendors says in its own way. */
type Words = {
  /** An error with a status. */
  refusalOf?: (refusal: Refusal) => GatewayError
  /** An error where an answer was expected. */
  failureOf?: (refusal: Omit<Refusal, 'status' | 'headers'>) => GatewayError
  /** Headers that are lists, of which the client and the operator may each have a part. */
  lists?: readonly string[]
  /** Headers in which the client's word counts before the operator's. */
  clients?: readonly string[]
}

type Question = {
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

export function createUpstream({ id, settings, transport, clock, log }: UpstreamParts, words: Words = {}) {
  const { refusalOf = refusalToError, failureOf = errorInResponse, lists = [], clients = [] } = words
  const { base_url, timeouts } = settings

  /** The operator's headers with the client's. Of the same header the operator's counts, unless it is a list: then both. */
  function headersWith(client: Record<string, string> = {}): Record<string, string> {
    const headers = { ...client, ...settings.headers }
    for (const name of clients) if (client[name] !== undefined) headers[name] = client[name]
    for (const name of lists) {
      const [asked, set] = [client[name], settings.headers[name]]
      if (asked === undefined || set === undefined) continue
      headers[name] = [...new Set([...set.split(','), ...asked.split(',')].map((one) => one.trim()))].join(',')
    }
    return headers
  }

  /** The answer, whatever its status. */
  function send({ path, body, call, stream = false, order, headers }: Question, signal: AbortSignal) {
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
  async function ask(question: Question, signal: AbortSignal): Promise<UpstreamAnswer> {
    const answer = await send(question, signal)
    if (isGood(answer)) return answer
    throw await refused(answer, question.call?.model)
  }

  async function refused(answer: UpstreamAnswer, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = answer
    const payload = parseJson(await answer.excerpt())
    const error = refusalOf({ provider: id, model, status, headers, payload, clock })
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

  const faultsOf = (model: string, { headers }: UpstreamAnswer): Faults => ({
    inAnswer(payload) {
      const error = failureOf({ provider: id, model, payload, clock })
      const upstream_request_id = requestIdOf(headers)
      log.warn('upstream failed in its answer', { provider: id, model, error: error.code, upstream_request_id })
      return error
    },
    notUnderstood,
    cut: () =>
      new GatewayError('upstream_cut', `The upstream "${id}" ended its answer in the middle, without a finish.`),
  })

  /** An answer to a request for a stream, by the one of the two ways in which it came, to its end. */
  async function* readAsked<T>(
    answer: UpstreamAnswer,
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
  async function passed(
    answer: UpstreamAnswer,
    call: ChatCall,
    chunksIn?: (answer: UpstreamAnswer, call: ChatCall) => AsyncIterable<ChatChunk[]>,
  ): Promise<PassthroughResponse | AsyncIterable<ChatChunk[]>> {
    if (chunksIn && !(await isEventStream(answer))) return chunksIn(answer, call)
    return { ...answer, faults: faultsOf(call.model, answer) }
  }

  /** The member of an answer that is a count of tokens. */
  async function readCount(answer: UpstreamAnswer, member: string): Promise<number> {
    const payload = parseJson(await answer.text())
    const tokens = isRecord(payload) ? payload[member] : undefined
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0) return tokens
    throw notUnderstood('answered with something that is no count of tokens')
  }

  /** A list of models, or a page of one; `read` knows its shape. */
  async function listed<T>(path: string, read: (payload: unknown) => T | undefined, signal: AbortSignal): Promise<T> {
    const answer = await ask({ path }, signal)
    const found = read(parseJson(await answer.text()))
    if (found) return found
    throw notUnderstood('answered with something that is no list of models', answer.status)
  }

  return { send, ask, refused, notUnderstood, faultsOf, readAsked, passed, readCount, listed }
}

export const isGood = ({ status }: UpstreamAnswer): boolean => status >= 200 && status < 300

/** By its label, and by its first byte where that lies: no event stream begins as an object does. */
async function isEventStream(answer: UpstreamAnswer): Promise<boolean> {
  const type = answer.headers.get('content-type') ?? ''
  if (type.includes('text/html') || /^[^;]*\bjson\b/.test(type)) return false
  const first = (await answer.peek())?.find((byte) => byte > 32) // 9, 10, 13 and 32 are white space
  return first !== 123
}

/** For the operator who asks the vendor what happened. */
const requestIdOf = (headers: Headers): string | undefined =>
  headers.get('request-id') ?? headers.get('x-request-id') ?? undefined
