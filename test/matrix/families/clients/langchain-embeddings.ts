/** How texts are embedded with `@langchain/openai`. */
import { OpenAIEmbeddings } from '@langchain/openai'
import OpenAI from 'openai'
import type { FamilyRow, Gateway } from '../family.ts'
import type { EmbeddingsClient, Texts } from '../words.ts'
import { openaiFamilyFault } from './openai.ts'

type Asked = Pick<Texts, 'model' | 'dimensions'> & { encodingFormat?: 'float' }

function clientOf({ origin, token }: Gateway): EmbeddingsClient {
  const embeddings = (asked: Asked) =>
    new OpenAIEmbeddings({
      ...asked,
      apiKey: token,
      configuration: { baseURL: `${origin}/v1`, logLevel: 'off' },
      batchSize: 2,
      // What makes a vendor fail is a line of its own.
      stripNewLines: false,
      maxRetries: 0,
    })
  return {
    counts: false,
    many: async ({ texts, ...ask }) => ({ vectors: await embeddings(ask).embedDocuments(texts) }),
    plain: async ({ texts, ...ask }) => ({
      vectors: await embeddings({ ...ask, encodingFormat: 'float' }).embedDocuments(texts),
    }),
    one: async ({ text, ...ask }) => ({ vectors: [await embeddings(ask).embedQuery(text)] }),
    // Its errors are those of the package beneath it.
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
