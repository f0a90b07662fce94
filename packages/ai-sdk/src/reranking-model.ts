/** Rerank for the AI SDK. */
import type { RerankingModelV4, RerankingModelV4CallOptions, SharedV4Warning } from '@ai-sdk/provider'
import { z } from 'zod/v4'
import { ownFields, responseOf, sendRequest } from './http.ts'
import { type ModelParts, PROVIDER } from './settings.ts'

const Ranked = z.object({
  id: z.string().nullish(),
  model: z.string().nullish(),
  results: z.array(z.object({ index: z.number().int().nonnegative(), relevance_score: z.number() })),
  usage: z.object({ total_tokens: z.number().nullish() }).nullish(),
})

export function createRerankingModel({ connection, modelId }: ModelParts): RerankingModelV4 {
  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.reranking`,
    modelId,
    async doRerank(options) {
      const { headers, abortSignal } = options
      const { body, warnings } = rerankRequest(modelId, options)
      const { value, responseHeaders } = await sendRequest(connection, {
        path: '/rerank',
        schema: Ranked,
        body,
        headers,
        abortSignal,
      })
      const tokens = value.usage?.total_tokens
      return {
        ranking: value.results.map(({ index, relevance_score }) => ({ index, relevanceScore: relevance_score })),
        warnings,
        ...(tokens == null ? {} : { providerMetadata: { [PROVIDER]: { totalTokens: tokens } } }),
        response: {
          ...responseOf(value.model ?? modelId, responseHeaders),
          ...(value.id == null ? {} : { id: value.id }),
        },
      }
    },
  }
}

/** The AI SDK ranks by whole objects; the gateway reads the fields that `rank_fields` names. */
export function rerankRequest(
  modelId: string,
  { documents, query, topN, providerOptions }: RerankingModelV4CallOptions,
): { body: Record<string, unknown>; warnings: SharedV4Warning[] } {
  const own = ownFields(providerOptions)
  const asJson = documents.type === 'object' && own.rank_fields === undefined
  const body = {
    query,
    documents: asJson ? documents.values.map((document) => JSON.stringify(document)) : documents.values,
    top_n: topN,
    ...own,
    model: modelId,
  }
  const details = 'Objects are sent as JSON text. Name the fields to rank by in providerOptions.gatehouse.rankFields.'
  return { body, warnings: asJson ? [{ type: 'compatibility', feature: 'object documents', details }] : [] }
}
