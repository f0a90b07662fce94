/** `POST /v1/rerank`, in the form that the clients of Cohere and Jina share. */
import Type from 'typebox'
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { presentMembers, refusalOf } from '../../protocols/shared/request-error.ts'
import { ErrorBody, type ErrorCode, errorBody, type GatewayError } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import { titled } from '../../spec/fields.ts'
import { RerankAnswer, RerankRequest } from '../../spec/rerank-request.ts'
import { documentObject } from './documents.ts'
import type { RerankEndpoint, RerankFamily } from './rerank.ts'

const check = checker(RerankRequest)

/** Cohere's clients read the message at the top level. */
const RerankError = titled('RerankError', { ...ErrorBody.properties, message: Type.String() })
const encodeError = (error: GatewayError): Type.Static<typeof RerankError> => ({
  ...errorBody(error),
  message: error.message,
})

/** Under both versions: current clients of Cohere use the second. */
export const rerankEndpoints = (family: RerankFamily): RerankEndpoint[] =>
  ['/v1/rerank', '/v2/rerank'].map((path) => ({
    path,
    operation: {
      summary: 'Put documents in the order of their relevance to a query',
      description: 'The best first; of equal ones the earlier.',
      tag: 'Rerank',
      request: RerankRequest,
      response: RerankAnswer,
      example: {
        model: 'sandbox/rerank',
        query: 'When does the snow melt?',
        documents: ['Boats leave at noon.', 'The snow melts in April.'],
        top_n: 1,
      },
      errors: RERANK_ERRORS,
    },
    encodeError,
    errorSchema: RerankError,
    family,
    endpoint: 'rerank',
    decode: parseRerankRequest,
    encode: ({ input, answer, usage, model }, { request_id }): RerankAnswer => ({
      id: request_id,
      model,
      results: answer.results.map((result) => ({
        ...result,
        ...(input.return_documents ? { document: documentObject(input.documents[result.index]) } : {}),
      })),
      usage,
      meta: { billed_units: { search_units: answer.search_units } },
    }),
  }))

/** `null` is absent, unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
function parseRerankRequest(body: unknown): RerankRequest {
  const request: unknown = presentMembers(body)
  if (!check.Check(request)) throw refusalOf(diagnose(RerankRequest, request))
  return request
}

const RERANK_ERRORS: ErrorCode[] = [...MODEL_REQUEST_ERRORS, 'context_length_exceeded', ...UPSTREAM_ERRORS]
