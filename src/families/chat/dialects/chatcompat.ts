/** `POST /v1/chat/completions`: the chat-completions protocol over HTTP. */
import { customNames } from '../../../protocols/chatcompat/client/custom-calls.ts'
import { chatcompatPassthrough } from '../../../protocols/chatcompat/client/passthrough.ts'
import { parseChatRequest } from '../../../protocols/chatcompat/client/request.ts'
import { createChunkEncoder, encodeWhole, failEvent } from '../../../protocols/chatcompat/client/response.ts'
import {
  type ChatRequest as CanonicalRequest,
  type ChatCompletion as ChatAnswer,
  OPENROUTER,
} from '../../../protocols/shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../../protocols/shared/protocol.ts'
import { ChatChunk, ChatCompletion } from '../../../spec/chat-completion.ts'
import { ChatRequest } from '../../../spec/chat-request.ts'
import { withRoutingFields } from '../../../spec/routing-fields.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { Dialect } from './dialect.ts'

type Settings = { delta_mirror: boolean }

/** `settings` are read for each answer, so that a reload applies. */
export const chatcompatDialect = (settings: Settings): Dialect => ({
  family: 'chatcompat',
  id_prefix: 'chatcmpl-',
  path: '/v1/chat/completions',
  has_routing_fields: true,
  operation: {
    summary: 'Create a chat completion',
    description:
      'With `stream: true` the answer is a stream of server-sent events, one chunk each, ended by `data: [DONE]`.',
    tag: 'Chat',
    nested_nulls: true,
    request: withRoutingFields(ChatRequest),
    response: ChatCompletion,
    stream: ChatChunk,
    example: { model: 'sandbox/general', messages: [{ role: 'user', content: 'What is Gatehouse?' }] },
  },
  parse: (body, client) => parseChatRequest(body, client?.header('user-agent')),
  passthrough: chatcompatPassthrough,
  writer: (head, request) => new ChatcompatEncoder(head, request, settings),
})

/** The encoder of a stream is created with its first use: a whole response needs none. */
class ChatcompatEncoder implements ResponseEncoder {
  readonly #head: ResponseHead
  readonly #request: CanonicalRequest
  readonly #settings: Settings
  #stream: ReturnType<typeof createChunkEncoder> | undefined

  constructor(head: ResponseHead, request: CanonicalRequest, settings: Settings) {
    this.#head = head
    this.#request = request
    this.#settings = settings
  }

  whole(answer: ChatAnswer, usage: Usage): unknown {
    const { delta_mirror } = this.#settings
    const { tools, [OPENROUTER]: openrouter } = this.#request
    return encodeWhole(answer, this.#head, { usage, delta_mirror, customs: tools && customNames(tools), openrouter })
  }

  get encode() {
    return this.#chunks.encode
  }

  get includesUsage() {
    return this.#chunks.includesUsage
  }

  get end() {
    return this.#chunks.end
  }

  /** A stream that passes has no other encoder. */
  readonly fail = failEvent

  get #chunks() {
    const { stream_options, tools, [OPENROUTER]: openrouter } = this.#request
    this.#stream ??= createChunkEncoder(this.#head, {
      include_usage: stream_options?.include_usage === true,
      customs: tools && customNames(tools),
      openrouter,
    })
    return this.#stream
  }
}
