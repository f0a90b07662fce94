/** Kind `responses-compat`: OpenAI's Responses API, and every vendor or runtime that speaks as it does. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import type { ChatChunk, ChatCompletion } from '../../spec/chat-completion.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Fallback } from '../answer-words.ts'
import type { Faults } from '../chatcompat/reading.ts'
import { withClientHeaders } from '../chatcompat/relay.ts'
import { readEvents } from '../event-stream.ts'
import { readModelList } from '../model-list.ts'
import type { ChatCall, ChatProvider, DiscoveredModel, Provider } from '../provider.ts'
import { holdsError } from '../refusal.ts'
import type { Transport } from '../transport.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import { answerOf, endOf } from './answer.ts'
import { failureOf, refusalOf } from './error.ts'
import { createEventReader, isFailure } from './events.ts'
import { createRelay } from './relay.ts'
import { createBodyWriter } from './request.ts'
import type { ResponsesSettings } from './settings.ts'

type ResponsesParts = { id: string; settings: ResponsesSettings; transport: Transport; clock: Clock; log: Log }

/** What a vendor says to a path that it does not have. */
const NO_SUCH_PATH = [404, 405, 501]

export function createResponsesCompat({ id, settings, transport, clock, log }: ResponsesParts): Provider {
  const write = createBodyWriter(settings)
  const upstream = `The upstream "${id}"`

  type Question = {
    path: string
    body?: string
    request_id?: string
    model?: string
    stream?: boolean
    headers?: Record<string, string>
  }

  /** Sends a question and hands back the answer, whatever its status. */
  function send(question: Question, signal: AbortSignal): Promise<UpstreamAnswer> {
    const { path, body, request_id, stream = false, headers } = question
    return transport.send({
      provider: id,
      url: `${settings.base_url}/${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        accept: stream ? 'text/event-stream' : 'application/json',
        // A compressed stream arrives in lumps, when the compressor's buffer is full.
        ...(stream ? { 'accept-encoding': 'identity' } : {}),
        'user-agent': 'gatehouse',
        ...(request_id === undefined ? {} : { 'x-request-id': request_id }),
        ...withClientHeaders(settings.headers, headers),
      },
      ...(body === undefined ? {} : { body }),
      signal,
      timeouts: settings.timeouts,
      stream,
    })
  }

  /** The same; every status but 2xx is thrown. */
  async function ask(question: Question, signal: AbortSignal): Promise<UpstreamAnswer> {
    const answer = await send(question, signal)
    if (isGood(answer)) return answer
    throw await refused(answer, question.model)
  }

  async function refused(answer: UpstreamAnswer, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = answer
    const payload = parseJson(await answer.excerpt())
    const error = refusalOf({ provider: id, model, status, headers, payload, secrets: settings.secrets, clock })
    if (error.status >= 500) {
      log.warn('upstream refused', {
        provider: id,
        model,
        upstream_status: status,
        error: error.code,
        upstream_request_id: requestIdOf(headers),
      })
    }
    return error
  }

  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `${upstream} ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  const faultsOf = (model: string, { headers }: UpstreamAnswer): Faults => ({
    inAnswer(payload) {
      const error = failureOf({ provider: id, model, payload, secrets: settings.secrets, clock })
      log.warn('upstream failed in its answer', {
        provider: id,
        model,
        error: error.code,
        upstream_request_id: requestIdOf(headers),
      })
      return error
    },
    notUnderstood,
    cut: () => new GatewayError('upstream_cut', `${upstream} ended its answer in the middle, without a finish.`),
  })

  const fallbackOf = (call: ChatCall): Fallback => ({
    id: `resp_${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  const askAnswer = (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    ask(
      { path: 'responses', body: write.answer(call, stream), request_id: call.request_id, model: call.model, stream },
      signal,
    )

  /** The response in a body's text, which has ended. */
  function responseIn(text: string, faults: Faults): JsonRecord {
    const payload = parseJson(text)
    if (!isRecord(payload)) throw faults.notUnderstood('answered with something that is not JSON')
    if (holdsError(payload) || isFailure({ response: payload }))
      throw faults.inAnswer({ response: payload, ...payload })
    if (!Array.isArray(payload.output)) throw faults.notUnderstood('answered with JSON that is no response')
    if (payload.status === 'in_progress' || payload.status === 'queued') {
      throw faults.notUnderstood('answered before its answer was complete')
    }
    return payload
  }

  async function whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const answer = await askAnswer(call, signal, false)
    const faults = faultsOf(call.model, answer)
    const completion = answerOf(responseIn(await answer.text(), faults), fallbackOf(call))
    if (completion) return completion
    throw faults.notUnderstood('answered with JSON that is no response')
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    yield* chunksIn(await askAnswer(call, signal, true), call)
  }

  async function* chunksIn(answer: UpstreamAnswer, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    const faults = faultsOf(call.model, answer)
    let complete = false
    try {
      const type = answer.headers.get('content-type') ?? ''
      if (type.includes('text/html')) throw notUnderstood('answered with a web page', answer.status)
      const reader = createEventReader(fallbackOf(call))
      // JSON in one piece instead of a stream.
      if (/^[^;]*\bjson\b/.test(type)) {
        const chunk = reader.take(endOf(responseIn(await answer.text(), faults)))
        if (chunk) yield [chunk]
      } else yield* readEvents(answer, reader, faults)
      complete = true
    } finally {
      if (complete) answer.release()
      else answer.drop()
    }
  }

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const { model, request_id } = call
    const answer = await send({ path: 'responses/input_tokens', body: write.count(call), request_id }, signal)
    if (NO_SUCH_PATH.includes(answer.status)) {
      answer.drop()
      // Imitators do not have it: from now on they are no longer asked.
      delete chat.countTokens
      throw notUnderstood('cannot count tokens', answer.status)
    }
    if (!isGood(answer)) throw await refused(answer, model)
    const payload = parseJson(await answer.text())
    const tokens = isRecord(payload) ? payload.input_tokens : undefined
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0) return tokens
    throw notUnderstood('answered with something that is no count of tokens')
  }

  async function listModels(signal: AbortSignal): Promise<DiscoveredModel[]> {
    const answer = await ask({ path: 'models' }, signal)
    const models = readModelList(parseJson(await answer.text()), settings.chat_models)
    if (models) return models
    throw notUnderstood('answered with something that is no list of models', answer.status)
  }

  const chat: ChatProvider = { whole, chunks, countTokens }
  const relay = createRelay({
    settings,
    defaultsFor: write.defaults,
    ask: ({ body, call: { request_id, model, headers }, stream }, signal) =>
      ask({ path: 'responses', body, request_id, model, stream, headers }, signal),
    chunksIn,
    faultsOf,
  })
  return { id, kind: 'responses-compat', chat, ...(settings.relay ? { relay } : {}), listModels }
}

const isGood = ({ status }: UpstreamAnswer): boolean => status >= 200 && status < 300

/** For the operator who asks the vendor what happened. */
const requestIdOf = (headers: Headers): string | undefined => headers.get('x-request-id') ?? undefined
