/** The request log: a row for each call that has ended, and for each request of a known token that was refused before. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { RequestLogStore, RequestRow } from '../store/request-row.ts'
import { type Batches, type BatchHealth, createBatches } from '../telemetry/batches.ts'
import { requestRow } from './request-row.ts'
import type { RequestSinks } from './request-sinks.ts'
import type { EndedRequest, RequestObserver } from './requests.ts'

/** What a process that is killed loses at most, while its store can be written. */
const FLUSH_MILLISECONDS = 500
/** One transaction: on SQLite it blocks the event loop for some milliseconds. */
const ROWS_PER_WRITE = 200
/** Some 30 MB. */
const MAX_QUEUED = 20_000
const WRITE_MILLISECONDS = 10_000
/** Rows of one token in a minute that reached no provider and no cache: a client that repeats a refused request must not fill the disk. */
const REFUSED_PER_MINUTE = 600

type RequestLog = {
  observe: RequestObserver
  /** `suppressed`: rows of refused requests beyond those of a minute. */
  health(): BatchHealth & { suppressed: number }
  /** Deletes one batch of rows that are no longer kept; false: nothing is left. */
  prune(): Promise<boolean>
  /** Writes what is in memory. */
  flush(): Promise<void>
  close(options: { deadline_ms: number }): Promise<void>
}

type RequestLogParts = {
  store: Pick<RequestLogStore, 'reserve' | 'append' | 'prune'>
  /** Where rows go besides; absent: nowhere. */
  sinks?: Pick<RequestSinks, 'push'> | undefined
  /** Read at each use. */
  settings(): { enabled: boolean; keep_days: number }
  clock: Clock
  log: Log
}

export function createRequestLog({ store, sinks, settings, clock, log }: RequestLogParts): RequestLog {
  const refused = createRefusedLimit(clock)
  const nextIds = createIds(store)
  const rows: Batches<RequestRow> = createBatches({
    name: 'the request log',
    async write(batch) {
      await nextIds(batch)
      await store.append(batch)
      return 0
    },
    max_queued: MAX_QUEUED,
    max_batch: ROWS_PER_WRITE,
    every_ms: FLUSH_MILLISECONDS,
    timeout_ms: WRITE_MILLISECONDS,
    clock,
    log,
  })
  return {
    observe(ended) {
      const { enabled } = settings()
      if (!enabled && !sinks) return
      const { record } = ended
      const hasServed = record !== undefined && (record.attempts.length > 0 || record.error === undefined)
      if (!hasServed && !refused.admits(ended)) return
      const row = requestRow(ended, clock)
      if (enabled) rows.push(row)
      sinks?.push(row)
    },
    health: () => ({ ...rows.health(), suppressed: refused.suppressed() }),
    prune: () => store.prune((unixSeconds(clock) - settings().keep_days * 86_400) * 1000),
    flush: rows.flush,
    close: rows.close,
  }
}

/** Gives ids to rows that have none, from ranges that no other process gets. A row keeps its id when it is written again. */
function createIds(store: Pick<RequestLogStore, 'reserve'>): (rows: readonly RequestRow[]) => Promise<void> {
  const RESERVED = 2_000
  let [next, end] = [0, 0]
  return async (rows) => {
    for (const row of rows) {
      if (row.row_id !== 0) continue
      if (next === end) {
        next = await store.reserve(RESERVED)
        end = next + RESERVED
      }
      row.row_id = next++
    }
  }
}

function createRefusedLimit(clock: Clock) {
  let minute = 0
  let counts = new Map<string, number>()
  let suppressed = 0
  return {
    admits({ record, request }: EndedRequest): boolean {
      const token_id = record?.call.caller.token_id ?? request?.context.caller.token_id ?? ''
      // Of known tokens, since nobody else may fill the disk.
      if (!record && (token_id === '' || !request || request.status < 400)) return false
      const now = Math.floor(clock.steady() / 60_000)
      if (now !== minute) {
        minute = now
        counts = new Map()
      }
      const count = (counts.get(token_id) ?? 0) + 1
      counts.set(token_id, count)
      if (count <= REFUSED_PER_MINUTE) return true
      suppressed++
      return false
    },
    suppressed: () => suppressed,
  }
}
