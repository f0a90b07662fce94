/** Embeddings over HTTP in the OpenAI shape. */
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Route } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import { base64OfFloats } from '../kit/float32.ts'
import { memberOf } from '../kit/json.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { EmbeddingList, EmbeddingRequest } from '../spec/embedding-request.ts'
import { type ErrorCode, MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../spec/error.ts'
import type { EmbeddingFamily } from './embeddings.ts'
import { parseEmbeddingRequest } from './parse.ts'

export type EmbeddingsRouteParts = {
  pipeline: Pipeline
  embeddings: EmbeddingFamily
  settings: ServerSettings
  clock: Clock
}

export function embeddingsRoute({ pipeline, embeddings, settings, clock }: EmbeddingsRouteParts): Route {
  return {
    method: 'POST',
    path: '/v1/embeddings',
    operation: {
      summary: 'Create embeddings',
      description: 'One vector for each input, in order. Long lists are split as the vendor wants them.',
      tag: 'Embeddings',
      request: EmbeddingRequest,
      response: EmbeddingList,
      example: { model: 'sandbox/embedding', input: ['A river in spring', 'Snow melts into the stream'] },
      errors: EMBEDDING_ERRORS,
    },
    async handle(context) {
      const limits = bodyLimits(settings, clock, 'text')
      const body = await readJson(context.request, limits)
      pipeline.authorize(context, { family: 'embeddings', model: memberOf(body, 'model') })
      const request = parseEmbeddingRequest(body)
      const { send, ...chosen } = pipeline.prepare(embeddings, context, request)
      const headers = modelHeaders(chosen, clock)
      const { answer: embedded, usage } = await send()
      const write = request.encoding_format === 'base64' ? base64OfFloats : (vector: number[]) => vector
      const answer: EmbeddingList = {
        object: 'list',
        data: embedded.embeddings.map((vector, index) => ({ object: 'embedding', index, embedding: write(vector) })),
        model: chosen.model.id,
        usage,
      }
      return Response.json(answer, { headers })
    },
  }
}

export const EMBEDDING_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'unsupported_value',
  'context_length_exceeded',
  ...UPSTREAM_ERRORS,
]
