/** The routes of the admin API with which operators control a running gateway. */
import type { Route } from '../../http/context.ts'
import { type AlertRouteParts, alertRoutes } from './alerts.ts'
import { type AdminBatchRouteParts, adminBatchRoutes } from './batches.ts'
import { adminBudgetRoutes, type BudgetRouteParts } from './budgets.ts'
import { type CacheRouteParts, cacheRoutes } from './cache.ts'
import { type ConfigRouteParts, configRoutes } from './config.ts'
import { type ConfigTextParts, configTextRoutes } from './config-text.ts'
import { adminExplainRoutes, type ExplainRouteParts } from './explain.ts'
import { adminFileRoutes, type FileRouteParts } from './files.ts'
import { type GuardRouteParts, guardRoutes } from './guards.ts'
import { type LedgerRouteParts, ledgerRoutes } from './ledger.ts'
import { type McpConnectionRouteParts, mcpConnectionRoutes } from './mcp-connections.ts'
import { type McpPeopleRouteParts, mcpPeopleRoutes } from './mcp-people.ts'
import { type McpServerRouteParts, mcpServerRoutes } from './mcp-servers.ts'
import { type McpToolRouteParts, mcpToolRoutes } from './mcp-tools.ts'
import { adminModelRoutes, type ModelRouteParts } from './models.ts'
import { type OverrideRouteParts, overrideRoutes } from './overrides.ts'
import { type ProviderDraftParts, providerDraftRoutes } from './provider-drafts.ts'
import { adminProviderRoutes, type ProviderRouteParts } from './providers.ts'
import { type TaskOutputRouteParts, taskOutputRoutes } from './task-outputs.ts'
import { adminTaskRoutes, type TaskRouteParts } from './tasks.ts'
import { adminUsageRoutes, type UsageRouteParts } from './usage.ts'
import { type WebhookRouteParts, webhookRoutes } from './webhooks.ts'

export type ControlRouteParts = ModelRouteParts &
  ProviderRouteParts &
  ProviderDraftParts &
  OverrideRouteParts &
  ExplainRouteParts &
  ConfigRouteParts &
  ConfigTextParts &
  BudgetRouteParts &
  CacheRouteParts &
  AdminBatchRouteParts &
  TaskRouteParts &
  TaskOutputRouteParts &
  FileRouteParts &
  UsageRouteParts &
  LedgerRouteParts &
  AlertRouteParts &
  WebhookRouteParts &
  McpServerRouteParts &
  McpConnectionRouteParts &
  McpPeopleRouteParts &
  McpToolRouteParts &
  GuardRouteParts

export const controlRoutes = (parts: ControlRouteParts): Route[] => [
  ...adminModelRoutes(parts),
  ...adminProviderRoutes(parts),
  ...providerDraftRoutes(parts),
  ...overrideRoutes(parts),
  ...adminExplainRoutes(parts),
  ...configRoutes(parts),
  ...configTextRoutes(parts),
  ...adminBudgetRoutes(parts),
  ...cacheRoutes(parts),
  ...adminBatchRoutes(parts),
  ...adminTaskRoutes(parts),
  ...taskOutputRoutes(parts),
  ...adminFileRoutes(parts),
  ...adminUsageRoutes(parts),
  ...ledgerRoutes(parts),
  ...alertRoutes(parts),
  ...webhookRoutes(parts),
  ...mcpServerRoutes(parts),
  ...mcpConnectionRoutes(parts),
  ...mcpPeopleRoutes(parts),
  ...mcpToolRoutes(parts),
  ...guardRoutes(parts),
]
