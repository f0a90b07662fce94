/** Kind `responses-compat`: OpenAI's Responses API, and every vendor or runtime with the same API. */
import { answerOf, endOf, responseIn } from '../../protocols/responses/upstream/answer.ts'
import { failureOf, refusalOf } from '../../protocols/responses/upstream/error.ts'
import { createEventReader } from '../../protocols/responses/upstream/events.ts'
import { passthroughBody } from '../../protocols/responses/upstream/passthrough.ts'
import { createBodyEncoder } from '../../protocols/responses/upstream/request.ts'
import type { ChatCompletion } from '../../protocols/shared/canonical.ts'
import { createEventDecoder } from '../../protocols/shared/chunk-stream.ts'
import { type Faults, fallbackOf } from '../../protocols/shared/upstream.ts'
import { readModelList } from '../model-list.ts'
import type { ChatCall, ChatProvider, PassthroughProvider, Provider } from '../provider.ts'
import { createUpstream, isSuccess, type UpstreamParts } from '../upstream/upstream.ts'
import type { ResponsesSettings } from './responses-settings.ts'

type ResponsesParts = UpstreamParts & { settings: ResponsesSettings }

/** The status of a vendor that lacks a path. */
const NO_SUCH_PATH = [404, 405, 501]

export function createResponsesCompat(parts: ResponsesParts): Provider {
  const { id, settings, clock } = parts
  const encoder = createBodyEncoder(settings)
  const upstream = createUpstream(parts, {
    errorFromResponse: refusalOf,
    errorFromBody: failureOf,
    listHeaders: ['openai-beta'],
  })

  const fallbackFor = (call: ChatCall) => fallbackOf('resp_', call, clock)

  const request = (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    upstream.request({ path: '/responses', body: encoder.answer(call, stream), call, stream }, signal)

  async function complete(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const response = await request(call, signal, false)
    const faults = upstream.faultsOf(call.model, response)
    const completion = answerOf(responseIn(await response.text(), faults), fallbackFor(call))
    if (completion) return completion
    throw faults.notUnderstood('answered with JSON that is not a response')
  }

  const reading = (call: ChatCall, faults: Faults) => ({
    decoder: () => createEventDecoder(createEventReader(fallbackFor(call)), faults),
    whole: (text: string) => {
      const chunk = createEventReader(fallbackFor(call)).take(endOf(responseIn(text, faults)))
      return chunk ? [chunk] : []
    },
  })

  const chunks = (call: ChatCall, signal: AbortSignal) =>
    upstream.chunks(() => request(call, signal, true), call, reading)

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const response = await upstream.send({ path: '/responses/input_tokens', body: encoder.count(call), call }, signal)
    if (NO_SUCH_PATH.includes(response.status)) {
      response.drop()
      // Compatible vendors may lack this path: do not request it again.
      delete chat.countTokens
      throw upstream.notUnderstood('cannot count tokens', response.status)
    }
    if (!isSuccess(response)) throw await upstream.errorFrom(response, call.model)
    return upstream.readTokenCount(response, 'input_tokens')
  }

  const chat: ChatProvider = { complete, chunks, countTokens }
  const passthrough: PassthroughProvider = {
    dialect: 'chatcompat-response',
    async send(call, stream, signal) {
      const body = JSON.stringify(passthroughBody(call, settings, encoder.defaults(call.model)))
      const response = await upstream.request({ path: '/responses', body, call, stream, headers: call.headers }, signal)
      return stream ? upstream.streamToPass(response, call, reading) : response
    },
    faultsOf: upstream.faultsOf,
  }
  return {
    id,
    kind: 'responses-compat',
    chat,
    ...(settings.passthrough ? { passthrough } : {}),
    listModels: (signal) => upstream.list('/models', (payload) => readModelList(payload, settings.chat_models), signal),
  }
}
