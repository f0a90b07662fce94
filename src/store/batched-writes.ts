/** Buffers rows in memory and writes them in batches some seconds later, so that no request waits for the disk. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'

type Batch<Row> = {
  /** Takes ownership of the row. Rows with the same key are merged. */
  add(row: Row): void
  /** Writes the buffered rows and accepts no more. Rows that cannot be written now are counted in the log, and lost. */
  close(): Promise<void>
}

type BatchParts<Row> = {
  clock: Clock
  log: Log
  /** The name of the rows in the log. */
  what: string
  every_ms: number
  /** Maximum of buffered rows; rows with further keys are dropped, and counted. */
  max_rows: number
  key(row: Row): string
  merge(into: Row, row: Row): void
  /** Writes all rows, or rejects and has written none. */
  write(rows: Row[]): Promise<void>
}

/** Rows per transaction: it blocks the event loop for a few milliseconds. */
const ROWS_PER_WRITE = 500
/** Pause between full batches, so that requests can be served. */
const PAUSE_MILLISECONDS = 20
/** The longest pause of the backoff after failed writes. */
const MAX_RETRY_MILLISECONDS = 30_000
/** Attempts at shutdown. */
const SHUTDOWN_ATTEMPTS = 3

export function createBatch<Row>(parts: BatchParts<Row>): Batch<Row> {
  const { clock, log, what, every_ms, max_rows, key, merge, write } = parts
  const buffer = new Map<string, Row>()
  let dropped = 0
  let failures = 0
  let closed = false
  let cancel: (() => void) | undefined
  let writing: Promise<void> | undefined

  function addOrMerge(row: Row, limit: number): void {
    const name = key(row)
    const same = buffer.get(name)
    if (same) merge(same, row)
    else if (buffer.size < limit) buffer.set(name, row)
    else dropped++
  }

  function take(): Row[] {
    const rows: Row[] = []
    for (const [name, row] of buffer) {
      if (rows.length === ROWS_PER_WRITE) break
      rows.push(row)
      buffer.delete(name)
    }
    return rows
  }

  /** Writes one batch; returns the milliseconds until the next one. */
  async function writeSome(): Promise<number> {
    const rows = take()
    try {
      await write(rows)
    } catch (cause) {
      if (failures++ === 0) log.error(`${what} could not be written; will retry`, { rows: rows.length }, cause)
      for (const row of rows) addOrMerge(row, Number.POSITIVE_INFINITY)
      return Math.min(MAX_RETRY_MILLISECONDS, every_ms * 2 ** Math.min(failures, 10))
    } finally {
      if (dropped > 0) log.warn(`${what} dropped: too many rows at once`, { dropped, max_rows })
      dropped = 0
    }
    if (failures > 0) log.info(`${what} written after failures`, { failures })
    failures = 0
    return rows.length === ROWS_PER_WRITE ? PAUSE_MILLISECONDS : every_ms
  }

  function schedule(ms: number): void {
    if (cancel || writing || closed) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      writing = writeSome().then((next) => {
        writing = undefined
        if (buffer.size > 0) schedule(next)
      })
    })
  }

  return {
    add(row) {
      if (closed) return log.warn(`${what} dropped: recorded after shutdown`)
      addOrMerge(row, max_rows)
      schedule(every_ms)
    },
    async close() {
      closed = true
      cancel?.()
      await writing
      failures = 0
      while (buffer.size > 0 && failures < SHUTDOWN_ATTEMPTS) await writeSome()
      if (buffer.size > 0) log.error(`${what} lost: the store failed at shutdown`, { rows: buffer.size })
      buffer.clear()
    },
  }
}
