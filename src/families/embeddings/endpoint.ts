/** `POST /v1/embeddings`, in the OpenAI form. */
import { base64OfFloats } from '../../kit/float32.ts'
import { EmbeddingList, EmbeddingRequest } from '../../spec/embedding-request.ts'
import type { ErrorCode } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import type { EmbeddingEndpoint, EmbeddingFamily } from './embeddings.ts'
import { parseEmbeddingRequest } from './parse.ts'

export const EMBEDDING_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'unsupported_value',
  'context_length_exceeded',
  ...UPSTREAM_ERRORS,
]

export const embeddingsEndpoint = (family: EmbeddingFamily): EmbeddingEndpoint => ({
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
  family,
  endpoint: 'embeddings',
  decode: parseEmbeddingRequest,
  encode({ input, answer: { embeddings }, usage, model }): EmbeddingList {
    const encoded = input.encoding_format === 'base64' ? base64OfFloats : (vector: number[]) => vector
    const data = embeddings.map((vector, index) => ({
      object: 'embedding' as const,
      index,
      embedding: encoded(vector),
    }))
    return { object: 'list', data, model, usage }
  },
})
