/** `POST /v1/chat/completions`: the chat-completions protocol over HTTP. */
import { chatcompatPassthrough } from '../../../protocols/chatcompat/client/passthrough.ts'
import { parseChatRequest } from '../../../protocols/chatcompat/client/request.ts'
import { chatcompatWriter } from '../../../protocols/chatcompat/client/response.ts'
import { ChatChunk, ChatCompletion } from '../../../spec/chat-completion.ts'
import { ChatRequest } from '../../../spec/chat-request.ts'
import { withRoutingFields } from '../../../spec/routing-fields.ts'
import { chatcompatFiles } from '../../files/file-references.ts'
import type { Dialect } from './dialect.ts'

type Settings = { delta_mirror: boolean }

/** `settings` are read for each answer, so that a reload applies. */
export const chatcompatDialect = (settings: Settings, defer?: Dialect['defer']): Dialect => ({
  ...(defer && { defer, deferred_by: 'tools' }),
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
  parse: parseChatRequest,
  files: chatcompatFiles,
  passthrough: chatcompatPassthrough,
  writer: chatcompatWriter(settings),
})
