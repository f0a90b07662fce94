/** The request log: a row for each call that has ended, and for each request of a known token that was refused before. */
import { type BatchHealth, BatchQueue } from '../../kit/batch-queue.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Capture } from '../../protocols/shared/capture.ts'
import type { RequestLogStore, RequestRow } from '../../store/requests/request-row.ts'
import { requestRow } from './call-row.ts'
import type { RequestSinks } from './request-sinks.ts'
import type { EndedRequest, Recorder } from './requests.ts'

/** With what a request waits for others before, half a second: what a process that is killed loses at most, while its store can be written. */
const FLUSH_MILLISECONDS = 480
/** One transaction. On SQLite it blocks the event loop, some 10 microseconds a row: calls go on between two of them. */
const ROWS_PER_WRITE = 100
/** At thousands of calls a second: a row takes a fourth less, as each page that changes is written once for more rows. */
const ROWS_PER_WRITE_BEHIND = 400
/** Some 30 MB. */
const MAX_QUEUED = 20_000
const WRITE_MILLISECONDS = 10_000
/** Rows of one token in a minute that reached no provider and no cache: a client that repeats a refused request must not fill the disk. */
const REFUSED_PER_MINUTE = 600

type RequestLog = {
  record: Recorder
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
  /** Records the contents of calls that are marked for it; absent: of none. */
  contents?: { add(capture: Capture, row: RequestRow): void } | undefined
  assignIds?: AssignIds
  /** Called after rows were written. */
  onWritten?: () => void
  /** Read at each use. */
  settings(): { enabled: boolean; keep_days: number }
  clock: Clock
  log: Log
}

export function createRequestLog(parts: RequestLogParts): RequestLog {
  const { store, sinks, contents, onWritten, settings, clock, log } = parts
  const refused = createRefusedLimit()
  const assignIds = parts.assignIds ?? createIds(store)
  const rows = new BatchQueue<RequestRow>({
    name: 'the request log',
    async write(batch) {
      // A row with an id may have been written before, by an attempt whose end is not known.
      const is_repeated = batch.some(({ row_id }) => row_id !== 0)
      await assignIds(batch)
      await store.append(batch, { is_repeated })
      onWritten?.()
      return 0
    },
    max_queued: MAX_QUEUED,
    max_batch: ROWS_PER_WRITE,
    max_batch_behind: ROWS_PER_WRITE_BEHIND,
    every_ms: FLUSH_MILLISECONDS,
    timeout_ms: WRITE_MILLISECONDS,
    clock,
    log,
  })
  return {
    record(ended, { offset, each }) {
      const { enabled } = settings()
      if (!enabled && !sinks) return
      each(ended, (one) => {
        const { record } = one
        const hasServed = record !== undefined && (record.attempts.length > 0 || record.error === undefined)
        if (!hasServed && !refused.admits(one)) return
        const row = requestRow(one, offset)
        if (enabled) rows.push(row)
        const capture = record?.call.capture
        if (enabled && capture?.is_recorded) contents?.add(capture, row)
        sinks?.push(row)
      })
    },
    health: () => ({ ...rows.health(), suppressed: refused.suppressed() }),
    prune: () => store.prune((unixSeconds(clock) - settings().keep_days * 86_400) * 1000),
    flush: () => rows.flush(),
    close: (options) => rows.close(options),
  }
}

export type AssignIds = (rows: readonly RequestRow[]) => Promise<void>

/** Gives ids to rows that have none, from ranges that no other process gets. A row keeps its id when it is written again. */
export function createIds(store: Pick<RequestLogStore, 'reserve'>): AssignIds {
  const RESERVED = 2_000
  let [next, end] = [0, 0]
  async function assign(rows: readonly RequestRow[]): Promise<void> {
    for (const row of rows) {
      if (row.row_id !== 0) continue
      if (next === end) {
        next = await store.reserve(RESERVED)
        end = next + RESERVED
      }
      row.row_id = next++
    }
  }
  /** One after the other: rows and their contents are written at the same time. */
  let last: Promise<unknown> = Promise.resolve()
  return (rows) => {
    const assigned = last.then(() => assign(rows))
    last = assigned.catch(() => undefined)
    return assigned
  }
}

function createRefusedLimit() {
  let minute = 0
  let counts = new Map<string, number>()
  let suppressed = 0
  return {
    admits({ record, request, at }: EndedRequest): boolean {
      const token_id = record?.call.caller.token_id ?? request?.context.caller.token_id ?? ''
      // Of known tokens, since nobody else may fill the disk.
      if (!record && (token_id === '' || !request || request.status < 400)) return false
      const now = Math.floor(at / 60_000)
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
