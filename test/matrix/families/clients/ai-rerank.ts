/** Reranking with the `ai` package, by each suitable provider. */
import { createCohere } from '@ai-sdk/cohere'
import { type RerankingModel, rerank } from 'ai'
import { createGatehouse } from '../../../../packages/ai-sdk/src/gatehouse.ts'
import { aiFault } from '../../clients/ai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { Question, Ranked, RerankClient } from '../types.ts'

type Provider = (id: string) => RerankingModel

function clientOf(model: Provider): RerankClient {
  async function rank({ top, query, documents, ...params }: Question): Promise<Ranked> {
    const settings = { model: model(params.model), query, maxRetries: 0, ...(top ? { topN: top } : {}) }
    const { ranking, rerankedDocuments } = await rerank<string | { text: string; page: number }>({
      ...settings,
      documents,
    })
    return {
      order: ranking.map(({ originalIndex }) => originalIndex),
      scores: ranking.map(({ score }) => score),
      texts: rerankedDocuments.map((one) => (typeof one === 'string' ? one : one.text)),
    }
  }
  // It reports no usage, and returns the documents that it was given.
  return { counts: false, rank, rankObjects: rank, withTexts: rank, fault: aiFault }
}

type Made = { provider: string; base: FamilyRow<never>['base']; make(gateway: Gateway): Provider }

const MADE: Made[] = [
  {
    provider: '@ai-sdk/cohere',
    base: '/v2',
    make: ({ origin, token }) => createCohere({ baseURL: `${origin}/v2`, apiKey: token }).reranking,
  },
  {
    provider: '@gatehouse/ai-sdk',
    base: '/v1',
    make: ({ origin, token }) => createGatehouse({ baseURL: `${origin}/v1`, apiKey: token }).reranking,
  },
]

export const aiRerank = MADE.map(
  ({ provider, base, make }): FamilyRow<RerankClient> => ({
    name: `\`ai\` 7, \`${provider}\`, rerank`,
    packages: ['ai', provider],
    base,
    dialect: 'rerank',
    connect: (gateway) => clientOf(make(gateway)),
  }),
)
