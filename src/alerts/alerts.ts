/** Delivers alerts to the operator's webhook: signed, at least once, retried for a day. */
import type { AlertsConfig } from '../config/account-schema.ts'
import { createJobLoop } from '../jobs/job-loop.ts'
import { nextAttemptAt, postSigned } from '../jobs/signed-post.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import type { Log } from '../kit/log.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { Alert, AlertStore, DueAlert } from '../store/alert-store.ts'

type Alerts = {
  /** An alert as it is stored, in the transaction of what it tells of; undefined: the operator wants none. */
  make(type: string, data: object): Alert | undefined
  start(): void
  stop(options: { deadline_ms: number }): Promise<void>
  /** Resolves when no delivery is under way and none is due now: for tests that own the clock. */
  idle(): Promise<void>
}

type AlertsParts = {
  store: AlertStore
  /** Read for each alert and each delivery. */
  settings(): AlertsConfig
  guardedFetch: GuardedFetch
  clock: Clock
  log: Log
}

const CONCURRENCY = 4
const ANSWER_MILLISECONDS = 15_000
const LEASE_MILLISECONDS = 60_000
const POLL_MILLISECONDS = 5_000

export function createAlerts({ store, settings, guardedFetch, clock, log }: AlertsParts): Alerts {
  async function deliver(alert: DueAlert, context: Parameters<typeof postSigned>[1]): Promise<number | undefined> {
    const { webhook } = settings()
    const { alert_id, created_at, attempts, body } = alert
    if (!webhook) {
      await store.remove(alert_id)
      return undefined
    }
    const { url, secret } = webhook
    const signed = secret === undefined ? {} : { signed: { secret, id: alert_id, timestamp: unixSeconds(clock) } }
    const answer = await postSigned({ guardedFetch, url, body, private_origins: [url], ...signed }, context)
    const { status, error } = answer
    const fields = { alert_id, host: URL.parse(url)?.host, status, attempt: attempts + 1, error }
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

  return {
    make(type, data) {
      if (!settings().webhook) return undefined
      const now_ms = clock.now()
      const created_at = Math.floor(now_ms / 1000)
      const body = JSON.stringify({ type, timestamp: new Date(now_ms).toISOString(), data })
      return { alert_id: `alert_${randomAlphanumerics(24)}`, created_at, body, due_ms: now_ms }
    },
    start: loop.start,
    stop: loop.stop,
    idle: loop.idle,
  }
}
