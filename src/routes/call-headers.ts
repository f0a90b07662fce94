/** The response headers of a call: how it was routed, and where its rate limits stand. */
import type { ServerSettings } from '../config/config.ts'
import type { Clock } from '../kit/clock.ts'
import type { Call } from '../pipeline/call.ts'
import { addRateLimitHeaders } from './rate-limit-headers.ts'
import { addRoutingHeaders } from './routing-headers.ts'

/** None for a request that is no call. */
export function addCallHeaders(
  headers: Headers,
  call: Call,
  { settings, clock }: { settings: ServerSettings; clock: Clock },
): void {
  addRoutingHeaders(headers, call, settings)
  addRateLimitHeaders(headers, call, clock)
}
