/** Kind `messages-compat`: Anthropic's API, and every vendor or runtime with the same API. */
import { isRecord } from '../../kit/json.ts'
import { answerOf, eventsOf, messageIn } from '../../protocols/messages/upstream/answer.ts'
import { failureOf, refusalOf } from '../../protocols/messages/upstream/error.ts'
import { createEventReader } from '../../protocols/messages/upstream/events.ts'
import { countedBody, passthroughBody } from '../../protocols/messages/upstream/passthrough.ts'
import { createBodyEncoder } from '../../protocols/messages/upstream/request.ts'
import type { ChatCompletion } from '../../protocols/shared/canonical.ts'
import { createEventDecoder } from '../../protocols/shared/chunk-stream.ts'
import { type Faults, fallbackOf, namedText } from '../../protocols/shared/upstream.ts'
import { type ModelPage, readPages } from '../model-list.ts'
import type { ChatCall, PassthroughCall, PassthroughProvider, Provider } from '../provider.ts'
import { createUpstream, type UpstreamParts } from '../upstream/upstream.ts'
import type { MessagesSettings } from './messages-settings.ts'

type MessagesParts = UpstreamParts & { settings: MessagesSettings }

/** A passthrough body is the client's, so its version header is the client's too. */
const CLIENT_HEADERS = ['anthropic-version']

export function createMessagesCompat(parts: MessagesParts): Provider {
  const { id, settings, clock } = parts
  const encoder = createBodyEncoder(settings)
  const upstream = createUpstream(parts, {
    errorFromResponse: refusalOf,
    errorFromBody: failureOf,
    listHeaders: ['anthropic-beta'],
    clientHeaders: CLIENT_HEADERS,
  })

  const fallbackFor = (call: ChatCall) => fallbackOf('msg_', call, clock)

  const request = (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    upstream.request({ path: '/v1/messages', body: encoder.answer(call, stream), call, stream }, signal)

  async function complete(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const response = await request(call, signal, false)
    const faults = upstream.faultsOf(call.model, response)
    return answerOf(messageIn(await response.text(), faults), fallbackFor(call))
  }

  const reading = (call: ChatCall, faults: Faults) => ({
    decoder: () => createEventDecoder(createEventReader(fallbackFor(call)), faults),
    whole: (text: string) => {
      const reader = createEventReader(fallbackFor(call))
      return eventsOf(messageIn(text, faults))
        .map(reader.take)
        .filter((chunk) => chunk !== undefined)
    },
  })

  const chunks = (call: ChatCall, signal: AbortSignal) =>
    upstream.chunks(() => request(call, signal, true), call, reading)

  const countTokens = (call: ChatCall, signal: AbortSignal) => countTokensOf(encoder.count(call), call, signal)

  async function countTokensOf(
    body: string,
    call: ChatCall & Partial<Pick<PassthroughCall, 'headers'>>,
    signal: AbortSignal,
  ) {
    const request = { path: '/v1/messages/count_tokens', body, call, headers: call.headers }
    return upstream.readTokenCount(await upstream.request(request, signal), 'input_tokens')
  }

  const pageAfter = (id: string | undefined, signal: AbortSignal) => {
    const after = id === undefined ? '' : `&after_id=${encodeURIComponent(id)}`
    return upstream.list(`/v1/models?limit=1000${after}`, readModelPage, signal)
  }

  const passthrough: PassthroughProvider = {
    dialect: 'messages-compat',
    async send(call, stream, signal) {
      const body = JSON.stringify(passthroughBody(call, settings))
      const response = await upstream.request(
        { path: '/v1/messages', body, call, stream, headers: call.headers },
        signal,
      )
      return stream ? upstream.streamToPass(response, call, reading) : response
    },
    faultsOf: upstream.faultsOf,
    count: (call, signal) => countTokensOf(JSON.stringify(countedBody(call, settings)), call, signal),
  }
  return {
    id,
    kind: 'messages-compat',
    chat: { complete, chunks, countTokens },
    ...(settings.passthrough ? { passthrough } : {}),
    listModels: (signal) => readPages((after) => pageAfter(after, signal), settings.chat_models),
  }
}

/** One page of the model list; undefined if the payload is not one. */
function readModelPage(payload: unknown): ModelPage | undefined {
  if (!isRecord(payload) || !Array.isArray(payload.data)) return undefined
  const models = payload.data.filter(isRecord).flatMap(({ id, created_at }) => {
    const model = namedText(id)
    if (model === undefined) return []
    const created = typeof created_at === 'string' ? Math.floor(Date.parse(created_at) / 1000) : Number.NaN
    return [created > 0 ? { model, created } : { model }]
  })
  const next = payload.has_more === true ? (namedText(payload.last_id) ?? models.at(-1)?.model) : undefined
  return { models, next }
}
