/** Failed logins of administrators in the audit log: bounded, since anybody can cause them. */
import { network } from '../../accounts/slow-down.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Audit } from '../audit/audit.ts'

/** An address has one row in this time; its failures in between are counted in its next row. */
export const QUIET_MILLISECONDS = 60_000
/** From all addresses: a flood from many leaves no more. */
export const MAX_ROWS_A_MINUTE = 20
/** The address without a failure for the longest time is forgotten. */
const MAX_ADDRESSES = 1_000

type FailedLoginParts = { audit: Pick<Audit, 'record'>; clock: Pick<Clock, 'steady'>; log: Log }
type Origin = { readonly address: string; readonly request_id?: string }

/** Records a failure, or counts it for the next row. Never rejects: the refusal is sent all the same. */
export function createFailedLogins({ audit, clock, log }: FailedLoginParts): (from: Origin) => Promise<void> {
  const known = new Map<string, { recorded_at: number; unrecorded: number }>()
  let [minute_began, rows, unrecorded_elsewhere] = [clock.steady(), 0, 0]

  /** Whether a row may be written now. */
  function take(now: number): boolean {
    if (now - minute_began >= QUIET_MILLISECONDS) [minute_began, rows] = [now, 0]
    if (rows >= MAX_ROWS_A_MINUTE) return false
    rows++
    return true
  }

  function remember(address: string, entry: { recorded_at: number; unrecorded: number }): void {
    known.delete(address) // and back in as the newest
    known.set(address, entry)
    const [oldest] = known
    if (oldest === undefined || known.size <= MAX_ADDRESSES) return
    known.delete(oldest[0])
    unrecorded_elsewhere += oldest[1].unrecorded
  }

  return async ({ address, request_id }) => {
    const now = clock.steady()
    const place = network(address)
    const past = known.get(place) ?? { recorded_at: Number.NEGATIVE_INFINITY, unrecorded: 0 }
    const failures = past.unrecorded + 1
    if (now - past.recorded_at < QUIET_MILLISECONDS || !take(now)) {
      remember(place, { ...past, unrecorded: failures })
      return
    }
    remember(place, { recorded_at: now, unrecorded: 0 })
    const after = { failures, failures_elsewhere: unrecorded_elsewhere }
    unrecorded_elsewhere = 0
    const event = { action: 'login.failed', object_type: 'address', object_id: place, after }
    await audit
      .record({ actor: 'unknown', address, ...(request_id !== undefined && { request_id }), ...event })
      .catch((error: unknown) => log.error('a failed login was not recorded', { address }, error))
  }
}
