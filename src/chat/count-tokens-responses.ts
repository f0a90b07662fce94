/** `POST /v1/responses/input_tokens`: how many tokens a response would read, with what it goes on from. */

import Type from 'typebox'
import type { Route } from '../http/context.ts'
import { ResponsesRequest } from '../protocols/responses/client/schema.ts'
import { type CountParts, countTokensRoute } from './count-tokens.ts'
import { responsesDialect } from './dialects/responses.ts'
import type { StoredResponses } from './stored-responses.ts'

const ResponsesCount = Type.Object(
  { object: Type.Literal('response.input_tokens'), input_tokens: Type.Integer({ minimum: 0 }) },
  { title: 'ResponsesCount' },
)

export function responsesCountRoute({
  storedResponses,
  ...parts
}: CountParts & { storedResponses: StoredResponses }): Route {
  const { family, path, operation, parse, read } = responsesDialect({ storedResponses, clock: parts.clock })
  return countTokensRoute(
    {
      family,
      path: `${path}/input_tokens`,
      operation: {
        summary: 'Count the tokens of a response',
        description: 'By the vendor where it can be asked, else an estimate, in which media count by rules of thumb.',
        tag: operation.tag,
        request: ResponsesRequest,
        response: ResponsesCount,
        errors: ['previous_response_not_found'],
        ...(operation.example === undefined ? {} : { example: operation.example }),
      },
      // Nothing is kept of it: that is done by the writer of an answer, and there is none.
      parse: async (body, context) => (await read?.(body, context))?.request ?? parse(body),
      write: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
    },
    parts,
  )
}
