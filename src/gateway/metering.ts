/** Metrics: counted by the parts of the gateway, read for each scrape. */
import type { Config } from '../config/config.ts'
import type { Route } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { createCallMetrics } from '../observe/metrics/call-metrics.ts'
import { expose, type MetricsFormat } from '../observe/metrics/exposition.ts'
import { createMetrics, type Metrics } from '../observe/metrics/metrics.ts'
import { metricsRoute } from '../observe/metrics/metrics-route.ts'
import { type FamilyValues, readValues, withOthers } from '../observe/metrics/process-metrics.ts'
import {
  collectContents,
  collectRequestLog,
  collectState,
  type ObservedState,
} from '../observe/metrics/state-metrics.ts'
import { createWorkMetrics, type WorkMetrics } from '../observe/metrics/work-metrics.ts'
import type { ContentsLog } from '../observe/requests/contents-log.ts'
import type { Recorder } from '../observe/requests/requests.ts'
import type { Store } from '../store/store.ts'
import type { Telemetry } from './tracing.ts'

export type Metering = WorkMetrics & {
  record: Recorder
  routes: Route[]
  scrape(): Promise<string>
  metrics: Metrics
  /** Counts what has ended and is not counted yet, before each scrape. */
  countFirst(flush: () => void): void
  /** The state of the request log and its sinks, which is read for each scrape. */
  watchRequestLog(health: Parameters<typeof collectRequestLog>[1]): void
  /** The state of the recorded contents, which is read for each scrape. */
  watchContents(health: ContentsLog['health']): void
  /** What is read for each scrape; to be called once. */
  watch(parts: Pick<ObservedState, 'router' | 'limits' | 'ledger' | 'tasks' | 'batches'> & WatchedParts): void
}

type WatchedParts = {
  store: Pick<Store, 'engine'>
  app: ObservedState['requests']
  telemetry: Pick<Telemetry, 'counts' | 'exportMetrics'> | undefined
  config(): Config
}

/** The other processes of this gateway. */
export type Siblings = {
  /** What they have counted. Never rejects. */
  counted(): Promise<readonly (readonly FamilyValues[])[]>
  /** Answers them, and is read a last time at the end of the process. */
  share(own: () => Promise<FamilyValues[]>): void
}

type MeteringParts = {
  config: Config
  version: string
  is_idle?: true
  /** Absent: this is the only process. */
  siblings?: Siblings | undefined
  clock: Clock
  log: Log
}

/** Undefined where nothing is counted. */
export function createMetering({
  config,
  version,
  is_idle,
  siblings,
  clock,
  log,
}: MeteringParts): Metering | undefined {
  if (is_idle || !config.metrics.enabled) return undefined
  const metrics = createMetrics()
  let live = () => config
  const currency = () => live().ledger.currency
  const calls = createCallMetrics({ metrics, currency })
  let read_errors = 0
  let flush = () => {}
  const families = () => {
    flush()
    return metrics.families()
  }
  /** Scrapers that come at the same time get the same text. */
  const running = new Map<MetricsFormat, ReturnType<typeof scrape>>()

  async function scrape(format: MetricsFormat): Promise<{ content_type: string; body: string }> {
    const own = families()
    const all = siblings ? withOthers(own, await siblings.counted()) : own
    const { failed, ...text } = await expose(all, { format, clock })
    if (failed.length > 0) {
      if (read_errors === 0)
        log.error('metrics could not be read', { metrics: failed.map(({ name }) => name).join(', ') }, failed[0]?.cause)
      read_errors += failed.length
    }
    return text
  }

  function scrapeOnce(format: MetricsFormat): ReturnType<typeof scrape> {
    let scraping = running.get(format)
    if (!scraping) {
      scraping = scrape(format).finally(() => running.delete(format))
      running.set(format, scraping)
    }
    return scraping
  }

  siblings?.share(() => readValues(families(), clock))
  return {
    ...createWorkMetrics(metrics, calls.entry),
    record: calls.record,
    routes: [metricsRoute({ settings: config.metrics, server: config.server, scrape: scrapeOnce })],
    scrape: async () => (await scrapeOnce('text')).body,
    metrics,
    countFirst(first) {
      flush = first
    },
    watchRequestLog: (health) => collectRequestLog(metrics, health),
    watchContents: (health) => collectContents(metrics, health),
    watch({ config, store: { engine }, app: requests, telemetry, ...state }) {
      live = config
      const exports = () => telemetry?.counts() ?? {}
      telemetry?.exportMetrics(families)
      collectState(metrics, { ...state, engine, requests, exports, version, currency, clock }, () => read_errors)
    },
  }
}
