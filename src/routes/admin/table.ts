/** Every route of the admin API, with what they have in common: idempotency keys, and responses that no cache keeps. */
import type { Context, Route } from '../../http/context.ts'
import type { Log } from '../../kit/log.ts'
import type { AdminKeyStore } from '../../store/admin-store.ts'
import { type AccountRouteParts, accountRoutes } from './accounts.ts'
import { type AuditRouteParts, auditRoutes } from './audit.ts'
import { type DiagnosticsParts, diagnosticsRoute } from './diagnostics.ts'
import { type EventRouteParts, eventRoutes } from './events.ts'
import { IDEMPOTENCY_HEADER, idempotently } from './idempotency.ts'
import { type OidcRouteParts, oidcRoutes } from './oidc.ts'
import { type ProjectRouteParts, projectRoutes } from './projects.ts'
import { type ReadinessRouteParts, readinessRoutes } from './readiness.ts'
import { type RequestRouteParts, requestRoutes } from './requests.ts'
import { type SessionRouteParts, sessionRoutes } from './sessions.ts'
import { type TokenRouteParts, tokenRoutes } from './tokens.ts'

type AdminRouteParts = ProjectRouteParts &
  TokenRouteParts &
  AccountRouteParts &
  SessionRouteParts &
  OidcRouteParts &
  AuditRouteParts &
  RequestRouteParts &
  EventRouteParts &
  ReadinessRouteParts &
  DiagnosticsParts & { controls: Route[]; adminKeys: AdminKeyStore; secretOf(context: Context): string; log: Log }

export function adminRoutes(parts: AdminRouteParts): Route[] {
  const routes: Route[] = [
    ...projectRoutes(parts),
    ...tokenRoutes(parts),
    ...accountRoutes(parts),
    ...sessionRoutes(parts),
    ...oidcRoutes(parts),
    ...auditRoutes(parts),
    ...requestRoutes(parts),
    ...eventRoutes(parts),
    ...readinessRoutes(parts),
    ...parts.controls,
  ]
  return [...routes, diagnosticsRoute(routes, parts)].map((route) => asAdminRoute(route, parts))
}

function asAdminRoute(route: Route, parts: AdminRouteParts): Route {
  // A login has no secret yet by which its response could be encrypted.
  // What only reads can be repeated without a key, and its responses may be large.
  const isPost = route.method === 'POST' && route.admin !== undefined && route.admin.right !== 'read'
  const handle = isPost
    ? idempotently(route.handle, { ...parts, keys: parts.adminKeys })
    : (context: Context) => route.handle(context)
  const { operation } = route
  return {
    ...route,
    answers_under_load: true,
    operation: isPost
      ? {
          ...operation,
          headers: { ...operation.headers, ...IDEMPOTENCY_HEADER },
          errors: [...(operation.errors ?? []), 'idempotency_key_reused', 'idempotency_key_in_use'],
        }
      : operation,
    async handle(context) {
      const response = await handle(context)
      response.headers.set('cache-control', 'no-store')
      return response
    },
  }
}
