/** Reranking with the `cohere-ai` package, by its clients of both versions of the API. */
import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai'
import type { FamilyFault, FamilyRow, Gateway } from '../family.ts'
import type { Ranked, RerankClient } from '../types.ts'

type Answer = {
  results: { index: number; relevanceScore: number; document?: { text: string } }[]
  meta?: { billedUnits?: { searchUnits?: number } }
}

function replyOf({ results, meta }: Answer): Ranked {
  const units = meta?.billedUnits?.searchUnits
  const texts = results.flatMap(({ document }) => (document ? [document.text] : []))
  return {
    order: results.map(({ index }) => index),
    scores: results.map(({ relevanceScore }) => relevanceScore),
    ...(texts.length > 0 ? { texts } : {}),
    ...(units === undefined ? {} : { units }),
  }
}

/** Its message holds the status and the whole body. */
function faultOf(error: unknown): FamilyFault {
  if (!(error instanceof CohereError)) return { status: undefined, message: String(error), is_own_class: false }
  const { error: reply } = (error.body ?? {}) as { error?: { param?: string | null } }
  return { status: error.statusCode, message: error.message, is_own_class: true, param: reply?.param }
}

function second({ origin, token }: Gateway): RerankClient {
  const client = new CohereClientV2({ token, environment: origin, maxRetries: 0 })
  return {
    counts: true,
    rank: async ({ top, ...params }) => replyOf(await client.rerank({ ...params, ...(top ? { topN: top } : {}) })),
    fault: faultOf,
  }
}

function first({ origin, token }: Gateway): RerankClient {
  const client = new CohereClient({ token, environment: origin, maxRetries: 0 })
  const rank = async ({ top, ...params }: Parameters<RerankClient['rank']>[0]) =>
    replyOf(await client.rerank({ ...params, ...(top ? { topN: top } : {}) }))
  return {
    counts: true,
    rank,
    async rankObjects({ documents, model, query }) {
      const encoded = documents.map(({ text, page }) => ({ text, page: String(page) }))
      return replyOf(await client.rerank({ model, query, documents: encoded }))
    },
    withTexts: async ({ model, query, documents }) =>
      replyOf(await client.rerank({ model, query, documents, returnDocuments: true })),
    fault: faultOf,
  }
}

const shared = { packages: ['cohere-ai'], base: '', dialect: 'rerank' } as const

export const cohereRerank: FamilyRow<RerankClient>[] = [
  { ...shared, name: '`cohere-ai` 8, `CohereClientV2`', connect: second },
  { ...shared, name: '`cohere-ai` 8, `CohereClient`', connect: first },
]
