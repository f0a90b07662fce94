/** Embeddings in the contentgen form: one content by `:embedContent`, several by `:batchEmbedContents`. */
import Type from 'typebox'
import { ContentgenError, contentgenErrorBody } from '../../spec/contentgen-error.ts'
import { titled } from '../../spec/fields.ts'
import { MODEL_PARAMETER, type Operation } from '../../spec/operation.ts'
import { BatchEmbedRequest, EmbedContentRequest, errorForClient, parseContents } from './contentgen-parse.ts'
import type { EmbeddingEndpoint, EmbeddingFamily } from './embeddings.ts'
import { EMBEDDING_ERRORS } from './endpoint.ts'

type Method = 'embedContent' | 'batchEmbedContents'

const Vector = titled('ContentEmbedding', { values: Type.Array(Type.Number()) })
const usageMetadata = Type.Object({ promptTokenCount: Type.Integer(), totalTokenCount: Type.Integer() })
const EmbedContentResponse = titled('EmbedContentResponse', { embedding: Vector, usageMetadata })
const BatchEmbedResponse = titled('BatchEmbedContentsResponse', { embeddings: Type.Array(Vector), usageMetadata })

const part = { parts: [{ text: 'A river in spring' }] }
const OPERATIONS: Record<Method, Operation> = {
  embedContent: {
    summary: 'Embed one content, in the contentgen shape',
    description: 'The texts of its parts are embedded as one.',
    tag: 'Embeddings',
    params: MODEL_PARAMETER,
    request: EmbedContentRequest,
    response: EmbedContentResponse,
    example: { content: part },
    errors: EMBEDDING_ERRORS,
  },
  batchEmbedContents: {
    summary: 'Embed several contents, in the contentgen shape',
    description: 'One vector a content, in their order.',
    tag: 'Embeddings',
    params: MODEL_PARAMETER,
    request: BatchEmbedRequest,
    response: BatchEmbedResponse,
    example: { requests: [{ content: part }] },
    errors: EMBEDDING_ERRORS,
  },
}

/** The endpoints by their method names. */
export const contentgenEmbeddingEndpoints = (family: EmbeddingFamily): Record<Method, EmbeddingEndpoint> => ({
  embedContent: endpointOf('embedContent', family),
  batchEmbedContents: endpointOf('batchEmbedContents', family),
})

function endpointOf(method: Method, family: EmbeddingFamily): EmbeddingEndpoint {
  const isBatch = method === 'batchEmbedContents'
  return {
    path: `/v1beta/models/{model}:${method}`,
    operation: OPERATIONS[method],
    encodeError: contentgenErrorBody,
    errorSchema: ContentgenError,
    family,
    endpoint: 'embeddings',
    decode: (body, { params }) => parseContents(body, { model: params.model ?? '', isBatch }),
    encode({ answer, usage }) {
      const values = answer.embeddings.map((vector) => ({ values: vector }))
      const usageMetadata = { promptTokenCount: usage.prompt_tokens, totalTokenCount: usage.total_tokens }
      return isBatch ? { embeddings: values, usageMetadata } : { embedding: values[0], usageMetadata }
    },
    errorForClient: (error) => errorForClient(error, isBatch),
  }
}
