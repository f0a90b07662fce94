/** Maps errors of the Messages API to the gateway's codes. */
import type { Clock } from '../../../kit/clock.ts'
import { isRecord } from '../../../kit/json.ts'
import type { GatewayError } from '../../../spec/error.ts'
import { type ErrorResponse, errorFromBody, errorFromResponse } from '../../shared/provider-error.ts'

/** An error response with a status. Its format is common; only the time to wait is in other headers. */
export const refusalOf = (refusal: ErrorResponse): GatewayError =>
  errorFromResponse(
    refusal.status === 429 ? { ...refusal, headers: withWait(refusal.headers, refusal.clock) } : refusal,
  )

/** Error types of this vendor that have no common equivalent. */
const STATUS_OF_TYPE: Record<string, number> = { billing_error: 402, api_error: 500, conflict_error: 409 }

/** An error in place of a response: an `error` event, or a body with status 200. */
export function failureOf(refusal: Omit<ErrorResponse, 'status' | 'headers'>): GatewayError {
  const { payload } = refusal
  const type = isRecord(payload) && isRecord(payload.error) ? payload.error.type : undefined
  const status = typeof type === 'string' ? STATUS_OF_TYPE[type] : undefined
  return status === undefined ? errorFromBody(refusal) : errorFromResponse({ ...refusal, status, headers: undefined })
}

const LIMITED = ['requests', 'tokens', 'input-tokens', 'output-tokens']

/** Adds `retry-after` if it is missing: the time at which the exhausted limit resets. */
function withWait(headers: Headers | undefined, clock: Clock): Headers | undefined {
  if (!headers || headers.has('retry-after') || headers.has('retry-after-ms')) return headers
  const waits = LIMITED.filter((what) => Number(headers.get(`anthropic-ratelimit-${what}-remaining`) ?? 1) <= 0)
    .map((what) => Date.parse(headers.get(`anthropic-ratelimit-${what}-reset`) ?? '') - clock.now())
    .filter((milliseconds) => Number.isFinite(milliseconds))
  if (waits.length === 0) return headers
  const copy = new Headers(headers)
  copy.set('retry-after-ms', String(Math.max(0, ...waits)))
  return copy
}
