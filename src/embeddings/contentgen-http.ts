/** Embeddings over HTTP in the contentgen shape: one content by `:embedContent`, several by `:batchEmbedContents`. */
import Type from 'typebox'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Operation, Route } from '../http/context.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import { ContentgenError, contentgenErrorBody } from '../spec/contentgen-error.ts'
import type { EmbeddingRequest } from '../spec/embedding-request.ts'
import { GatewayError } from '../spec/error.ts'
import { BatchEmbedRequest, EmbedContentRequest, errorForClient, parseContents } from './contentgen-parse.ts'
import { EMBEDDING_ERRORS, type EmbeddingsRouteParts } from './http.ts'

type Method = 'embedContent' | 'batchEmbedContents'

const Vector = Type.Object({ values: Type.Array(Type.Number()) }, { title: 'ContentEmbedding' })
const usageMetadata = Type.Object({ promptTokenCount: Type.Integer(), totalTokenCount: Type.Integer() })
const EmbedContentResponse = Type.Object({ embedding: Vector, usageMetadata }, { title: 'EmbedContentResponse' })
const BatchEmbedResponse = Type.Object(
  { embeddings: Type.Array(Vector), usageMetadata },
  { title: 'BatchEmbedContentsResponse' },
)

const part = { parts: [{ text: 'A river in spring' }] }
const OPERATIONS: Record<Method, Operation> = {
  embedContent: {
    summary: 'Embed one content, in the contentgen shape',
    tag: 'Embeddings',
    params: { model: 'Model id, with or without the provider prefix; its slash may be raw or `%2F`.' },
    request: EmbedContentRequest,
    response: EmbedContentResponse,
    example: { content: part },
    errors: EMBEDDING_ERRORS,
  },
  batchEmbedContents: {
    summary: 'Embed several contents, in the contentgen shape',
    tag: 'Embeddings',
    params: { model: 'Model id, with or without the provider prefix; its slash may be raw or `%2F`.' },
    request: BatchEmbedRequest,
    response: BatchEmbedResponse,
    example: { requests: [{ content: part }] },
    errors: EMBEDDING_ERRORS,
  },
}

/** Under every version that clients use, and without `models/`, which some leave out before a name with a slash. */
export function contentgenEmbeddingRoutes({ pipeline, embeddings, settings, clock }: EmbeddingsRouteParts): Route[] {
  async function asked(request: EmbeddingRequest, { context, isBatch }: { context: Context; isBatch: boolean }) {
    try {
      const { send, ...chosen } = pipeline.prepare(embeddings, context, request)
      const headers = modelHeaders(chosen, clock)
      return { headers, ...(await send()) }
    } catch (thrown) {
      throw thrown instanceof GatewayError ? errorForClient(thrown, isBatch) : thrown
    }
  }

  async function handle(context: Context): Promise<Response> {
    const target = context.params.target ?? ''
    const colon = target.lastIndexOf(':')
    const isBatch = target.slice(colon + 1) === 'batchEmbedContents'
    const model = target.slice(0, colon).replace(/^models\//, '')
    const limits = bodyLimits(settings, clock, 'text')
    const body = await readJson(context.request, limits)
    pipeline.authorize(context, { family: 'embeddings', model })
    const request = parseContents(body, { model, isBatch })
    const { answer: embedded, usage, headers } = await asked(request, { context, isBatch })
    const values = embedded.embeddings.map((vector) => ({ values: vector }))
    const counts = { promptTokenCount: usage.prompt_tokens, totalTokenCount: usage.total_tokens }
    return Response.json(
      { ...(isBatch ? { embeddings: values } : { embedding: values[0] }), usageMetadata: counts },
      { headers },
    )
  }
  const shared = { method: 'POST' as const, writeError: contentgenErrorBody, errorSchema: ContentgenError, handle }
  const told = (['embedContent', 'batchEmbedContents'] as const).map(
    (method): Route => ({
      ...shared,
      path: `/v1beta/models/:target{.+:${method}}`,
      shown: `/v1beta/models/{model}:${method}`,
      operation: OPERATIONS[method],
    }),
  )
  const others: Route = {
    ...shared,
    // The last segment of the path ends in a colon and one of the two methods.
    path: '/:version{v1|v1alpha|v1beta}/:target{.+:(?:embedContent|batchEmbedContents)}',
    hidden: true,
    operation: OPERATIONS.embedContent,
  }
  return [...told, others]
}
