/** Keeps the sums of the request log while calls are recorded: minutes become hours and days, and old ones are deleted. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { type RequestSumStore, SUM_STEPS } from '../../store/requests/request-sums.ts'

type SumUpkeep = {
  /** Starts it where a minute has passed since the last time. Never throws. */
  start(): void
  /** Resolves once none is running, and starts no other. */
  stop(): Promise<void>
}

type SumSettings = { minutes_keep_hours: number; hours_keep_days: number; days_keep_days: number }

type UpkeepParts = {
  store: Pick<RequestSumStore, 'claimUpkeep' | 'upkeep'>
  settings(): SumSettings
  clock: Clock
  log: Log
}

const INTERVAL_MILLISECONDS = 60_000

export function createSumUpkeep({ store, settings, clock, log }: UpkeepParts): SumUpkeep {
  let next = clock.steady() + INTERVAL_MILLISECONDS
  let running: Promise<void> | undefined
  let isStopped = false

  async function run(): Promise<void> {
    const now = unixSeconds(clock)
    if (!(await store.claimUpkeep(now))) return
    const { minutes_keep_hours, hours_keep_days, days_keep_days } = settings()
    const kept = {
      minutes: minutes_keep_hours * SUM_STEPS.hour,
      hours: hours_keep_days * SUM_STEPS.day,
      days: days_keep_days * SUM_STEPS.day,
    }
    while (!isStopped && (await store.upkeep(now, kept)));
  }

  return {
    start() {
      const now = clock.steady()
      if (isStopped || running || now < next) return
      next = now + INTERVAL_MILLISECONDS
      running = run()
        .catch((error: unknown) => log.error('the sums of the request log were not kept; will retry', {}, error))
        .finally(() => {
          running = undefined
        })
    },
    async stop() {
      isStopped = true
      await running
    },
  }
}
