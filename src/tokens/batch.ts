/** Rows that are gathered in memory and written some seconds later, many at once: nobody waits for the disk. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'

export type Batch<Row> = {
  /** Takes the row over. Rows of one key are merged into one. */
  add(row: Row): void
  /** Writes what is held and takes nothing more. Rows that cannot be written now are counted in the log, and lost. */
  close(): Promise<void>
}

type BatchParts<Row> = {
  clock: Clock
  log: Log
  /** What the rows are, for the log. */
  what: string
  every_ms: number
  /** Rows held at most; further keys are dropped, and counted. */
  most: number
  key(row: Row): string
  merge(into: Row, row: Row): void
  /** Writes all of the rows, or rejects and has written none. */
  write(rows: Row[]): Promise<void>
}

/** Rows in one transaction: a few milliseconds of the one thread we have. */
const ROWS_A_WRITE = 500
/** Between full writes, so that requests get their turn. */
const SOON_MILLISECONDS = 20
/** A store that fails is asked less and less often, but at least this often. */
const LONGEST_RETRY_MILLISECONDS = 30_000
/** Tries at the end, when there is no later. */
const LAST_TRIES = 3

export function createBatch<Row>(parts: BatchParts<Row>): Batch<Row> {
  const { clock, log, what, every_ms, most, key, merge, write } = parts
  const held = new Map<string, Row>()
  let dropped = 0
  let failures = 0
  let closed = false
  let cancel: (() => void) | undefined
  let writing: Promise<void> | undefined

  function put(row: Row, limit: number): void {
    const name = key(row)
    const same = held.get(name)
    if (same) merge(same, row)
    else if (held.size < limit) held.set(name, row)
    else dropped++
  }

  function take(): Row[] {
    const rows: Row[] = []
    for (const [name, row] of held) {
      if (rows.length === ROWS_A_WRITE) break
      rows.push(row)
      held.delete(name)
    }
    return rows
  }

  /** Writes a first part of what is held; answers after how long to come again. */
  async function writeSome(): Promise<number> {
    const rows = take()
    try {
      await write(rows)
    } catch (cause) {
      if (failures++ === 0) log.error(`${what} not written; kept for later`, { rows: rows.length }, cause)
      for (const row of rows) put(row, Number.POSITIVE_INFINITY)
      return Math.min(LONGEST_RETRY_MILLISECONDS, every_ms * 2 ** Math.min(failures, 10))
    } finally {
      if (dropped > 0) log.warn(`${what} dropped: too many rows at once`, { dropped, most })
      dropped = 0
    }
    if (failures > 0) log.info(`${what} written again`, { failures })
    failures = 0
    return rows.length === ROWS_A_WRITE ? SOON_MILLISECONDS : every_ms
  }

  function schedule(ms: number): void {
    if (cancel || writing || closed) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      writing = writeSome().then((next) => {
        writing = undefined
        if (held.size > 0) schedule(next)
      })
    })
  }

  return {
    add(row) {
      if (closed) return log.warn(`${what} dropped: it came after the end`)
      put(row, most)
      schedule(every_ms)
    },
    async close() {
      closed = true
      cancel?.()
      await writing
      failures = 0
      while (held.size > 0 && failures < LAST_TRIES) await writeSome()
      if (held.size > 0) log.error(`${what} lost: the store did not take it at the end`, { rows: held.size })
      held.clear()
    },
  }
}
