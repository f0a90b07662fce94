/** The MCP gateway: its servers, the pipeline of their tools, and the endpoint, which is loaded with its first request. */
import { createOAuthCallers } from '../accounts/oauth-callers.ts'
import type { Tokens } from '../accounts/tokens.ts'
import type { CallSubscriber } from '../calls/call.ts'
import { createPipeline, type Pipeline } from '../calls/pipeline.ts'
import { createPlans } from '../calls/plan.ts'
import type { Router } from '../calls/routing/router.ts'
import { mcpWarnings } from '../config/check/mcp-checks.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/load/environment.ts'
import { createMcpConnections, type McpConnections } from '../families/mcp/connections.ts'
import { createGuardedLists } from '../families/mcp/guarded-lists.ts'
import type { McpEndpoint } from '../families/mcp/routes/endpoint.ts'
import type { McpRouteParts } from '../families/mcp/routes/mcp-routes.ts'
import { createMcpServers, type McpServers } from '../families/mcp/servers.ts'
import { serverCatalogue } from '../families/mcp/tool-calls.ts'
import { createToolServers } from '../families/mcp/tool-servers.ts'
import type { ToolServers } from '../families/shared/tool-servers.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { createAccessTokenVerifier } from '../providers/openid-access-tokens.ts'
import type { Transport } from '../providers/upstream/transport.ts'
import type { Store } from '../store/store.ts'
import type { createAccounting } from './accounting.ts'
import { programPlaces } from './program-places.ts'

type McpParts = {
  config(): Config
  store: Pick<Store, 'mcpTools' | 'mcpConnections'>
  tokens: Pick<Tokens, 'playground'>
  transport: Transport
  stages: ReturnType<typeof createAccounting>['stages']
  router: Router
  catalogue: Pick<Catalogue, 'revision'>
  subscribers: readonly CallSubscriber[]
  environment: Environment
  version: string
  clock: Clock
  log: Log
}

type Mcp = McpRouteParts['mcp'] & {
  servers: Pick<McpServers, 'all' | 'approvedOf'>
  connections: McpConnections
  toolServers: ToolServers
  /** Applies the configuration as it is now. */
  apply(): void
  waiting: McpEndpoint['waiting']
  /** Those of its pipeline. */
  calls: Pick<Pipeline, 'close'>
  /** Ends streams of notifications; calls go on. */
  drain(): Promise<void>
  close(options: { deadline_ms: number }): Promise<void>
}

export function createMcp(parts: McpParts): Mcp {
  const { config, stages, catalogue: models, clock } = parts
  const announce = (server: string, person?: string) => void endpoint?.then((loaded) => loaded.notify(server, person))
  const connections = createMcpConnections({ ...parts, onChange: announce })
  const servers = createMcpServers({
    ...parts,
    connections,
    programs: () => programPlaces(config(), parts.environment),
  })
  const lists = createGuardedLists({ ...stages, clock })
  const catalogue = serverCatalogue({ config, revision: models.revision })
  let pipeline: Pipeline | undefined
  let endpoint: Promise<McpEndpoint> | undefined
  let loaded: McpEndpoint | undefined

  function calls(): Pipeline {
    pipeline ??= createPipeline({
      ...parts,
      ...stages,
      catalogue,
      plans: createPlans({ ...stages, catalogue, clock }),
    })
    return pipeline
  }

  async function load(): Promise<McpEndpoint> {
    const { createEndpoint } = await import('../families/mcp/routes/endpoint.ts')
    loaded = createEndpoint({
      ...parts,
      servers,
      lists,
      pipeline: calls(),
      settings: () => config().mcp,
      personOf: (caller, server) => servers.personOf(caller, server),
      isAlone: config().server.workers === 1,
    })
    return loaded
  }

  const login = () => (config().mcp.enabled ? config().mcp.oauth : undefined)
  function apply(): void {
    servers.apply()
    for (const warning of mcpWarnings(config())) parts.log.warn(warning)
  }
  servers.onChange(announce)
  apply()

  return {
    endpoint() {
      if (!config().mcp.enabled) return undefined
      endpoint ??= load()
      return endpoint
    },
    authenticate: createOAuthCallers({ ...parts, settings: login, verify: createAccessTokenVerifier(parts) }),
    login,
    has: (name, caller) => servers.find(name, caller) !== undefined,
    apply,
    servers,
    connections,
    toolServers: createToolServers({ servers, lists, pipeline: calls, settings: () => config().mcp }),
    calls: { close: async (options) => await pipeline?.close(options) },
    waiting: () => loaded?.waiting() ?? [],
    async drain() {
      await endpoint
      loaded?.stop()
    },
    async close(options) {
      await endpoint
      await Promise.all([pipeline?.close(options), loaded?.close()])
      await servers.close()
    },
  }
}
