/** Every route of the admin API, with what they have in common: idempotency keys, and responses that no cache keeps. */
import type { Context, Route } from '../../http/context.ts'
import type { Log } from '../../kit/log.ts'
import { nearest } from '../../kit/nearest.ts'
import { GatewayError } from '../../spec/error.ts'
import type { AdminKeyStore } from '../../store/admin/admin-store.ts'
import { accountRoutes } from './admin-tokens.ts'
import { auditRoutes } from './audit-log.ts'
import { type DiagnosticsParts, diagnosticsRoute } from './diagnostics.ts'
import { eventRoutes } from './events.ts'
import { facetRoutes } from './facets.ts'
import { IDEMPOTENCY_HEADER, idempotently } from './idempotency.ts'
import { sessionRoutes } from './login.ts'
import { oidcRoutes } from './openid-login.ts'
import { projectRoutes } from './projects.ts'
import { readinessRoutes } from './readiness.ts'
import { requestSessionRoutes } from './request-sessions.ts'
import { requestRoutes } from './requests.ts'
import type { PartsOf } from './route.ts'
import { summaryRoutes } from './summary.ts'
import { tokenRoutes } from './tokens.ts'

const TABLE = [
  projectRoutes,
  tokenRoutes,
  accountRoutes,
  sessionRoutes,
  oidcRoutes,
  auditRoutes,
  requestRoutes,
  requestSessionRoutes,
  facetRoutes,
  summaryRoutes,
  eventRoutes,
  readinessRoutes,
] as const

type AdminRouteParts = PartsOf<(typeof TABLE)[number]> &
  DiagnosticsParts & {
    controls: Route[]
    adminKeys: AdminKeyStore
    secretOf(context: Context): string
    log: Log
  }

export function adminRoutes(parts: AdminRouteParts): Route[] {
  const routes = [...TABLE.flatMap((make) => make(parts)), ...parts.controls]
  return [...routes, diagnosticsRoute(routes, parts)].map((route) => asAdminRoute(route, parts))
}

function asAdminRoute(route: Route, parts: AdminRouteParts): Route {
  // A login has no secret yet by which its response could be encrypted.
  // What only reads can be repeated without a key, and its responses may be large.
  const isPost = route.method === 'POST' && route.admin !== undefined && route.admin.right !== 'read'
  const handle = isPost
    ? idempotently(route.handle, { ...parts, keys: parts.adminKeys })
    : (context: Context) => route.handle(context)
  // A login is reached from elsewhere, by addresses to which others add parameters.
  const isChecked = route.admin !== undefined
  const known = Object.keys(route.operation.query ?? {})
  const { errors = [] } = route.operation
  const operation =
    isChecked && !errors.includes('unsupported_parameter')
      ? { ...route.operation, errors: [...errors, 'unsupported_parameter' as const] }
      : route.operation
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
      if (isChecked) assertKnownQuery(context, known)
      const response = await handle(context)
      response.headers.set('cache-control', 'no-store')
      return response
    },
  }
}

/** A filter with another name would return everybody's rows. */
function assertKnownQuery(context: Context, known: readonly string[]): void {
  for (const name of context.query().keys()) {
    if (known.includes(name)) continue
    // Lists name the same filter `token` here and `token_id` there.
    const suggestion = nearest(name, known) ?? known.find((one) => name === `${one}_id` || one === `${name}_id`)
    const hint = suggestion === undefined ? '' : ` Did you mean "${suggestion}"?`
    const allowed = known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`
    const message = `"${name.slice(0, 100)}" is not a query parameter of ${context.request.method} ${context.route}; ${allowed}.${hint}`
    throw new GatewayError('unsupported_parameter', message, { param: name.slice(0, 100) })
  }
}
