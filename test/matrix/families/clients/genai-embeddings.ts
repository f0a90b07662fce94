/** Embeddings with the `@google/genai` package; the same code for both majors. */
import type { EmbedContentResponse } from '@google/genai'
import * as genai2 from 'google-genai-2'
import { GENAI_3, type Package } from '../../clients/genai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { Embedded, EmbeddingsClient } from '../types.ts'

const replyOf = ({ embeddings = [] }: EmbedContentResponse): Embedded => ({
  vectors: embeddings.map(({ values = [] }) => values),
})

function clientOf(own: Package, { origin, token }: Gateway): EmbeddingsClient {
  const { models } = new own.GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: origin } })
  return {
    counts: false,
    async many({ model, texts, dimensions }) {
      const config = { taskType: 'RETRIEVAL_DOCUMENT', ...(dimensions ? { outputDimensionality: dimensions } : {}) }
      return replyOf(await models.embedContent({ model, contents: texts, config }))
    },
    one: async ({ model, text }) =>
      replyOf(await models.embedContent({ model, contents: text, config: { taskType: 'RETRIEVAL_DOCUMENT' } })),
    fault(error) {
      if (!(error instanceof own.ApiError)) return { status: undefined, message: String(error), is_own_class: false }
      return { status: error.status, message: error.message, is_own_class: true }
    },
  }
}

const MAJORS: [name: string, packageName: string, own: Package][] = [
  ['`@google/genai` 3', '@google/genai', GENAI_3],
  ['`@google/genai` 2', 'google-genai-2', genai2 as unknown as Package],
]

export const genaiEmbeddings = MAJORS.map(
  ([name, packageName, own]): FamilyRow<EmbeddingsClient> => ({
    name: `${name}, embeddings`,
    packages: [packageName],
    base: '',
    dialect: 'embeddings',
    connect: (gateway) => clientOf(own, gateway),
  }),
)
