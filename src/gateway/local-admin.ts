/** The admin API in the process of a command, on the store: used where no running gateway is named. */
import { createAudit } from '../admin/audit/audit.ts'
import { auditRoutes } from '../admin/routes/audit-log.ts'
import { adminBatchRoutes } from '../admin/routes/batches.ts'
import { adminBudgetRoutes } from '../admin/routes/budgets.ts'
import { cacheRoutes } from '../admin/routes/cache.ts'
import { adminFileRoutes } from '../admin/routes/files.ts'
import { mcpPeopleRoutes } from '../admin/routes/mcp-people.ts'
import { mcpToolRoutes } from '../admin/routes/mcp-tools.ts'
import { overrideRoutes } from '../admin/routes/overrides.ts'
import { requestRoutes } from '../admin/routes/requests.ts'
import { adminTaskRoutes } from '../admin/routes/tasks.ts'
import { adminUsageRoutes } from '../admin/routes/usage.ts'
import { purgeStore } from '../calls/cache/purges.ts'
import { createLiveOverrides } from '../calls/routing/live-overrides.ts'
import { type Config, DEFAULT_ADMIN, DEFAULT_LEDGER, DEFAULT_MCP, DEFAULT_SERVER } from '../config/config.ts'
import { createMcpConnections, personalServer } from '../families/mcp/connections.ts'
import { createApp } from '../http/app.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { readContents } from '../observe/requests/contents-log.ts'
import { createRequestReader } from '../observe/requests/request-reader.ts'
import { searchesOf } from '../observe/requests/request-sinks.ts'
import type { AuditOrigin } from '../spec/audit.ts'
import type { Store } from '../store/store.ts'

type Parts = {
  store: Store
  config: Config | undefined
  /** For contents of requests; read when they are needed. */
  keys(): Parameters<typeof readContents>[1]['keys']
  by: AuditOrigin
  clock: Clock
  log: Log
}

type LocalAdmin = {
  /** `path`: what follows /admin/v1. */
  send(path: string, init: RequestInit): Promise<Response>
  close(): Promise<void>
}

/** Tokens that nobody can open are deleted all the same. */
const NO_CONFIG = { server: DEFAULT_SERVER, admin: DEFAULT_ADMIN, mcp: DEFAULT_MCP }

/** Without the providers and models of a gateway: it does not check whether a name is configured. */
export function createLocalAdmin({ store, config, keys, by, clock, log }: Parts): LocalAdmin {
  const settings = { ...DEFAULT_SERVER }
  const audit = createAudit({ store: store.audit, clock })
  const { append, usage } = store.ledger
  const ledger = { append, usage, currency: () => config?.ledger.currency ?? DEFAULT_LEDGER.currency }
  const overrides = createLiveOverrides({ store: store.overrides, apply() {}, clock, log })
  const contents = async (row: { row_id: number; request_id: string }) =>
    readContents(row, { store: store.requestContents, keys: keys() })
  const requests = createRequestReader({
    store: config ? searchesOf(store.requestLog, config.request_log) : store.requestLog,
    flush: async () => {},
    contents,
    clock,
  })
  const purge: Parameters<typeof cacheRoutes>[0]['cache']['purge'] = async (model, event) => ({
    entries: await purgeStore(store.cachedAnswers, model, event),
  })
  const size = async () => ({ storage: 'database' as const, ...(await store.cachedAnswers.size()) })
  const { tokens, projects, budgets, tasks, webhooks } = store
  const parts = { settings, clock }
  const files: Parameters<typeof adminFileRoutes>[0]['files'] = {
    // A gateway that runs, or the next one, removes its bytes.
    remove: async (file_id, { token_id }) => void (await store.files.hide(file_id, unixSeconds(clock), token_id)),
    async open() {
      throw new Error('a command on the store reads no contents of files')
    },
  }
  const budgetSettings = () => config ?? { budgets: [], tokens: {} }
  const app = createApp({
    routes: [
      ...auditRoutes({ audit }),
      ...requestRoutes({ requests, audit }),
      ...adminBudgetRoutes({ ...parts, budgets, ledger, tokens, projects, budgetSettings }),
      ...cacheRoutes({ ...parts, cache: { purge, size }, projects, isModel: () => true }),
      ...overrideRoutes({ ...parts, overrides, isConfigured: () => true }),
      ...mcpToolRoutes({
        ...parts,
        mcpTools: store.mcpTools,
        hasBuiltInTools: () => (config?.sandbox && config.mcp.enabled) ?? false,
      }),
      ...mcpPeopleRoutes({
        mcpConnections: createMcpConnections({ ...parts, store, config: () => config ?? NO_CONFIG, log }),
        personalServer: (name) => personalServer(config?.mcp ?? DEFAULT_MCP, name),
      }),
      ...adminTaskRoutes({ ...parts, tasks, webhooks }),
      ...adminBatchRoutes({ batches: store.batches, clock }),
      ...adminFileRoutes({ fileRows: store.files, files, audit, clock }),
      ...adminUsageRoutes({ clock, ledger, max_rows: Number.MAX_SAFE_INTEGER - 1 }),
    ],
    async admitAdmin(context) {
      context.admin = { ...by, role: 'owner', via: 'command' }
    },
    authenticate() {
      throw new Error('the admin API of a command has no other routes')
    },
    onFinished() {},
    settings,
    clock,
    log,
  })
  const ready = overrides.start()
  return {
    async send(path, init) {
      await ready
      return app.fetch(new Request(`http://localhost/admin/v1${path}`, init), { address: '' })
    },
    close: overrides.close,
  }
}
