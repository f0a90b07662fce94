/** The contentgen API: the methods of models, each under every path that clients use. */
import { contentgenCount } from '../chat/count-apis.ts'
import { countTokensEndpoint } from '../chat/count-tokens.ts'
import { contentgenDialect } from '../chat/dialects/contentgen.ts'
import { contentgenEmbeddingEndpoints } from '../embeddings/contentgen-endpoint.ts'
import type { EmbeddingFamily } from '../embeddings/embeddings.ts'
import type { Route } from '../http/context.ts'
import type { Images } from '../images/images.ts'
import { imagePredictEndpoint } from '../images/predict-endpoint.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import { type ChatRouteParts, chatRoute } from './chat.ts'
import { jsonRoute } from './json-route.ts'
import { modelMethodRoutes } from './model-methods.ts'
import { videoMethods } from './tasks/operations.ts'
import type { TaskApiParts } from './tasks/task-api.ts'

type ContentgenParts = ChatRouteParts &
  TaskApiParts & { tokenizer: Tokenizer; embeddings: EmbeddingFamily; images: Images }

export function contentgenRoutes(parts: ContentgenParts): Route[] {
  const { embedContent, batchEmbedContents } = contentgenEmbeddingEndpoints(parts.embeddings)
  return modelMethodRoutes({
    generateContent: chatRoute(contentgenDialect('generateContent'), parts),
    streamGenerateContent: chatRoute(contentgenDialect('streamGenerateContent'), parts),
    countTokens: jsonRoute(countTokensEndpoint(contentgenCount, parts.tokenizer), parts),
    embedContent: jsonRoute(embedContent, parts),
    batchEmbedContents: jsonRoute(batchEmbedContents, parts),
    predict: jsonRoute(imagePredictEndpoint(parts.images.whole), parts),
    ...videoMethods(parts),
  })
}
