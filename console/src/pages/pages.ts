/** The table of all pages, in the order of the navigation. A page is a folder, and a line here. */
import type { Page } from '../shell/page.ts'
import { accessPages } from './access/access.ts'
import { alertsPage } from './alerts/alerts.ts'
import { auditPages } from './audit/audit.ts'
import { batchPages } from './batches/batches.ts'
import { cachePage } from './cache/cache.ts'
import { configPages } from './config/config.ts'
import { filePages } from './files/files.ts'
import { guardsPage } from './guards/guards.ts'
import { home } from './home/home.ts'
import { mcpPage } from './mcp/mcp.ts'
import { modelPages } from './models/models.ts'
import { playground } from './playground/playground.ts'
import { providerPages } from './providers/providers.ts'
import { requestPages } from './requests/requests.ts'
import { routing } from './routing/routing.ts'
import { settings } from './settings/settings.ts'
import { taskPages } from './tasks/tasks.ts'
import { usagePages } from './usage/usage.ts'
import { webhookPages } from './webhooks/webhooks.ts'

// biome-ignore format: one line each, so that two additions do not meet
export const pages: readonly Page[] = [
  home,
  alertsPage,
  ...modelPages,
  playground,
  ...requestPages,
  ...taskPages,
  ...batchPages,
  ...filePages,
  ...webhookPages,
  ...usagePages,
  ...accessPages,
  settings,
  ...providerPages,
  routing,
  cachePage,
  guardsPage,
  mcpPage,
  ...configPages,
  ...auditPages,
]
