/** Kind `responses-compat`: OpenAI's Responses API, and every vendor or runtime that speaks as it does. */

import type { ChatChunk, ChatCompletion } from '../../protocols/canonical.ts'
import { readEvents } from '../../protocols/event-source.ts'
import { answerOf, endOf, responseIn } from '../../protocols/responses/upstream/answer.ts'
import { failureOf, refusalOf } from '../../protocols/responses/upstream/error.ts'
import { createEventReader } from '../../protocols/responses/upstream/events.ts'
import { passthroughBody } from '../../protocols/responses/upstream/passthrough.ts'
import { createBodyEncoder } from '../../protocols/responses/upstream/request.ts'
import { fallbackOf } from '../../protocols/upstream.ts'
import { readModelList } from '../model-list.ts'
import type { ChatCall, ChatProvider, PassthroughProvider, Provider } from '../provider.ts'
import type { UpstreamResponse } from '../upstream/transport-response.ts'
import { createUpstream, isSuccess, type UpstreamParts } from '../upstream/upstream.ts'
import type { ResponsesSettings } from './settings.ts'

type ResponsesParts = UpstreamParts & { settings: ResponsesSettings }

/** What a vendor says to a path that it does not have. */
const NO_SUCH_PATH = [404, 405, 501]

export function createResponsesCompat(parts: ResponsesParts): Provider {
  const { id, settings, clock } = parts
  const write = createBodyEncoder(settings)
  const upstream = createUpstream(parts, {
    errorFromResponse: refusalOf,
    errorFromBody: failureOf,
    listHeaders: ['openai-beta'],
  })

  const namedOf = (call: ChatCall) => fallbackOf('resp_', call, clock)

  const ask = (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    upstream.request({ path: '/responses', body: write.answer(call, stream), call, stream }, signal)

  async function whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const answer = await ask(call, signal, false)
    const faults = upstream.faultsOf(call.model, answer)
    const completion = answerOf(responseIn(await answer.text(), faults), namedOf(call))
    if (completion) return completion
    throw faults.notUnderstood('answered with JSON that is not a response')
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    yield* chunksIn(await ask(call, signal, true), call)
  }

  function chunksIn(answer: UpstreamResponse, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    const faults = upstream.faultsOf(call.model, answer)
    const reader = createEventReader(namedOf(call))
    return upstream.readStreamOrWhole(answer, {
      events: () => readEvents(answer, reader, faults),
      async whole() {
        const chunk = reader.take(endOf(responseIn(await answer.text(), faults)))
        return chunk ? [chunk] : []
      },
    })
  }

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const answer = await upstream.send({ path: '/responses/input_tokens', body: write.count(call), call }, signal)
    if (NO_SUCH_PATH.includes(answer.status)) {
      answer.drop()
      // Imitators do not have it: from now on they are no longer asked.
      delete chat.countTokens
      throw upstream.notUnderstood('cannot count tokens', answer.status)
    }
    if (!isSuccess(answer)) throw await upstream.errorFrom(answer, call.model)
    return upstream.readTokenCount(answer, 'input_tokens')
  }

  const chat: ChatProvider = { complete: whole, chunks, countTokens }
  const passthrough: PassthroughProvider = {
    dialect: 'chatcompat-response',
    async send(call, stream, signal) {
      const body = JSON.stringify(passthroughBody(call, settings, write.defaults(call.model)))
      const answer = await upstream.request({ path: '/responses', body, call, stream, headers: call.headers }, signal)
      return upstream.toPassthroughResponse(answer, call, stream ? chunksIn : undefined)
    },
  }
  return {
    id,
    kind: 'responses-compat',
    chat,
    ...(settings.passthrough ? { passthrough } : {}),
    listModels: (signal) => upstream.list('/models', (payload) => readModelList(payload, settings.chat_models), signal),
  }
}
