/** Active health: a cheap request to a provider at intervals, where it is configured, beside what its calls show. */
import type { HealthConfig } from '../config/schema/routing-schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'

/** What the probes of one provider show. Times are milliseconds of the steady clock. */
export type ProviderHealth = {
  is_unhealthy: boolean
  /** When the next probe starts: before that, an unhealthy provider does not return. */
  next_probe_at: number
}

/** Resolves where the provider works. `signal` is aborted after the time limit. */
export type HealthProbe = (signal: AbortSignal) => Promise<unknown>

export type HealthMonitor = {
  readonly health: ProviderHealth
  stop(): void
}

type MonitorParts = {
  provider: string
  config: HealthConfig
  probe: HealthProbe
  clock: Clock
  log: Log
  /** Called each time the provider works again. */
  onRecovered?: ((health: ProviderHealth) => void) | undefined
}

const DEFAULTS = { interval_seconds: 10, timeout_seconds: 2, unhealthy_after: 2, healthy_after: 1 }

/** Probes the provider now, and `interval_seconds` after the end of each probe: there is never more than one. */
export function startHealthMonitor(parts: MonitorParts): HealthMonitor {
  const { provider, probe, clock, log, onRecovered } = parts
  const config = { ...DEFAULTS, ...parts.config }
  const health: ProviderHealth = { is_unhealthy: false, next_probe_at: clock.steady() }
  const stopped = new AbortController()
  /** Probes in a row that say otherwise than `health`. */
  let differing = 0
  let cancelNext = () => {}

  function note(why: string | undefined): void {
    const is_failure = why !== undefined
    differing = is_failure === health.is_unhealthy ? 0 : differing + 1
    if (differing < (is_failure ? config.unhealthy_after : config.healthy_after)) return
    differing = 0
    health.is_unhealthy = is_failure
    if (is_failure) log.warn('provider unhealthy', { provider, why })
    else {
      log.info('provider healthy', { provider })
      onRecovered?.(health)
    }
  }

  async function run(): Promise<void> {
    const why = await failureOf(probe, { clock, seconds: config.timeout_seconds, stopped: stopped.signal })
    if (stopped.signal.aborted) return
    health.next_probe_at = clock.steady() + config.interval_seconds * 1000
    note(why)
    cancelNext = clock.after(config.interval_seconds * 1000, () => void run())
  }

  void run()
  return {
    health,
    stop() {
      stopped.abort()
      cancelNext()
      health.is_unhealthy = false // nothing is known of it any more
    },
  }
}

type Limits = { clock: Clock; seconds: number; stopped: AbortSignal }

/** Why the probe failed; undefined: it succeeded. Ends after the time limit, whether or not the probe heeds its signal. */
async function failureOf(probe: HealthProbe, { clock, seconds, stopped }: Limits): Promise<string | undefined> {
  const control = new AbortController()
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  const end = (why: string) => {
    resolve(why)
    control.abort()
  }
  const cancelLimit = clock.after(seconds * 1000, () => end(`no answer within ${seconds} s`))
  const onStop = () => end('stopped')
  stopped.addEventListener('abort', onStop, { once: true })
  const tried = Promise.try(probe, control.signal).then(
    () => undefined,
    (error: unknown) => (answers(error) ? undefined : (error as Error).message),
  )
  try {
    return await Promise.race([tried, ended])
  } finally {
    cancelLimit()
    stopped.removeEventListener('abort', onStop)
  }
}

/** It is there, and refuses this request: a matter of the key, of a rate limit, or of an API without a model list. */
function answers(error: unknown): boolean {
  const status = error instanceof GatewayError ? error.detail.upstream_status : undefined
  return status !== undefined && status >= 400 && status < 500
}
