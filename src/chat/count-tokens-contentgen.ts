/** `:countTokens` of the contentgen dialect. */

import Type from 'typebox'
import type { Route } from '../http/context.ts'
import { parseCount } from '../protocols/contentgen/client/request.ts'
import { CountTokensRequest } from '../protocols/contentgen/client/schema.ts'
import { ContentgenError, contentgenErrorBody } from '../spec/contentgen-error.ts'
import { type CountParts, countTokensRoute } from './count-tokens.ts'
import { MODEL_PARAMETER } from './dialects/contentgen.ts'

const CountTokensAnswer = Type.Object({ totalTokens: Type.Integer({ minimum: 0 }) }, { title: 'CountTokensResponse' })

export const contentgenCountRoute = (parts: CountParts): Route => ({
  ...countTokensRoute(
    {
      family: 'contentgen-compat',
      path: '/v1beta/models/{model}:countTokens',
      operation: {
        summary: 'Count the tokens of contents',
        description: 'By the vendor where it can be asked, else an estimate, in which media count by rules of thumb.',
        tag: 'Chat',
        params: MODEL_PARAMETER,
        request: CountTokensRequest,
        response: CountTokensAnswer,
        example: { contents: [{ role: 'user', parts: [{ text: 'What is Gatehouse?' }] }] },
      },
      parse: (body, { params }) => parseCount(body, { model: params.model ?? '' }),
      write: (tokens) => ({ totalTokens: tokens }),
      writeError: contentgenErrorBody,
    },
    parts,
  ),
  errorSchema: ContentgenError,
})
