/** `POST /v1/messages/count_tokens`, which agents ask before each long request. */
import Type from 'typebox'
import type { Route } from '../http/context.ts'
import { isRecord } from '../kit/json.ts'
import { encodeMessagesError } from '../protocols/messages/client/error.ts'
import { minimalRequestOf } from '../protocols/messages/client/minimal-request.ts'
import { messagesPassthrough } from '../protocols/messages/client/passthrough.ts'
import { parseCount } from '../protocols/messages/client/request.ts'
import { CountRequest, MessagesError } from '../protocols/messages/client/schema.ts'
import { type CountParts, countTokensRoute } from './count-tokens.ts'

const MessagesCount = Type.Object({ input_tokens: Type.Integer({ minimum: 0 }) }, { title: 'MessagesCount' })

export const messagesCountRoute = (parts: CountParts): Route => ({
  ...countTokensRoute(
    {
      family: 'messages-compat',
      path: '/v1/messages/count_tokens',
      operation: {
        summary: 'Count the tokens of a message',
        description: 'By the vendor where it can be asked, else an estimate, in which media count by rules of thumb.',
        tag: 'Chat',
        request: CountRequest,
        response: MessagesCount,
        example: { model: 'sandbox/general', messages: [{ role: 'user', content: 'What is Gatehouse?' }] },
      },
      parse: (body) => parseCount(body),
      passthrough: {
        ...messagesPassthrough,
        // A question for a count has no limit of its answer.
        minimalRequest: (body) => minimalRequestOf(isRecord(body) ? { ...body, max_tokens: 1 } : body),
      },
      write: (tokens) => ({ input_tokens: tokens }),
      writeError: encodeMessagesError,
    },
    parts,
  ),
  errorSchema: MessagesError,
})
