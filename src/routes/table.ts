/** Every route of the gateway: the specification's section 4 as a table. */
import type { Background } from '../chat/background-responses.ts'
import type { Conversations } from '../chat/conversations.ts'
import { messagesCount, responsesCount } from '../chat/count-apis.ts'
import { countTokensEndpoint } from '../chat/count-tokens.ts'
import { chatcompatDialect } from '../chat/dialects/chatcompat.ts'
import { compactDialect } from '../chat/dialects/compact.ts'
import { messagesDialect } from '../chat/dialects/messages.ts'
import { responsesDialect } from '../chat/dialects/responses.ts'
import type { StoredResponses } from '../chat/stored-responses.ts'
import type { ManualFile } from '../config/manual.ts'
import type { EmbeddingFamily } from '../embeddings/embeddings.ts'
import { embeddingsEndpoint } from '../embeddings/endpoint.ts'
import type { Route } from '../http/context.ts'
import type { Images } from '../images/images.ts'
import { openRouterImagesEndpoint } from '../images/openrouter-endpoint.ts'
import type { Build } from '../kit/build-info.ts'
import { unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { moderationsEndpoint } from '../moderations/endpoint.ts'
import type { ModerationsFamily } from '../moderations/moderations.ts'
import { rerankEndpoints } from '../rerank/endpoint.ts'
import type { RerankFamily } from '../rerank/rerank.ts'
import { type ChatRouteParts, chatRoute } from './chat.ts'
import { contentgenRoutes } from './contentgen.ts'
import { conversationRoutes } from './conversations.ts'
import { type FeedbackRouteParts, feedbackRoutes } from './feedback.ts'
import { imageRoutes, type StoreImages } from './images.ts'
import { jsonRoute } from './json-route.ts'
import { type LimitsRouteParts, limitsRoutes } from './limits.ts'
import { manualRoutes } from './manual.ts'
import { unknownMethodRoutes } from './model-methods.ts'
import { modelRoutes } from './models.ts'
import { documentedPath, openApiDocument } from './openapi.ts'
import { pageRoutes } from './pages.ts'
import { responseRoutes } from './responses.ts'
import { responsesSocket } from './responses-socket.ts'
import { taskRoutes } from './tasks/table.ts'
import type { TaskApiParts } from './tasks/task-api.ts'
import { textCompletionsRoute } from './text-completions.ts'
import { type UsageRouteParts, usageRoutes } from './usage.ts'

type TableParts = ChatRouteParts &
  TaskApiParts &
  UsageRouteParts &
  LimitsRouteParts &
  FeedbackRouteParts & {
    catalogue: Catalogue
    tokenizer: Tokenizer
    storedResponses: StoredResponses
    conversations: Conversations
    background: Background
    embeddings: EmbeddingFamily
    rerank: RerankFamily
    moderations: ModerationsFamily
    images: Images
    storeImages: StoreImages
    /** The routes of the admin API. */
    admin: Route[]
    manual(): Promise<ManualFile[]>
    /** Rejects when the store does not answer. */
    ready(): Promise<void>
    version: string
    build: Build | undefined
    log: Log
  }

export function routeTable(parts: TableParts): Route[] {
  const { storedResponses, conversations, background, tokenizer, settings, clock, version, tasks, ready } = parts
  const responses = responsesDialect({ storedResponses, conversations, queue: background.submit, clock })
  const calls: Route[] = [
    chatRoute(chatcompatDialect(settings), parts),
    textCompletionsRoute(parts),
    { ...chatRoute(responses, parts), socket: responsesSocket(parts) },
    chatRoute(compactDialect(responses, storedResponses), parts),
    ...responseRoutes(parts),
    ...conversationRoutes(parts),
    jsonRoute(countTokensEndpoint(responsesCount(parts), tokenizer), parts),
    chatRoute(messagesDialect(), parts),
    jsonRoute(countTokensEndpoint(messagesCount, tokenizer), parts),
    jsonRoute(embeddingsEndpoint(parts.embeddings), parts),
    ...contentgenRoutes(parts),
    ...rerankEndpoints(parts.rerank).map((endpoint) => jsonRoute(endpoint, parts)),
    jsonRoute(moderationsEndpoint(parts.moderations), parts),
    ...imageRoutes(parts),
    jsonRoute(
      openRouterImagesEndpoint(parts.images.whole, () => unixSeconds(clock)),
      parts,
    ),
  ]
  const routes: Route[] = [
    ...modelRoutes(parts),
    ...calls,
    ...taskRoutes(parts),
    ...usageRoutes(parts),
    ...limitsRoutes(parts),
    ...feedbackRoutes(parts),
    ...parts.admin,
    ...manualRoutes({ load: parts.manual, version }),
    ...unknownMethodRoutes(calls),
    ...pageRoutes({
      version,
      build: parts.build,
      ready,
      tasks: tasks.health,
      openApi: () => openApiDocument({ routes, version }),
      endpoints: () => endpointsOf(routes),
      hasSandbox: () => parts.catalogue.serving('sandbox/general', 'chatcompat') !== undefined,
    }),
  ]
  return routes
}

const endpointsOf = (routes: Route[]) =>
  routes
    .filter(({ hidden, path }) => !hidden && path.startsWith('/v1/'))
    .map((route) => ({ method: route.method, path: documentedPath(route), summary: route.operation.summary }))
