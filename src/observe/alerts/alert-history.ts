/** Records which alerts were raised, and until when each of them is open, whether or not somebody is alerted. */
import type { AlertEvent } from '../../config/schema/alerts-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { AlertHistoryStore } from '../../store/admin/alert-store.ts'

type Raised = { type: AlertEvent; message: string; data: object; key: string; again_seconds: number }

type HistoryParts = { store: Pick<AlertHistoryStore, 'record'>; clock: Clock; log: Log }

/** What is looked at every 30 seconds, and raised each time that it holds: it is over when it was not for this long. */
const CONDITION_SECONDS = 180
const CONDITIONS: readonly AlertEvent[] = [
  'provider.key_refused',
  'provider.certificate_invalid',
  'breaker.open',
  'ledger.delayed',
  'storage.unavailable',
  'disk.low',
]
/** One that holds is stored so often by each process. */
const RECORD_MILLISECONDS = 60_000
const MAX_KEYS = 10_000

/** Undefined: it was stored lately. */
export function createAlertHistory({ store, clock, log }: HistoryParts): (alert: Raised) => Promise<void> | undefined {
  const stored = new Map<string, number>()
  return ({ key, again_seconds, type, message, data }) => {
    const now_ms = clock.now()
    if ((stored.get(key) ?? 0) > now_ms) return undefined
    if (stored.size >= MAX_KEYS) stored.clear()
    stored.set(key, now_ms + RECORD_MILLISECONDS)
    const open_seconds = CONDITIONS.includes(type) ? CONDITION_SECONDS : again_seconds
    const alert_id = `alert_${randomAlphanumerics(24)}`
    const event = { alert_id, key, type, message, data, now_ms, open_until_ms: now_ms + open_seconds * 1000 }
    return store.record(event).catch((cause: unknown) => log.error('an alert is not in the history', { key }, cause))
  }
}
