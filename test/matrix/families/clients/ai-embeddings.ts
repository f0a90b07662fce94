/** Embeddings with the `ai` package, by each suitable provider. */
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { type EmbeddingModel, embed, embedMany } from 'ai'
import { createGatehouse } from '../../../../packages/ai-sdk/src/gatehouse.ts'
import { aiFault } from '../../clients/ai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { EmbeddingsClient } from '../types.ts'

/** A model for each length, if the provider sets it so. */
type Provider = (id: string) => EmbeddingModel

function clientOf(model: Provider): EmbeddingsClient {
  return {
    counts: true,
    async many({ texts, dimensions, ...params }) {
      const length = dimensions === undefined ? {} : { dimensions }
      const { embeddings, usage } = await embedMany({
        model: model(params.model),
        values: texts,
        maxRetries: 0,
        ...length,
      })
      return { vectors: embeddings, tokens: usage.tokens }
    },
    async one({ text, ...params }) {
      const { embedding, usage } = await embed({ model: model(params.model), value: text, maxRetries: 0 })
      return { vectors: [embedding], tokens: usage.tokens }
    },
    fault: aiFault,
  }
}

type Made = { provider: string; base: FamilyRow<never>['base']; make(gateway: Gateway): Provider; counts?: false }

const MADE: Made[] = [
  {
    provider: '@ai-sdk/openai',
    base: '/v1',
    make: ({ origin, token }) => createOpenAI({ baseURL: `${origin}/v1`, apiKey: token }).embedding,
  },
  {
    provider: '@ai-sdk/openai-compatible',
    base: '/v1',
    make: ({ origin, token }) =>
      createOpenAICompatible({ name: 'gatehouse', baseURL: `${origin}/v1`, apiKey: token }).embeddingModel,
  },
  {
    provider: '@ai-sdk/google',
    base: '/v1beta',
    counts: false,
    make: ({ origin, token }) => createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey: token }).embedding,
  },
  {
    provider: '@gatehouse/ai-sdk',
    base: '/v1',
    make: ({ origin, token }) => createGatehouse({ baseURL: `${origin}/v1`, apiKey: token }).embedding,
  },
]

export const aiEmbeddings = MADE.map(
  ({ provider, base, make, counts = true }): FamilyRow<EmbeddingsClient> => ({
    name: `\`ai\` 7, \`${provider}\`, embeddings`,
    packages: ['ai', provider],
    base,
    dialect: 'embeddings',
    connect: (gateway) => ({ ...clientOf(make(gateway)), counts }),
  }),
)
