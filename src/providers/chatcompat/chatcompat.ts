/** Kind `chatcompat`: any vendor or runtime with the OpenAI chat API, including another Gatehouse. */
import type { Abortable } from '../../kit/abortable.ts'
import { chunksOf } from '../../protocols/chatcompat/upstream/answer.ts'
import { createBodyEncoder } from '../../protocols/chatcompat/upstream/request.ts'
import { createChunkDecoder, readWhole } from '../../protocols/chatcompat/upstream/stream.ts'
import { type Faults, fallbackOf } from '../../protocols/shared/upstream.ts'
import { readModelList } from '../model-list.ts'
import type { ChatCall, PassthroughProvider, Provider } from '../provider.ts'
import type { ProviderSettings } from '../settings.ts'
import { createUpstream, type UpstreamParts } from '../upstream/upstream.ts'
import type { UpstreamResponse } from '../upstream/upstream-request.ts'

type ChatcompatParts = UpstreamParts & { settings: ProviderSettings }

/** A call, with the headers of the client that may pass. */
type HeaderCall = ChatCall & { headers?: Record<string, string> }

export function createChatcompat(parts: ChatcompatParts): Provider {
  const { id, settings, clock } = parts
  const encodeBody = createBodyEncoder(settings)
  const upstream = createUpstream(parts, { listHeaders: ['openai-beta'] })

  const request = (call: HeaderCall, signal: Abortable, stream: boolean): Promise<UpstreamResponse> =>
    upstream.request(
      { path: '/chat/completions', body: encodeBody(call, stream), call, stream, headers: call.headers },
      signal,
    )

  const fallbackFor = (call: ChatCall) => fallbackOf('chatcmpl-', call, clock)

  const reading = (call: ChatCall, faults: Faults) => ({
    decoder: () => createChunkDecoder(fallbackFor(call), faults),
    whole: (text: string) => chunksOf(readWhole(text, fallbackFor(call), faults)),
  })

  const chunks = (call: ChatCall, signal: AbortSignal) =>
    upstream.chunks(() => request(call, signal, true), call, reading)

  const streamFor = async (call: HeaderCall, signal: Abortable) =>
    upstream.streamToPass(await request(call, signal, true), call, reading)

  /** The request is encoded as for translation: unknown fields pass only if the operator allows them. */
  const passthrough: PassthroughProvider = {
    dialect: 'chatcompat',
    send: (call, stream, signal) => (stream ? streamFor(call, signal) : request(call, signal, false)),
    faultsOf: upstream.faultsOf,
  }

  return {
    id,
    kind: 'chatcompat',
    chat: {
      async complete(call, signal) {
        const response = await request(call, signal, false)
        return readWhole(await response.text(), fallbackFor(call), upstream.faultsOf(call.model, response))
      },
      chunks,
    },
    ...(settings.quirks.passthrough ? { passthrough } : {}),
    listModels: (signal) => upstream.list('/models', (payload) => readModelList(payload, settings.chat_models), signal),
  }
}
