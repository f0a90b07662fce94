/** Embeddings with the `openai` package; the same code for both majors. */
import type OpenAI from 'openai'
import { floatsOfBase64 } from '../../../../src/kit/float32.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { Embedded, EmbeddingsClient } from '../types.ts'
import { OPENAI_MAJORS, openaiFamilyFault, openaiOf } from './openai.ts'

type Answer = Pick<OpenAI.CreateEmbeddingResponse, 'usage' | 'model'> & { data: { embedding: unknown }[] }

function replyOf({ data, usage, model }: Answer): Embedded {
  const vectors = data.map(({ embedding }) =>
    typeof embedding === 'string' ? (floatsOfBase64(embedding) ?? []) : (embedding as number[]),
  )
  return { vectors, tokens: usage.prompt_tokens, model }
}

/** Without a format it requests base64 and decodes it. A requested format is returned as it is. */
function clientOf(Sdk: typeof OpenAI, gateway: Gateway): EmbeddingsClient {
  const { embeddings } = openaiOf(Sdk, gateway)
  const paramsOf = ({ texts, ...more }: { model: string; texts: string[]; dimensions?: number }) => ({
    ...more,
    input: texts,
  })
  return {
    counts: true,
    many: async (params) => replyOf(await embeddings.create(paramsOf(params))),
    one: async ({ model, text }) => replyOf(await embeddings.create({ model, input: text })),
    async packed(params) {
      const answer = await embeddings.create({ ...paramsOf(params), encoding_format: 'base64' })
      if (answer.data.some(({ embedding }) => typeof embedding !== 'string')) throw new Error('It is no base64.')
      return replyOf(answer)
    },
    plain: async (params) => replyOf(await embeddings.create({ ...paramsOf(params), encoding_format: 'float' })),
    tokens: async ({ model, tokens }) => replyOf(await embeddings.create({ model, input: tokens })),
    fault: (error, status) => openaiFamilyFault(Sdk, error, status),
  }
}

export const openaiEmbeddings = OPENAI_MAJORS.map(
  ([name, packageName, Sdk]): FamilyRow<EmbeddingsClient> => ({
    name: `${name}, embeddings`,
    packages: [packageName],
    base: '/v1',
    dialect: 'embeddings',
    connect: (gateway) => clientOf(Sdk, gateway),
  }),
)
