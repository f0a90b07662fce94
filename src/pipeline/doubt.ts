/** Attempts that their providers may have charged although they did not serve the call: what is recorded of each. */
import { NOT_ACCEPTED } from '../providers/orders/acceptance.ts'
import type { AttemptPolicy } from '../routing/outcome.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import type { CallRecord, DoubtfulAttempt, Meter } from './call.ts'

/** A provider that returns one of these has done no work for the request, or was never reached. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'no_available_channel',
  'server_is_overloaded',
  'storage_unavailable',
  'upstream_auth',
  'upstream_unreachable',
])

/**
 * Whether the provider may have charged for an attempt that ended with this error. Of an order, each error counts that does
 * not prove that it was not accepted.
 */
export function mayHaveCharged(error: unknown, policy: AttemptPolicy): boolean {
  if (!(error instanceof GatewayError)) return true
  const { code, status, detail } = error
  if (detail.accepted === 'no' || detail.fail_code !== undefined) return false
  if (code === 'client_closed_request') return true
  if (status < 500) return false
  if (policy === 'until_accepted') return true
  return !REFUSALS.has(code) && !NOT_ACCEPTED.includes(detail.upstream_status ?? 0)
}

export function noteDoubt(record: CallRecord, attempt: DoubtfulAttempt): void {
  record.doubts ??= []
  record.doubts.push(attempt)
}

/** Whether the counts of a meter cover what its provider may charge. */
export const hasCounted = (meter: Meter<unknown>): boolean => meter.hasCounted?.() ?? true
