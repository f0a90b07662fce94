/** One adapter for every vendor of rerankers that has an AI SDK package with `doRerank`. */
import { parseJson } from '../../kit/json.ts'
import type { RerankProvider } from '../provider.ts'
import { readBilledUnits } from '../text-api.ts'
import type { Connection } from './connection.ts'
import { createPackageErrors } from './errors.ts'
import type { RerankFamily, RerankingModel } from './text-families.ts'

export function createAiSdkRerank(connection: Connection<RerankFamily, RerankingModel>): RerankProvider {
  const { vendor } = connection
  const errors = createPackageErrors(connection)
  return {
    async rerank({ model, query, documents, top_n, max_tokens_per_doc, request_id }, signal) {
      const { fetch, wire } = await connection.fetchFor({ model, signal, request_id })
      const { maxTokensPerDocument: option } = vendor
      const own = option !== undefined && max_tokens_per_doc ? { [option]: max_tokens_per_doc } : {}
      try {
        const sdk = await connection.model(model, fetch)
        const { ranking } = await sdk.doRerank({
          documents: { type: 'text', values: documents },
          query,
          topN: top_n,
          abortSignal: signal,
          providerOptions: { [vendor.namespace]: own },
        })
        const results = ranking.map(({ index, relevanceScore }) => ({ index, relevance_score: relevanceScore }))
        return { results, ...readBilledUnits(parseJson(wire.response?.text ?? '')) }
      } catch (thrown) {
        throw errors.thrown(thrown, wire, { model, fields: {} })
      }
    },
  }
}
