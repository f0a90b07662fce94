/** Kind `contentgen-compat`: Gemini's own API, and every vendor or runtime that speaks as it does. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import type { ChatChunk, ChatCompletion } from '../../spec/chat-completion.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Fallback } from '../answer-words.ts'
import type { Media } from '../media.ts'
import type { ChatCall, DiscoveredModel, Provider } from '../provider.ts'
import type { Transport } from '../transport.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import { type AnswerReader, type ContentgenFaults, createAnswerReader } from './answer.ts'
import { failureOf, refusalOf } from './error.ts'
import { readModelPage, wantedModels } from './models.ts'
import { createRelay } from './relay.ts'
import { createBodyWriter, modelPath } from './request.ts'
import type { ContentgenSettings } from './settings.ts'
import { readEvents } from './stream.ts'
import { ended, wholeOf } from './whole.ts'

type ContentgenParts = {
  id: string
  settings: ContentgenSettings
  transport: Transport
  clock: Clock
  log: Log
  media?: Media
}

/** The vendor has some hundred models, and gives a thousand a page. */
const MAX_PAGES = 20

export function createContentgenCompat(parts: ContentgenParts): Provider {
  const { id, settings, transport, clock, log } = parts
  const write = createBodyWriter(settings, parts.media)
  const upstream = `The upstream "${id}"`

  type Question = { path: string; body?: string; call?: ChatCall; stream?: boolean }

  /** Sends a question and hands back an answer of status 2xx; everything else is thrown. */
  async function ask({ path, body, call, stream = false }: Question, signal: AbortSignal): Promise<UpstreamAnswer> {
    const answer = await transport.send({
      provider: id,
      url: `${settings.base_url}/${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        accept: stream ? 'text/event-stream' : 'application/json',
        // A compressed stream arrives in lumps, when the compressor's buffer is full.
        ...(stream ? { 'accept-encoding': 'identity' } : {}),
        'user-agent': 'gatehouse',
        ...(call === undefined ? {} : { 'x-request-id': call.request_id }),
        ...settings.headers,
      },
      ...(body === undefined ? {} : { body }),
      signal,
      timeouts: settings.timeouts,
      stream,
    })
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refused(answer, call?.model)
  }

  async function refused(answer: UpstreamAnswer, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = answer
    const payload = parseJson(await answer.excerpt())
    const error = refusalOf({ provider: id, model, status, headers, payload, secrets: settings.secrets, clock })
    if (error.status >= 500) {
      log.warn('upstream refused', { provider: id, model, upstream_status: status, error: error.code })
    }
    return error
  }

  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `${upstream} ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  const faultsOf = (model: string): ContentgenFaults => ({
    inAnswer(payload) {
      const error = failureOf({ provider: id, model, payload, secrets: settings.secrets, clock })
      log.warn('upstream failed in its answer', { provider: id, model, error: error.code })
      return error
    },
    notUnderstood,
    cut: () => new GatewayError('upstream_cut', `${upstream} ended its answer in the middle, without a finish.`),
    blocked: (reason) =>
      new GatewayError('content_policy_violation', `${upstream} refused the prompt for its content (${reason}).`),
  })

  const fallbackOf = (call: ChatCall): Fallback => ({
    id: `resp_${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  const readerOf = (call: ChatCall, faults: ContentgenFaults): AnswerReader =>
    createAnswerReader({ fallback: fallbackOf(call), faults, one_call: call.request.parallel_tool_calls === false })

  async function askAnswer(call: ChatCall, signal: AbortSignal, stream: boolean): Promise<UpstreamAnswer> {
    return askWith({ body: await write.answer(call, signal), call, stream }, signal)
  }

  function askWith({ body, call, stream }: { body: string; call: ChatCall; stream: boolean }, signal: AbortSignal) {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return ask({ path: `${addressOf(call.model)}:${method}`, body, call, stream }, signal)
  }

  /** The chunks of an answer that came in one piece, which may be the list of a stream's events. */
  function chunksIn(text: string, call: ChatCall, faults: ContentgenFaults): ChatChunk[] {
    const payload = parseJson(text)
    if (payload === undefined) throw faults.notUnderstood('answered with something that is not JSON')
    const reader = readerOf(call, faults)
    const chunks = ended(Array.isArray(payload) ? payload : [payload]).flatMap(reader.take)
    if (chunks.length === 0) throw faults.notUnderstood('answered with JSON that holds no answer')
    return [...chunks, ...reader.end()]
  }

  async function whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const answer = await askAnswer(call, signal, false)
    return wholeOf(chunksIn(await answer.text(), call, faultsOf(call.model)), fallbackOf(call))
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    yield* eventsIn(await askAnswer(call, signal, true), call)
  }

  async function* eventsIn(answer: UpstreamAnswer, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    const faults = faultsOf(call.model)
    let complete = false
    try {
      const type = answer.headers.get('content-type') ?? ''
      if (type.includes('text/html')) throw notUnderstood('answered with a web page', answer.status)
      // JSON in one piece instead of a stream.
      if (/^[^;]*\bjson\b/.test(type)) yield chunksIn(await answer.text(), call, faults)
      else yield* readEvents(answer, readerOf(call, faults), faults)
      complete = true
    } finally {
      if (complete) answer.release()
      else answer.drop()
    }
  }

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const body = await write.count(call, signal)
    const answer = await ask({ path: `${addressOf(call.model)}:countTokens`, body, call }, signal)
    const payload = parseJson(await answer.text())
    const tokens = isRecord(payload) ? payload.totalTokens : undefined
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0) return tokens
    throw notUnderstood('answered with something that is no count of tokens')
  }

  async function listModels(signal: AbortSignal): Promise<DiscoveredModel[]> {
    const found: DiscoveredModel[] = []
    let token: string | undefined
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const from = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
      const answer = await ask({ path: `models?pageSize=1000${from}` }, signal)
      const page = readModelPage(parseJson(await answer.text()))
      if (!page) throw notUnderstood('answered with something that is no list of models', answer.status)
      found.push(...page.models)
      if (page.next === undefined || page.next === token) break
      token = page.next
    }
    return wantedModels(found, settings.chat_models)
  }

  const chat = { whole, chunks, countTokens }
  const relay = createRelay({ settings, ask: askWith, chunksIn: eventsIn, faultsOf })
  return { id, kind: 'contentgen-compat', chat, ...(settings.relay ? { relay } : {}), listModels }
}

/** A model's place as a path, with nothing in it that could mean another one. */
const addressOf = (model: string): string => modelPath(model).split('/').map(encodeURIComponent).join('/')
