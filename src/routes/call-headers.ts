/** The response headers of a call: how it was routed, and where its rate limits stand. */
import type { ServerSettings } from '../config/config.ts'
import type { Clock } from '../kit/clock.ts'
import type { Call } from '../pipeline/call.ts'
import { addRateLimitHeaders } from './rate-limit-headers.ts'
import { routingHeaders } from './routing-headers.ts'

/** Empty for a request that is no call. */
export function callHeaders(
  call: Call,
  { settings, clock }: { settings: ServerSettings; clock: Clock },
): readonly [string, string][] {
  const headers = routingHeaders(call, settings)
  addRateLimitHeaders(headers, call, clock)
  return headers
}
