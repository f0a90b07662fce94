/** Kind `messages-compat`: Anthropic's API, and every vendor or runtime that speaks as it does. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import type { ChatChunk, ChatCompletion } from '../../spec/chat-completion.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Fallback } from '../answer-words.ts'
import type { Faults } from '../chatcompat/reading.ts'
import { withClientHeaders } from '../chatcompat/relay.ts'
import { readEvents } from '../event-stream.ts'
import type { ChatCall, DiscoveredModel, Provider } from '../provider.ts'
import { holdsError } from '../refusal.ts'
import type { Transport } from '../transport.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import { answerOf, eventsOf } from './answer.ts'
import { failureOf, refusalOf } from './error.ts'
import { createEventReader } from './events.ts'
import { readModelPage, wantedModels } from './models.ts'
import { createRelay } from './relay.ts'
import { createBodyWriter } from './request.ts'
import type { MessagesSettings } from './settings.ts'

type MessagesParts = { id: string; settings: MessagesSettings; transport: Transport; clock: Clock; log: Log }

const VERSION = 'anthropic-version'
/** The vendor has some dozen models, and gives a thousand a page. */
const MAX_PAGES = 20

export function createMessagesCompat({ id, settings, transport, clock, log }: MessagesParts): Provider {
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

  /** Sends a question and hands back an answer of status 2xx; everything else is thrown. */
  async function ask(question: Question, signal: AbortSignal): Promise<UpstreamAnswer> {
    const { path, body, request_id, model, stream = false, headers } = question
    const answer = await transport.send({
      provider: id,
      url: `${settings.base_url}/v1/${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        accept: stream ? 'text/event-stream' : 'application/json',
        // A compressed stream arrives in lumps, when the compressor's buffer is full.
        ...(stream ? { 'accept-encoding': 'identity' } : {}),
        'user-agent': 'gatehouse',
        ...(request_id === undefined ? {} : { 'x-request-id': request_id }),
        ...withClientHeaders(settings.headers, headers),
        // The shape of the body is the client's, and so is the version that says which it is.
        ...(headers?.[VERSION] === undefined ? {} : { [VERSION]: headers[VERSION] }),
      },
      ...(body === undefined ? {} : { body }),
      signal,
      timeouts: settings.timeouts,
      stream,
    })
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refused(answer, model)
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
    id: `msg_${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  const askAnswer = (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    ask(
      { path: 'messages', body: write.answer(call, stream), request_id: call.request_id, model: call.model, stream },
      signal,
    )

  /** The message in a body's text. */
  function messageIn(text: string, faults: Faults): Record<string, unknown> {
    const payload = parseJson(text)
    if (!isRecord(payload)) throw faults.notUnderstood('answered with something that is not JSON')
    if (holdsError(payload)) throw faults.inAnswer(payload)
    if (!Array.isArray(payload.content)) throw faults.notUnderstood('answered with JSON that is no message')
    return payload
  }

  async function whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const answer = await askAnswer(call, signal, false)
    const faults = faultsOf(call.model, answer)
    const message = answerOf(messageIn(await answer.text(), faults), fallbackOf(call))
    if (message) return message
    throw faults.notUnderstood('answered with JSON that is no message')
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
      // JSON in one piece instead of a stream.
      if (/^[^;]*\bjson\b/.test(type)) {
        const reader = createEventReader(fallbackOf(call))
        const events = eventsOf(messageIn(await answer.text(), faults))
        yield events.map(reader.take).filter((chunk) => chunk !== undefined)
      } else yield* readEvents(answer, createEventReader(fallbackOf(call)), faults)
      complete = true
    } finally {
      if (complete) answer.release()
      else answer.drop()
    }
  }

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const body = write.count(call)
    const question = { path: 'messages/count_tokens', body, request_id: call.request_id, model: call.model }
    const payload = parseJson(await (await ask(question, signal)).text())
    const tokens = isRecord(payload) ? payload.input_tokens : undefined
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0) return tokens
    throw notUnderstood('answered with something that is no count of tokens')
  }

  async function listModels(signal: AbortSignal): Promise<DiscoveredModel[]> {
    const found: DiscoveredModel[] = []
    let after: string | undefined
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const from = after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`
      const answer = await ask({ path: `models?limit=1000${from}` }, signal)
      const page = readModelPage(parseJson(await answer.text()))
      if (!page) throw notUnderstood('answered with something that is no list of models', answer.status)
      found.push(...page.models)
      if (page.next === undefined || page.next === after) break
      after = page.next
    }
    return wantedModels(found, settings.chat_models)
  }

  const relay = createRelay({
    settings,
    ask: ({ body, call: { request_id, model, headers }, stream }, signal) =>
      ask({ path: 'messages', body, request_id, model, stream, headers }, signal),
    chunksIn,
    faultsOf,
  })
  return {
    id,
    kind: 'messages-compat',
    chat: { whole, chunks, countTokens },
    ...(settings.relay ? { relay } : {}),
    listModels,
  }
}

/** For the operator who asks the vendor what happened. */
const requestIdOf = (headers: Headers): string | undefined =>
  headers.get('request-id') ?? headers.get('x-request-id') ?? undefined
