/** Cross-origin calls from browsers: off unless origins are configured. */
import type { ServerSettings } from '../config/config.ts'

import { isAdminPath, pathOf } from './request-parts.ts'

const EXPOSED = [
  'x-request-id',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((what) =>
    ['limit', 'remaining', 'reset'].map((value) => `anthropic-ratelimit-${what}-${value}`),
  ),
  'deprecation',
  'sunset',
  'link',
  'x-model-replaced-by',
  'x-model-requested',
  'x-model-served',
  'x-gatehouse-target',
  'x-gatehouse-cost',
  'x-gatehouse-attempts',
  'x-gatehouse-explain',
  'x-gatehouse-cache',
  'x-gatehouse-cache-similarity',
  'age',
  'idempotent-replayed',
  'x-gatehouse-warning',
  'accept-ranges',
  'content-range',
  'content-disposition',
  'etag',
  'mcp-session-id',
  'www-authenticate',
].join(', ')

/** Headers of every response to a browser of an allowed origin. */
export function addCorsHeaders(headers: Headers, request: Request, settings: ServerSettings): void {
  const origin = crossOrigin(request, settings)
  if (origin === null) return
  headers.append('vary', 'origin')
  const allowed = allowedOrigin(origin, settings)
  if (allowed === undefined) return
  headers.set('access-control-allow-origin', allowed)
  headers.set('access-control-expose-headers', EXPOSED)
}

/** The origin that decides about the response; null: none does. */
function crossOrigin(request: Request, { cors_origins }: ServerSettings): string | null {
  if (cors_origins.length === 0) return null
  const path = pathOf(request)
  // A page of another origin has no business with them, although the browser may be on the gateway's machine.
  if (isAdminPath(path) || path === '/metrics') return null
  return request.headers.get('origin')
}

function allowedOrigin(origin: string, { cors_origins }: ServerSettings): string | undefined {
  if (cors_origins.includes('*')) return '*'
  return cors_origins.includes(origin) ? origin : undefined
}

export const isPreflight = ({ method, headers }: Request): boolean =>
  method === 'OPTIONS' && headers.has('access-control-request-method')

/**
 * The response to OPTIONS: the methods of the path, and what a browser of an allowed origin may send. The headers of every
 * response are added to it as to any other.
 */
export function preflight(request: Request, settings: ServerSettings, allow?: string[]): Response {
  const headers = new Headers(allow && { allow: allow.join(', ') })
  const origin = crossOrigin(request, settings)
  if (origin !== null && allowedOrigin(origin, settings) !== undefined) {
    headers.set('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
    const requested = request.headers.get('access-control-request-headers')
    headers.set('access-control-allow-headers', requested ?? 'authorization, content-type')
    headers.set('access-control-max-age', '86400')
  }
  return new Response(null, { status: 204, headers })
}
