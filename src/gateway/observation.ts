/** Connects all that records requests and calls: the access log, the request log, metrics, traces. Recorders never delay a call. */
import type { CallSubscriber } from '../calls/call.ts'
import type { Config } from '../config/config.ts'
import type { FinishedRequest } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { type ContentsLog, contentsKeys, createContentsLog, readContents } from '../observe/requests/contents-log.ts'
import { createLiveEvents, type LiveEvents } from '../observe/requests/live-events.ts'
import { createIds, createRequestLog } from '../observe/requests/request-log.ts'
import { createRequestReader, type RequestReader } from '../observe/requests/request-reader.ts'
import { createRequestSinks, searchesOf } from '../observe/requests/request-sinks.ts'
import { viewRow } from '../observe/requests/request-view.ts'
import { createAccessLog, createRequests, type Recorder } from '../observe/requests/requests.ts'
import { createSumUpkeep } from '../observe/requests/sum-upkeep.ts'
import { createSummaries, type Summaries } from '../observe/requests/summaries.ts'
import type { RequestRow } from '../store/requests/request-row.ts'
import type { Store } from '../store/store.ts'
import type { Metering } from './metering.ts'
import type { Telemetry } from './tracing.ts'
import type { WatchedAccounts } from './watch-accounts.ts'

type Observation = {
  calls: readonly CallSubscriber[]
  /** Of calls, once the caller of a request is known. */
  contents: Pick<ContentsLog, 'mayRecord' | 'admit' | 'reloaded'>
  requestFinished(request: FinishedRequest): void
  /** Records the requests that have ended until now, which otherwise takes some milliseconds. */
  flush(): void
  /** Deletes one batch of old rows of the request log, and of contents; false: nothing is left. */
  pruneRequests(): Promise<boolean>
  readers: { requests: RequestReader; summaries: Summaries; live: LiveEvents }
  /** After the last call was settled. */
  close(options: { deadline_ms: number }): Promise<void>
}

type ObservationParts = {
  store: Pick<Store, 'requestLog' | 'requestSums' | 'requestContents' | 'audit' | 'live'>
  accountStores: Pick<WatchedAccounts, 'onRevision'>
  config(): Config
  /** Absent: nothing is exported by OTLP. */
  telemetry?: Telemetry | undefined
  /** Absent: nothing is counted. */
  metering?: Metering | undefined
  clock: Clock
  log: Log
}

export function createObservation({
  store,
  accountStores,
  config,
  telemetry,
  metering,
  clock,
  log,
}: ObservationParts): Observation {
  const assignIds = createIds(store.requestLog)
  const sinks = createRequestSinks({ config: config(), assignIds, clock, log })
  const logs = telemetry?.logs
  const push = (row: RequestRow) => {
    sinks.push(row)
    logs?.add([viewRow(row)])
  }
  const contents = createContentsLog({ store: store.requestContents, assignIds, config, clock, log })
  metering?.watchContents(contents.health)
  const summarySettings = () => config().request_log.summaries
  const upkeep = createSumUpkeep({ store: store.requestSums, settings: summarySettings, clock, log })
  const requestLog = createRequestLog({
    store: store.requestLog,
    contents,
    assignIds,
    onWritten: upkeep.start,
    ...((logs || config().request_log.sinks.length > 0) && { sinks: { push } }),
    settings: () => config().request_log,
    clock,
    log,
  })
  metering?.watchRequestLog(() => {
    const { suppressed, ...rows } = requestLog.health()
    return { sinks: [{ sink: 'store', ...rows }, ...sinks.health()], suppressed }
  })
  const live = createLiveEvents({
    process_id: randomAlphanumerics(16),
    store: store.live,
    audit: store.audit,
    clock,
    log,
  })
  accountStores.onRevision(live.revised)
  const recorders: Recorder[] = [createAccessLog({ log }), requestLog.record, live.record]
  const keys = contentsKeys(config())
  if (metering) recorders.push(metering.record)
  if (telemetry?.tracing) recorders.push(telemetry.tracing.record)
  const requests = createRequests({ recorders, clock, log })
  metering?.countFirst(requests.flush)
  const flush = () => {
    requests.flush()
    return requestLog.flush()
  }
  const { request_log } = config()
  const isElsewhere = request_log.reader === 'clickhouse'
  const reader = createRequestReader({
    store: searchesOf(store.requestLog, request_log),
    flush: isElsewhere ? async () => void (await Promise.all([flush(), sinks.flush()])) : flush,
    async contents(row) {
      requests.flush()
      await contents.flush()
      return readContents(row, { store: store.requestContents, keys })
    },
    clock,
  })
  const summaries = createSummaries({ store: store.requestSums, flush, settings: summarySettings, clock })
  return {
    calls: [requests.calls],
    requestFinished: requests.requestFinished,
    flush: requests.flush,
    contents,
    async pruneRequests() {
      upkeep.start()
      const left = [await requestLog.prune(), await contents.prune()]
      return left.includes(true)
    },
    readers: { requests: reader, summaries, live },
    async close(options) {
      requests.flush()
      await Promise.all([requestLog.close(options), contents.close(options), sinks.close(options), live.closed()])
      await upkeep.stop()
    },
  }
}
