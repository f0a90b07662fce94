/** Delivers alerts to the operator, by each channel at least once, retried for a day. */
import type { AlertEvent, AlertsConfig } from '../../config/schema/alerts-schema.ts'
import { createJobLoop, type LoopControl } from '../../jobs/job-loop.ts'
import { nextAttemptAt } from '../../jobs/signed-post.ts'
import type { Clock } from '../../kit/clock.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { AuditDraft } from '../../spec/audit.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Alert, AlertHistoryStore, AlertStore, DueAlert } from '../../store/admin/alert-store.ts'
import { createAlertHistory } from './alert-history.ts'
import { channelsOf, createDelivery, type DeliverAlert, receiverOf } from './channels.ts'

/** `message`: one sentence. `data`: what it consists of, without secrets. */
export type AlertEventData = { type: AlertEvent; message: string; data: object }

/**
 * `key`: what is alerted once in this time, by all processes that share the store. `audit`: the row of the audit log that
 * is appended with it, also where nobody is alerted.
 */
export type RaisedAlert = AlertEventData & { key: string; again_seconds: number; audit?: AuditDraft }

export type Alerts = LoopControl & {
  /** An event as it is stored, in the transaction of what it tells of: one alert for each channel, or none. */
  make(event: AlertEventData): Alert[]
  /** Adds an event to the history, for one that is alerted of by `make`. */
  note(event: Omit<RaisedAlert, 'audit'>): void
  /** Stores an event unless one of its key was raised lately. While the store is unavailable, it is sent at once, and once. */
  raise(event: RaisedAlert): void
}

type AlertsParts = {
  store: AlertStore
  history: Pick<AlertHistoryStore, 'record'>
  /** Read for each alert and each delivery. */
  settings(): AlertsConfig
  guardedFetch: GuardedFetch
  /** Told of each event that is raised, also where no channel takes it, and each time that it is. */
  onRaised?(alert: RaisedAlert): void
  clock: Clock
  log: Log
}

const CONCURRENCY = 4
const ANSWER_MILLISECONDS = 15_000
const LEASE_MILLISECONDS = 60_000
const POLL_MILLISECONDS = 5_000
/** What this process remembers to have raised. */
const MOST_KEYS = 10_000

export function createAlerts({ store, history, settings, guardedFetch, onRaised, clock, log }: AlertsParts): Alerts {
  const send = createDelivery({ settings, guardedFetch, clock })
  /** Until when no alert of a key is raised again, in unix milliseconds: the store is asked once in that time. */
  const raised = new Map<string, number>()
  const record = createAlertHistory({ store: history, clock, log })
  const stopping = new AbortController()
  const pending = new Set<Promise<void>>()

  async function deliver(alert: DueAlert, context: Parameters<DeliverAlert>[1]): Promise<number | undefined> {
    const { alert_id, channel, created_at, attempts } = alert
    const answer = await send(alert, context)
    if (!answer) {
      await store.remove(alert_id)
      return undefined
    }
    const { status, error } = answer
    const fields = { alert_id, channel, host: receiverOf(channel, settings()), status, attempt: attempts + 1, error }
    if (status >= 200 && status < 300) {
      log.info('alert delivered', fields)
      await store.remove(alert_id)
      return undefined
    }
    const due_ms = nextAttemptAt(created_at, { attempts, answer, now_ms: clock.now() })
    if (due_ms === null) {
      log.error('alert given up', fields)
      await store.remove(alert_id)
      return undefined
    }
    log.warn('alert not delivered', { ...fields, again_seconds: Math.round((due_ms - clock.now()) / 1000) })
    await store.postpone(alert_id, due_ms)
    return due_ms
  }

  /** For an event that cannot be stored: perhaps it tells of just that. */
  async function sendNow(alert: Alert): Promise<void> {
    const { alert_id, channel } = alert
    const late = new AbortController()
    const cancel = clock.after(ANSWER_MILLISECONDS, () => late.abort())
    const signal = AbortSignal.any([stopping.signal, late.signal])
    const answer = await send(alert, { signal, stopping: () => stopping.signal.aborted }).catch(() => undefined)
    cancel()
    const isDelivered = answer !== undefined && answer.status >= 200 && answer.status < 300
    const fields = { alert_id, channel, status: answer?.status, error: answer?.error }
    if (isDelivered) log.info('alert delivered', fields)
    else log.error('alert lost: it could neither be stored nor delivered', fields)
  }

  function make({ type, message, data }: AlertEventData): Alert[] {
    const { events } = settings()
    if (events && !events.includes(type)) return []
    const now_ms = clock.now()
    const created_at = Math.floor(now_ms / 1000)
    const body = JSON.stringify({ type, timestamp: new Date(now_ms).toISOString(), message, data })
    return channelsOf(settings()).map((channel) => ({
      alert_id: `alert_${randomAlphanumerics(24)}`,
      channel,
      created_at,
      body,
      due_ms: now_ms,
    }))
  }

  type Once = Pick<RaisedAlert, 'key' | 'audit'> & { until_ms: number }

  async function storeOnce(alerts: readonly Alert[], { key, until_ms, audit }: Once) {
    try {
      await store.addOnce({ mark_key: key, until_ms, now_ms: clock.now() }, alerts, audit)
    } catch (cause) {
      log.error('an alert could not be stored; it is sent once', { key }, cause)
      await Promise.all(alerts.map(sendNow))
    }
  }

  const loop = createJobLoop<DueAlert>(
    {
      name: 'alert',
      fieldsOf: ({ alert_id }) => ({ alert_id }),
      lease_ms: LEASE_MILLISECONDS,
      poll_ms: POLL_MILLISECONDS,
      async queues() {
        const due_ms = await store.earliest()
        return due_ms === null ? [] : [{ queue: '', due_ms }]
      },
      concurrency: () => CONCURRENCY,
      claim: ({ now_ms, until_ms, limit }) => store.claim({ now_ms, until_ms, limit }),
      timeout: {
        ms: ANSWER_MILLISECONDS,
        error: () => new GatewayError('upstream_timeout', 'The receiver did not answer in time.'),
      },
      run: deliver,
    },
    { clock, log },
  )

  function note(alert: Omit<RaisedAlert, 'audit'>): void {
    onRaised?.(alert)
    const recording = record(alert)
    if (!recording) return
    const ended = recording.finally(() => pending.delete(ended))
    pending.add(ended)
  }

  return {
    make,
    note,
    raise(alert) {
      const { key, again_seconds, audit, ...event } = alert
      note(alert)
      const now_ms = clock.now()
      if ((raised.get(key) ?? 0) > now_ms) return
      const alerts = make(event)
      if (alerts.length === 0 && !audit) return
      if (raised.size >= MOST_KEYS) raised.clear()
      const until_ms = now_ms + again_seconds * 1000
      raised.set(key, until_ms)
      const storing = storeOnce(alerts, { key, until_ms, ...(audit && { audit }) }).finally(() =>
        pending.delete(storing),
      )
      pending.add(storing)
    },
    start: loop.start,
    async stop(options) {
      stopping.abort()
      await Promise.all([loop.stop(options), ...pending])
    },
    async idle() {
      await Promise.all(pending)
      await loop.idle()
    },
  }
}
