/** Rerank over HTTP, in the shape that Cohere's and Jina's clients share. */
import Type from 'typebox'
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Route } from '../http/context.ts'
import { checker } from '../kit/checker.ts'
import type { Clock } from '../kit/clock.ts'
import { diagnose, foundText } from '../kit/diagnose.ts'
import { memberOf } from '../kit/json.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { refusalOf } from '../protocols/request-error.ts'
import {
  ErrorBody,
  type ErrorCode,
  errorBody,
  GatewayError,
  MODEL_REQUEST_ERRORS,
  UPSTREAM_ERRORS,
} from '../spec/error.ts'
import { RerankAnswer, RerankRequest } from '../spec/rerank-request.ts'
import { shown } from './documents.ts'
import type { RerankFamily } from './rerank.ts'

type RerankRouteParts = { pipeline: Pipeline; rerank: RerankFamily; settings: ServerSettings; clock: Clock }

const check = checker(RerankRequest)

/** Cohere's clients read the message at the top. */
const RerankError = Type.Object({ ...ErrorBody.properties, message: Type.String() }, { title: 'RerankError' })
const writeError = (error: GatewayError): Type.Static<typeof RerankError> => ({
  ...errorBody(error),
  message: error.message,
})

/** Both versions: current clients of Cohere use the second. */
export function rerankRoutes({ pipeline, rerank, settings, clock }: RerankRouteParts): Route[] {
  async function handle(context: Context): Promise<Response> {
    const limits = bodyLimits(settings, clock, 'text')
    const body = await readJson(context.request, limits)
    pipeline.authorize(context, { family: 'rerank', model: memberOf(body, 'model') })
    const request = parseRerankRequest(body)
    const { send, ...chosen } = pipeline.prepare(rerank, context, request)
    const headers = modelHeaders(chosen, clock)
    const { answer: ranked, usage } = await send()
    const { results, search_units } = ranked
    const answer: RerankAnswer = {
      id: context.request_id,
      model: chosen.model.id,
      results: results.map((result) => ({
        ...result,
        ...(request.return_documents ? { document: shown(request.documents[result.index]) } : {}),
      })),
      usage,
      meta: { billed_units: { search_units } },
    }
    return Response.json(answer, { headers })
  }
  return ['/v1/rerank', '/v2/rerank'].map((path) => ({
    method: 'POST',
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
    writeError,
    errorSchema: RerankError,
    handle,
  }))
}

/** `null` is absent, unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
function parseRerankRequest(body: unknown): RerankRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  }
  const request: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) {
    // Assigning `__proto__` would set the object's prototype.
    if (value !== null && name !== '__proto__') request[name] = value
  }
  if (!check.Check(request)) throw refusalOf(diagnose(RerankRequest, request))
  return request
}

const RERANK_ERRORS: ErrorCode[] = [...MODEL_REQUEST_ERRORS, 'context_length_exceeded', ...UPSTREAM_ERRORS]
