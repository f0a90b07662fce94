/** Notices what the operator should know of: failing targets, refused keys, models that end, the ledger, the disk. */
import { statfs } from 'node:fs/promises'
import type { LedgerHealth } from '../../calls/recording/ledger.ts'
import type { Router } from '../../calls/routing/router.ts'
import type { AlertsConfig } from '../../config/schema/alerts-schema.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Model } from '../../spec/model.ts'
import type { LedgerStore } from '../../store/ledger/ledger-store.ts'
import { endingModels } from '../metrics/ending-models.ts'
import type { Alerts } from './alerts.ts'

type AlertWatchParts = {
  alerts: Pick<Alerts, 'raise'>
  router: Pick<Router, 'states'>
  ledger: { health(): LedgerHealth } & Pick<LedgerStore, 'usage'>
  /** Rejects when the database or the outputs cannot be written. */
  ready(): Promise<void>
  models(): readonly Model[]
  /** Where the gateway writes on a local disk. */
  directories: readonly string[]
  settings(): AlertsConfig
  clock: Clock
  log: Log
  /** The share of a file system that is free, from 0 to 1; undefined: not known. */
  freeShare?(directory: string): Promise<number | undefined>
}

type AlertWatch = {
  start(): void
  stop(): Promise<void>
  /** Resolves when no check is under way: for tests that own the clock. */
  idle(): Promise<void>
}

const CHECK_MILLISECONDS = 30_000
const MODELS_CHECK_SECONDS = 6 * 3_600
/** How long trouble of the ledger or the storage lasts before it is one: a restart of the database is none. */
const TROUBLE_SECONDS = 60
const HOUR = 3_600
const DAY = 86_400
/** Of a failed connection: codes of Node and Bun for certificates that are not accepted. */
const CERTIFICATE = /\((?:ERR_TLS_CERT|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)\w*\)/

export function createAlertWatch(parts: AlertWatchParts): AlertWatch {
  const { alerts, router, ledger, ready, models, directories, settings, clock, log, freeShare = freeShareOf } = parts
  /** Since when a condition holds, by the steady clock. */
  const since = new Map<string, number>()
  let known_lost = 0
  let models_at = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined
  let checking: Promise<unknown> = Promise.resolve()
  let isStopped = false

  /** For how many seconds it has held; undefined: it does not. */
  function heldFor(key: string, holds: boolean): number | undefined {
    if (!holds) {
      since.delete(key)
      return undefined
    }
    const now = clock.steady()
    const start = since.get(key) ?? now
    since.set(key, start)
    return (now - start) / 1000
  }

  function checkTargets(): void {
    const now = clock.steady()
    const least = (settings().breaker_open_minutes ?? 5) * 60
    for (const { id, ejections, refused_until, last_error, last_ok_at } of router.states()) {
      const [target = id, key] = id.split('#', 2)
      const [provider = target] = target.split('/', 1)
      // Of calls and of orders.
      const code = last_error && last_error.at > last_ok_at ? certificateTrouble(last_error.error) : undefined
      if (code !== undefined) {
        alerts.raise({
          type: 'provider.certificate_invalid',
          key: `provider.certificate_invalid ${provider}`,
          again_seconds: DAY,
          message: `The certificate of the provider ${provider} is not accepted.`,
          data: { provider, target, code },
        })
      }
      if (refused_until > now) {
        const name = key === undefined ? '' : ` (${key})`
        alerts.raise({
          type: 'provider.key_refused',
          key: `provider.key_refused ${provider} ${key ?? ''}`,
          again_seconds: DAY,
          message: `The provider ${provider} refuses the key of this gateway${name}, or its account has no credit.`,
          data: { provider, key, target },
        })
      }
      const seconds = heldFor(`breaker ${id}`, ejections > 0)
      if (seconds === undefined || seconds < least) continue
      alerts.raise({
        type: 'breaker.open',
        key: `breaker.open ${id}`,
        again_seconds: HOUR,
        message: `${target} has failed for ${Math.round(seconds / 60)} minutes and gets no calls but tests.`,
        data: { target, key, seconds: Math.round(seconds), ejections },
      })
    }
  }

  function checkLedger(): void {
    const { queued, lag_ms, spool_bytes, lost, is_store_away } = ledger.health()
    const isDelayed = is_store_away || spool_bytes > 0 || lag_ms >= TROUBLE_SECONDS * 1000
    const seconds = heldFor('ledger', isDelayed)
    if (seconds !== undefined && seconds >= TROUBLE_SECONDS) {
      alerts.raise({
        type: 'ledger.delayed',
        key: 'ledger.delayed',
        again_seconds: HOUR,
        message: 'The ledger cannot be written; charges wait on the local disk or in memory.',
        data: { queued, lag_ms: Math.round(lag_ms), spool_bytes },
      })
    }
    if (lost > known_lost) {
      alerts.raise({
        type: 'ledger.entries_lost',
        key: `ledger.entries_lost ${clock.now()}`,
        again_seconds: HOUR,
        message: `${lost - known_lost} entries of the ledger were lost.`,
        data: { lost: lost - known_lost, spool_bytes },
      })
    }
    known_lost = lost
  }

  async function checkStorage(): Promise<void> {
    const trouble = await ready().then(
      () => undefined,
      (thrown: unknown) => (thrown instanceof GatewayError ? thrown.message : 'unknown'),
    )
    const seconds = heldFor('storage', trouble !== undefined)
    if (seconds === undefined || seconds < TROUBLE_SECONDS) return
    alerts.raise({
      type: 'storage.unavailable',
      key: 'storage.unavailable',
      again_seconds: HOUR,
      message: `The gateway is not ready: ${trouble}.`,
      data: { reason: trouble, seconds: Math.round(seconds) },
    })
  }

  async function checkDisks(): Promise<void> {
    const least = settings().disk_free_percent ?? 5
    for (const directory of directories) {
      const share = await freeShare(directory)
      if (share === undefined || share * 100 >= least) continue
      const percent = Math.round(share * 1000) / 10
      alerts.raise({
        type: 'disk.low',
        key: `disk.low ${directory}`,
        again_seconds: DAY,
        message: `${percent} % of the disk of ${directory} is free.`,
        data: { directory, free_percent: percent },
      })
    }
  }

  async function checkModels(): Promise<void> {
    if (clock.steady() < models_at + MODELS_CHECK_SECONDS * 1000) return
    const now = unixSeconds(clock)
    const days = settings().deprecation_days ?? 30
    const ending = await endingModels(models(), { usage: ledger.usage, now, days })
    models_at = clock.steady()
    for (const { model, event, at, users } of ending) {
      const date = new Date(at * 1000).toISOString().slice(0, 10)
      const when = at <= now ? `was ${event} on ${date}` : `will be ${event} on ${date}`
      alerts.raise({
        type: 'model.deprecated',
        key: `model.deprecated ${model} ${event} ${at}`,
        again_seconds: 30 * DAY,
        message: `The model ${model} ${when}, and is in use.`,
        data: { model, [`${event}_at`]: date, users },
      })
    }
  }

  async function check(): Promise<void> {
    checkTargets()
    checkLedger()
    await checkStorage()
    await checkDisks()
    await checkModels()
  }

  function checkLater(): void {
    if (isStopped) return
    cancel = clock.after(CHECK_MILLISECONDS, () => {
      checking = check()
        .catch((error: unknown) => log.error('the check for alerts failed; will retry', {}, error))
        .finally(checkLater)
    })
  }

  return {
    start: checkLater,
    async stop() {
      isStopped = true
      cancel?.()
      await checking
    },
    idle: async () => void (await checking),
  }
}

function certificateTrouble({ code, message }: GatewayError): string | undefined {
  return code === 'upstream_unreachable' ? CERTIFICATE.exec(message)?.[0].slice(1, -1) : undefined
}

async function freeShareOf(directory: string): Promise<number | undefined> {
  try {
    const { bavail, blocks } = await statfs(directory)
    return blocks > 0 ? bavail / blocks : undefined
  } catch {
    return undefined // not created yet
  }
}
