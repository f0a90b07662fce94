/** Kind `chatcompat`: any vendor or runtime that speaks the OpenAI chat API over HTTP, another Gatehouse included. */

import type { ChatChunk } from '../../protocols/canonical.ts'
import { chunksOf } from '../../protocols/chatcompat/upstream/answer.ts'
import { createBodyEncoder } from '../../protocols/chatcompat/upstream/request.ts'
import { readStream, readWhole } from '../../protocols/chatcompat/upstream/stream.ts'
import { fallbackOf } from '../../protocols/upstream.ts'
import { readModelList } from '../model-list.ts'
import type { ChatCall, PassthroughProvider, Provider } from '../provider.ts'
import type { ProviderSettings } from '../settings.ts'
import type { UpstreamResponse } from '../upstream/transport-response.ts'
import { createUpstream, type UpstreamParts } from '../upstream/upstream.ts'

type ChatcompatParts = UpstreamParts & { settings: ProviderSettings }

/** A call, with what the client's own headers ask of the vendor. */
type Asking = ChatCall & { headers?: Record<string, string> }

export function createChatcompat(parts: ChatcompatParts): Provider {
  const { id, settings, clock } = parts
  const writeBody = createBodyEncoder(settings)
  const upstream = createUpstream(parts, { listHeaders: ['openai-beta'] })

  const ask = (call: Asking, signal: AbortSignal, stream: boolean): Promise<UpstreamResponse> =>
    upstream.request(
      { path: '/chat/completions', body: writeBody(call, stream), call, stream, headers: call.headers },
      signal,
    )

  const namedOf = (call: ChatCall) => fallbackOf('chatcmpl-', call, clock)

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    yield* chunksIn(await ask(call, signal, true), call)
  }

  function chunksIn(answer: UpstreamResponse, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    const faults = upstream.faultsOf(call.model, answer)
    return upstream.readStreamOrWhole(answer, {
      events: () => readStream(answer, namedOf(call), faults),
      whole: async () => chunksOf(readWhole(await answer.text(), namedOf(call), faults)),
    })
  }

  /** The request is written as always: of unknown fields, a vendor sees those that its operator allows. */
  const passthrough: PassthroughProvider = {
    dialect: 'chatcompat',
    send: async (call, stream, signal) =>
      upstream.toPassthroughResponse(await ask(call, signal, stream), call, stream ? chunksIn : undefined),
  }

  return {
    id,
    kind: 'chatcompat',
    chat: {
      async complete(call, signal) {
        const answer = await ask(call, signal, false)
        return readWhole(await answer.text(), namedOf(call), upstream.faultsOf(call.model, answer))
      },
      chunks,
    },
    ...(settings.quirks.passthrough ? { passthrough } : {}),
    listModels: (signal) => upstream.list('/models', (payload) => readModelList(payload, settings.chat_models), signal),
  }
}
