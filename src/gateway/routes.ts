/** Every route of the gateway: the specification's section 4 as a table. */
import { type LimitsRouteParts, limitsRoutes } from '../accounts/routes/limits-route.ts'
import { type UsageRouteParts, usageRoutes } from '../accounts/routes/usage-route.ts'
import { type PlaygroundRouteParts, playgroundRoutes } from '../admin/routes/playground.ts'
import { audioRoutes } from '../families/audio/audio-routes.ts'
import { type BatchRouteParts, batchRoutes } from '../families/batches/batch-routes.ts'
import type { Background } from '../families/chat/background-responses.ts'
import { createChatTools } from '../families/chat/chat-tools.ts'
import type { Conversations } from '../families/chat/conversations.ts'
import { messagesCount, responsesCount } from '../families/chat/count-apis.ts'
import { countTokensEndpoint } from '../families/chat/count-tokens.ts'
import { chatcompatDialect } from '../families/chat/dialects/chatcompat.ts'
import { compactDialect } from '../families/chat/dialects/compact.ts'
import { messagesDialect } from '../families/chat/dialects/messages.ts'
import { responsesDialect } from '../families/chat/dialects/responses.ts'
import { type ChatRouteParts, chatRoute } from '../families/chat/routes/chat-route.ts'
import { conversationRoutes } from '../families/chat/routes/conversation-routes.ts'
import { responseRoutes } from '../families/chat/routes/response-routes.ts'
import { responsesSocket } from '../families/chat/routes/responses-socket.ts'
import { textCompletionsRoute } from '../families/chat/routes/text-completions-route.ts'
import type { StoredResponses } from '../families/chat/stored-responses.ts'
import { createToolRounds } from '../families/chat/tool-rounds.ts'
import type { EmbeddingFamily } from '../families/embeddings/embeddings.ts'
import { embeddingsEndpoint } from '../families/embeddings/endpoint.ts'
import { fileRoutes } from '../families/files/routes/file-routes.ts'
import type { UploadParts } from '../families/files/routes/upload-form.ts'
import { imageRoutes, type StoreImages } from '../families/images/image-routes.ts'
import type { Images } from '../families/images/images.ts'
import { openRouterImagesEndpoint } from '../families/images/openrouter-endpoint.ts'
import { type McpRouteParts, mcpRoutes } from '../families/mcp/routes/mcp-routes.ts'
import { moderationsEndpoint } from '../families/moderations/endpoint.ts'
import type { ModerationsFamily } from '../families/moderations/moderations.ts'
import { type PassthroughRouteParts, passthroughRoutes } from '../families/passthrough/passthrough-routes.ts'
import { type RealtimeRouteParts, realtimeRoutes } from '../families/realtime/routes/realtime-routes.ts'
import { rerankEndpoints } from '../families/rerank/endpoint.ts'
import type { RerankFamily } from '../families/rerank/rerank.ts'
import { jsonRoute } from '../families/shared/json-route.ts'
import type { ToolServers } from '../families/shared/tool-servers.ts'
import { taskRoutes } from '../families/tasks/routes/table.ts'
import type { TaskApiParts } from '../families/tasks/routes/task-api.ts'
import type { Route } from '../http/context.ts'
import { unknownMethodRoutes } from '../http/model-methods.ts'
import type { Build } from '../kit/build-info.ts'
import { unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { modelRoutes } from '../models/routes/model-routes.ts'
import { type FeedbackRouteParts, feedbackRoutes } from '../observe/requests/feedback-route.ts'
import type { ManualFile } from '../site/manual/load-manual.ts'
import { manualRoutes } from '../site/manual-routes.ts'
import { documentedPath, openApiDocument } from '../site/openapi.ts'
import { pageRoutes } from '../site/pages.ts'
import { contentgenRoutes } from './contentgen-routes.ts'

type TableParts = ChatRouteParts &
  UploadParts &
  BatchRouteParts &
  TaskApiParts &
  UsageRouteParts &
  LimitsRouteParts &
  FeedbackRouteParts &
  PlaygroundRouteParts &
  McpRouteParts &
  PassthroughRouteParts &
  RealtimeRouteParts & {
    mcp: { toolServers: ToolServers }
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
    /** The routes of the admin API and of its console. */
    admin: Route[]
    manual(): Promise<ManualFile[]>
    /** Rejects when the store does not answer. */
    ready(): Promise<void>
    version: string
    build: Build | undefined
    log: Log
  }

export function routeTable(parts: TableParts): Route[] {
  const { storedResponses, background, settings, clock, version, tasks, ready } = parts
  const toolRounds = createToolRounds({ ...parts, toolServers: parts.mcp.toolServers })
  const chatTools = createChatTools({ ...parts, toolServers: parts.mcp.toolServers, toolRounds })
  const responses = responsesDialect({ ...parts, queue: background.submit, toolRounds })
  const calls: Route[] = [
    chatRoute(chatcompatDialect(settings, chatTools), parts),
    textCompletionsRoute(parts),
    { ...chatRoute(responses, parts), socket: responsesSocket(parts) },
    chatRoute(compactDialect(responses, storedResponses), parts),
    ...responseRoutes(parts),
    ...conversationRoutes(parts),
    jsonRoute(countTokensEndpoint(responsesCount(parts), parts), parts),
    chatRoute(messagesDialect(), parts),
    jsonRoute(countTokensEndpoint(messagesCount, parts), parts),
    ...batchRoutes(parts),
    jsonRoute(embeddingsEndpoint(parts.embeddings), parts),
    ...contentgenRoutes(parts),
    ...rerankEndpoints(parts.rerank).map((endpoint) => jsonRoute(endpoint, parts)),
    jsonRoute(moderationsEndpoint(parts.moderations), parts),
    ...audioRoutes(parts),
    ...fileRoutes(parts),
    ...imageRoutes(parts),
    jsonRoute(
      openRouterImagesEndpoint(parts.images.whole, () => unixSeconds(clock)),
      parts,
    ),
  ]
  const called = [
    ...modelRoutes(parts),
    ...calls,
    ...taskRoutes(parts),
    ...usageRoutes(parts),
    ...limitsRoutes(parts),
    ...feedbackRoutes(parts),
  ]
  const routes: Route[] = [
    ...called,
    ...mcpRoutes(parts),
    ...passthroughRoutes(parts),
    ...realtimeRoutes(parts),
    ...parts.admin,
    ...(parts.admin.some(({ admin }) => admin) ? playgroundRoutes(called, parts) : []),
    ...manualRoutes({ load: parts.manual, version }),
    ...unknownMethodRoutes(calls),
    ...pageRoutes({
      version,
      build: parts.build,
      ready,
      tasks: tasks.health,
      openApi: () => openApiDocument({ routes, version }),
      endpoints: () => endpointsOf(routes),
      has_console: parts.admin.some(({ path }) => path === '/console'),
      hasSandbox: () => parts.catalogue.serving('sandbox/general', 'chatcompat') !== undefined,
    }),
  ]
  return routes
}

const endpointsOf = (routes: Route[]) =>
  routes
    .filter(({ hidden, path }) => !hidden && path.startsWith('/v1/'))
    .map((route) => ({ method: route.method, path: documentedPath(route), summary: route.operation.summary }))
