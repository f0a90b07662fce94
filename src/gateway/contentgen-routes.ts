/** The contentgen API: the methods of models, each under every path that clients use. */
import { contentgenCount } from '../families/chat/count-apis.ts'
import { countTokensEndpoint } from '../families/chat/count-tokens.ts'
import { contentgenDialect } from '../families/chat/dialects/contentgen.ts'
import { type ChatRouteParts, chatRoute } from '../families/chat/routes/chat-route.ts'
import { contentgenEmbeddingEndpoints } from '../families/embeddings/contentgen-endpoint.ts'
import type { EmbeddingFamily } from '../families/embeddings/embeddings.ts'
import type { Images } from '../families/images/images.ts'
import { imagePredictEndpoint } from '../families/images/predict-endpoint.ts'
import { jsonRoute } from '../families/shared/json-route.ts'
import { videoMethods } from '../families/tasks/routes/operations.ts'
import type { TaskApiParts } from '../families/tasks/routes/task-api.ts'
import type { Route } from '../http/context.ts'
import { modelMethodRoutes } from '../http/model-methods.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'

type ContentgenParts = ChatRouteParts &
  TaskApiParts & { tokenizer: Tokenizer; embeddings: EmbeddingFamily; images: Images }

export function contentgenRoutes(parts: ContentgenParts): Route[] {
  const { embedContent, batchEmbedContents } = contentgenEmbeddingEndpoints(parts.embeddings)
  return modelMethodRoutes({
    generateContent: chatRoute(contentgenDialect('generateContent'), parts),
    streamGenerateContent: chatRoute(contentgenDialect('streamGenerateContent'), parts),
    countTokens: jsonRoute(countTokensEndpoint(contentgenCount, parts), parts),
    embedContent: jsonRoute(embedContent, parts),
    batchEmbedContents: jsonRoute(batchEmbedContents, parts),
    predict: jsonRoute(imagePredictEndpoint(parts.images.whole), parts),
    ...videoMethods(parts),
  })
}
