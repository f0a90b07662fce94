/** Collects items and writes them together, later: the caller never waits, and what cannot be written in time is dropped and counted. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'

export type BatchHealth = {
  /** Items in memory. */
  queued: number
  /** Since the start: written, and given up because too many waited or the process ended. */
  written: number
  dropped: number
  /** Whether the last attempt to write has failed. */
  is_failing: boolean
}

export type Batches<Item> = {
  /** Never throws. */
  push(item: Item): void
  /** Writes what is queued now; resolves also where that fails, and is retried later. */
  flush(): Promise<void>
  health(): BatchHealth
  /** Writes what is queued until the deadline, and accepts no more. */
  close(options: { deadline_ms: number }): Promise<void>
}

type BatchParts<Item> = {
  /** For messages: `the request log`. */
  name: string
  /**
   * The number of items that were refused for good. Rejects where the items are to be written again. `signal`: aborted
   * when nobody waits for it any more.
   */
  write(items: readonly Item[], signal: AbortSignal): Promise<number>
  /** Items in memory; further ones are dropped. */
  max_queued: number
  /** Items of one write. */
  max_batch: number
  /** How long an item waits for others. */
  every_ms: number
  /** A write that takes longer is aborted and has failed. */
  timeout_ms: number
  clock: Clock
  log: Log
}

const FIRST_RETRY_MILLISECONDS = 1_000
const MAX_RETRY_MILLISECONDS = 30_000
/** Between messages about dropped items. */
const REPORT_MILLISECONDS = 60_000

export function createBatches<Item>(parts: BatchParts<Item>): Batches<Item> {
  const { name, write, max_queued, max_batch, every_ms, timeout_ms, clock, log } = parts
  let queue: Item[] = []
  let [written, dropped, failures] = [0, 0, 0]
  let reported_at = Number.NEGATIVE_INFINITY
  let isClosed = false
  let cancel: (() => void) | undefined
  let writing: Promise<boolean> | undefined

  function drop(count: number): void {
    dropped += count
    const now = clock.steady()
    if (now - reported_at < REPORT_MILLISECONDS) return
    reported_at = now
    log.error(`${name}: items dropped, since they were refused or could not be written in time`, {
      dropped,
      queued: queue.length,
    })
  }

  function schedule(ms: number): void {
    if (cancel || isClosed) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      void writeOne().then(next)
    })
  }

  function next(isWritten: boolean): void {
    if (queue.length === 0) return
    if (!isWritten) schedule(Math.min(FIRST_RETRY_MILLISECONDS * 2 ** (failures - 1), MAX_RETRY_MILLISECONDS))
    else schedule(queue.length >= max_batch ? 0 : every_ms)
  }

  /** One batch; false: it waits for another attempt. Never rejects. */
  function writeOne(): Promise<boolean> {
    writing ??= attempt().finally(() => {
      writing = undefined
    })
    return writing
  }

  async function attempt(): Promise<boolean> {
    const batch = queue.length > max_batch ? queue.slice(0, max_batch) : queue.slice()
    if (batch.length === 0) return true
    try {
      const refused = await withinTime(batch)
      queue = queue.slice(batch.length)
      written += batch.length - refused
      if (refused > 0) drop(refused)
      if (failures > 0) log.info(`${name}: written after failures`, { failures })
      failures = 0
      return true
    } catch (cause) {
      if (failures++ === 0) log.error(`${name}: could not be written; will retry`, { items: batch.length }, cause)
      return false
    }
  }

  /** A writer that ignores its signal does not hold up the others. */
  function withinTime(batch: readonly Item[]): Promise<number> {
    const control = new AbortController()
    return new Promise((resolve, reject) => {
      const stop = clock.after(timeout_ms, () => {
        const error = new Error(`No end after ${timeout_ms / 1000} s.`)
        control.abort(error)
        reject(error)
      })
      write(batch, control.signal).then(resolve, reject).finally(stop)
    })
  }

  return {
    push(item) {
      if (isClosed || queue.length >= max_queued) return drop(1)
      queue.push(item)
      if (!cancel && !writing) schedule(every_ms)
    },
    async flush() {
      await writing
      // Not what is queued meanwhile: under load that would never end.
      for (let left = Math.ceil(queue.length / max_batch); left > 0; left--) if (!(await writeOne())) return next(false)
    },
    health: () => ({ queued: queue.length, written, dropped, is_failing: failures > 0 }),
    async close({ deadline_ms }) {
      if (isClosed) return
      isClosed = true
      cancel?.()
      let isLate = false
      const late = Promise.withResolvers<void>()
      const stop = clock.after(deadline_ms, () => {
        isLate = true
        late.resolve()
      })
      const all = async () => {
        await writing
        while (queue.length > 0 && !isLate) if (!(await writeOne())) return
      }
      await Promise.race([all(), late.promise])
      stop()
      if (queue.length > 0) drop(queue.length)
      queue = []
    },
  }
}
