/** Embeddings with `@langchain/openai`. */
import { OpenAIEmbeddings } from '@langchain/openai'
import OpenAI from 'openai'
import type { FamilyRow, Gateway } from '../family.ts'
import type { EmbeddingsClient, Texts } from '../types.ts'
import { openaiFamilyFault } from './openai.ts'

type Params = Pick<Texts, 'model' | 'dimensions'> & { encodingFormat?: 'float' }

function clientOf({ origin, token }: Gateway): EmbeddingsClient {
  const embeddings = (paramsOf: Params) =>
    new OpenAIEmbeddings({
      ...paramsOf,
      apiKey: token,
      configuration: { baseURL: `${origin}/v1`, logLevel: 'off' },
      batchSize: 2,
      // The directive that makes a provider fail needs a line of its own.
      stripNewLines: false,
      maxRetries: 0,
    })
  return {
    counts: false,
    many: async ({ texts, ...params }) => ({ vectors: await embeddings(params).embedDocuments(texts) }),
    plain: async ({ texts, ...params }) => ({
      vectors: await embeddings({ ...params, encodingFormat: 'float' }).embedDocuments(texts),
    }),
    one: async ({ text, ...params }) => ({ vectors: [await embeddings(params).embedQuery(text)] }),
    // It throws the errors of the package that it uses.
    fault: (error, status) => openaiFamilyFault(OpenAI, error, status),
  }
}

export const langchainEmbeddings: FamilyRow<EmbeddingsClient> = {
  name: '`@langchain/openai`, embeddings',
  packages: ['@langchain/openai'],
  base: '/v1',
  dialect: 'embeddings',
  connect: clientOf,
}
