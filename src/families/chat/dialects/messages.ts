/** `POST /v1/messages`: the Messages protocol over HTTP. */
import { encodeMessagesError, errorForClient, messagesErrorStatus } from '../../../protocols/messages/client/error.ts'
import { messagesPassthrough } from '../../../protocols/messages/client/passthrough.ts'
import { parseMessages } from '../../../protocols/messages/client/request.ts'
import { createMessagesEncoder } from '../../../protocols/messages/client/response.ts'
import {
  MessagesAnswer,
  MessagesError,
  MessagesEvent,
  MessagesRequest,
} from '../../../protocols/messages/client/schema.ts'
import { messagesFiles } from '../../files/file-references.ts'
import type { Dialect } from './dialect.ts'

/** Anthropic's own keep-alive: "any number of ping events" may stand in a stream (API reference, streaming messages). */
const PING = { keep_alive: 'event: ping\ndata: {"type":"ping"}\n\n' }

export function messagesDialect(): Dialect {
  return {
    family: 'messages-compat',
    id_prefix: 'msg_',
    path: '/v1/messages',
    operation: {
      summary: 'Create a message',
      description: 'With `stream: true` the answer is a stream of named server-sent events, ended by `message_stop`.',
      tag: 'Chat',
      request: MessagesRequest,
      nested_nulls: true,
      response: MessagesAnswer,
      stream: MessagesEvent,
      errors: ['thread_unsupported_request'],
      example: {
        model: 'sandbox/general',
        max_tokens: 1024,
        messages: [{ role: 'user', content: 'What is Gatehouse?' }],
      },
    },
    exact: ['input'],
    framing: PING,
    parse: parseMessages,
    files: messagesFiles,
    passthrough: messagesPassthrough,
    writer: createMessagesEncoder,
    encodeError: encodeMessagesError,
    errorStatus: messagesErrorStatus,
    errorSchema: MessagesError,
    errorForClient,
  }
}
