/** Kind `chatcompat`: any vendor or runtime that speaks the OpenAI chat API over HTTP, another Gatehouse included. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { parseJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import type { ChatChunk } from '../../spec/chat-completion.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Fallback } from '../answer-words.ts'
import { readModelList } from '../model-list.ts'
import type { ChatCall, DiscoveredModel, Provider } from '../provider.ts'
import { errorInAnswer, refusalToError } from '../refusal.ts'
import type { ChatcompatSettings } from '../settings.ts'
import type { Transport } from '../transport.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import { chunksOf } from './answer.ts'
import { type Faults, readStream, readWhole } from './reading.ts'
import { type Asking, createRelay, isEventStream, withClientHeaders } from './relay.ts'
import { createBodyWriter } from './request.ts'

type ChatcompatParts = { id: string; settings: ChatcompatSettings; transport: Transport; clock: Clock; log: Log }

export function createChatcompat({ id, settings, transport, clock, log }: ChatcompatParts): Provider {
  const writeBody = createBodyWriter(settings)
  const chatUrl = `${settings.base_url}/chat/completions`
  const upstream = `The upstream "${id}"`

  /** Sends a call and hands back an answer of status 2xx; everything else is thrown. */
  async function ask(call: Asking, signal: AbortSignal, stream: boolean): Promise<UpstreamAnswer> {
    const answer = await transport.send({
      provider: id,
      url: chatUrl,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: stream ? 'text/event-stream' : 'application/json',
        // A compressed stream arrives in lumps, when the compressor's buffer is full.
        ...(stream ? { 'accept-encoding': 'identity' } : {}),
        'user-agent': 'gatehouse',
        'x-request-id': call.request_id,
        ...withClientHeaders(settings.headers, call.headers),
      },
      body: writeBody(call, stream),
      signal,
      timeouts: settings.timeouts,
      stream,
    })
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refused(answer, call.model)
  }

  async function refused(answer: UpstreamAnswer, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = answer
    const text = await answer.excerpt()
    const payload = parseJson(text)
    const error = refusalToError({ provider: id, model, status, headers, payload, secrets: settings.secrets, clock })
    if (error.status >= 500)
      log.warn('upstream refused', { provider: id, model, upstream_status: status, error: error.code })
    return error
  }

  const faultsOf = (model: string): Faults => ({
    inAnswer(payload) {
      const error = errorInAnswer({ provider: id, model, payload, secrets: settings.secrets, clock })
      log.warn('upstream failed in its answer', { provider: id, model, error: error.code })
      return error
    },
    notUnderstood,
    cut: () => new GatewayError('upstream_cut', `${upstream} ended its answer in the middle, without a finish.`),
  })

  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `${upstream} ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  const fallbackOf = (call: ChatCall): Fallback => ({
    id: `chatcmpl-${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    yield* chunksIn(await ask(call, signal, true), call)
  }

  async function* chunksIn(answer: UpstreamAnswer, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    let complete = false
    try {
      const type = answer.headers.get('content-type') ?? ''
      if (type.includes('text/html')) throw notUnderstood('answered with a web page', answer.status)
      const fallback = fallbackOf(call)
      const faults = faultsOf(call.model)
      // JSON in one piece instead of a stream; some vendors label it as a stream even so.
      if (await isEventStream(answer)) yield* readStream(answer, fallback, faults)
      else yield chunksOf(readWhole(await answer.text(), fallback, faults))
      complete = true
    } finally {
      if (complete) answer.release()
      else answer.drop()
    }
  }

  return {
    id,
    kind: 'chatcompat',
    chat: {
      async whole(call, signal) {
        const answer = await ask(call, signal, false)
        return readWhole(await answer.text(), fallbackOf(call), faultsOf(call.model))
      },
      chunks,
    },
    ...(settings.quirks.relay ? { relay: createRelay({ ask, chunksIn, faultsOf }) } : {}),
    async listModels(signal): Promise<DiscoveredModel[]> {
      const answer = await transport.send({
        provider: id,
        url: `${settings.base_url}/models`,
        method: 'GET',
        headers: { accept: 'application/json', 'user-agent': 'gatehouse', ...settings.headers },
        signal,
        timeouts: settings.timeouts,
        stream: false,
      })
      if (answer.status < 200 || answer.status >= 300) throw await refused(answer, undefined)
      const models = readModelList(parseJson(await answer.text()), settings.chat_models)
      if (models) return models
      throw notUnderstood('answered with something that is no list of models', answer.status)
    },
  }
}
