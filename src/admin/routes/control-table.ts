/** The routes of the admin API with which operators control a running gateway. */
import type { Route } from '../../http/context.ts'
import { alertRoutes } from './alerts.ts'
import { adminBatchRoutes } from './batches.ts'
import { adminBudgetRoutes } from './budgets.ts'
import { cacheRoutes } from './cache.ts'
import { configRoutes } from './config.ts'
import { configTextRoutes } from './config-text.ts'
import { adminExplainRoutes } from './explain.ts'
import { adminFileRoutes } from './files.ts'
import { guardRoutes } from './guards.ts'
import { ledgerRoutes } from './ledger.ts'
import { mcpConnectionRoutes } from './mcp-connections.ts'
import { mcpPeopleRoutes } from './mcp-people.ts'
import { mcpServerRoutes } from './mcp-servers.ts'
import { mcpToolRoutes } from './mcp-tools.ts'
import { adminModelRoutes } from './models.ts'
import { overrideRoutes } from './overrides.ts'
import { providerDraftRoutes } from './provider-drafts.ts'
import { adminProviderRoutes } from './providers.ts'
import type { PartsOf } from './route.ts'
import { taskOutputRoutes } from './task-outputs.ts'
import { adminTaskRoutes } from './tasks.ts'
import { adminUsageRoutes } from './usage.ts'
import { webhookRoutes } from './webhooks.ts'

const TABLE = [
  adminModelRoutes,
  adminProviderRoutes,
  providerDraftRoutes,
  overrideRoutes,
  adminExplainRoutes,
  configRoutes,
  configTextRoutes,
  adminBudgetRoutes,
  cacheRoutes,
  adminBatchRoutes,
  adminTaskRoutes,
  taskOutputRoutes,
  adminFileRoutes,
  adminUsageRoutes,
  ledgerRoutes,
  alertRoutes,
  webhookRoutes,
  mcpServerRoutes,
  mcpConnectionRoutes,
  mcpPeopleRoutes,
  mcpToolRoutes,
  guardRoutes,
] as const

/** What all of them need together. */
export type ControlRouteParts = PartsOf<(typeof TABLE)[number]>

export const controlRoutes = (parts: ControlRouteParts): Route[] => TABLE.flatMap((routes) => routes(parts))
