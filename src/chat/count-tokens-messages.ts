/** `POST /v1/messages/count_tokens`, which agents ask before each long request. */
import Type from 'typebox'
import type { Route } from '../http/context.ts'
import { isRecord } from '../kit/json.ts'
import { type CountParts, countTokensRoute } from './count-tokens.ts'
import { parseCount } from './dialects/messages-compat.ts'
import { writeMessagesError } from './dialects/messages-compat-error.ts'
import { minimalRequestOf } from './dialects/messages-compat-minimal.ts'
import { messagesPassthrough } from './dialects/messages-compat-passthrough.ts'
import { CountRequest, MessagesError } from './dialects/messages-compat-schema.ts'

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
      writeError: writeMessagesError,
    },
    parts,
  ),
  errorSchema: MessagesError,
})
