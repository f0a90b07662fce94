/** A bounded queue that is exported in batches, off the path of calls. What does not fit is dropped and counted. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { BatchLimits } from './otlp-settings.ts'

/** Items since the start. */
export type ExportCounts = {
  exported: number
  /** The queue was full, or the gateway stopped before they could be exported. */
  dropped: number
  /** The receiver refused them, or did not answer in time. */
  failed: number
  queued: number
}

type ExportQueue<T> = {
  /** Returns at once. `bytes`: about what it holds in memory. */
  add(item: T, bytes: number): void
  counts(): ExportCounts
  /** Exports what is queued, at most until the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

type QueueParts<T> = {
  /** What is exported, for log lines: `spans`. */
  name: string
  limits: BatchLimits
  /** Rejects where the receiver did not take them. */
  send(items: T[]): Promise<void>
  clock: Clock
  log: Log
}

const MAX_BYTES = 16 * 1024 * 1024
/** A request each: to encode an item takes some 20 microseconds, and calls go on between two requests. */
const ITEMS_PER_TURN = 64
/** A receiver that is away is reported this often. */
const REPORT_MILLISECONDS = 60_000

export function createExportQueue<T>({ name, limits, send, clock, log }: QueueParts<T>): ExportQueue<T> {
  const { max_queue, max_batch, delay_ms, timeout_ms } = limits
  let queue: T[] = []
  let bytes = 0
  let exported = 0
  let dropped = 0
  let failed = 0
  let reported_at = Number.NEGATIVE_INFINITY
  let reported = 0
  let cancelTimer: (() => void) | undefined
  let sending: Promise<void> | undefined
  let isClosed = false

  /** With the time-out, since a receiver may accept a connection and never answer. */
  function sendInTime(items: T[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const cancel = clock.after(timeout_ms, () => reject(new Error('timeout')))
    send(items).then(resolve, reject)
    return promise.finally(cancel)
  }

  async function sendBatch(): Promise<void> {
    const items = queue.splice(0, max_batch)
    // Batches are small against the whole: which item held which bytes is not kept.
    bytes = queue.length === 0 ? 0 : Math.round((bytes * queue.length) / (queue.length + items.length))
    const parts: Promise<void>[] = []
    for (let at = 0; at < items.length; at += ITEMS_PER_TURN) {
      if (at > 0) await new Promise(setImmediate)
      parts.push(sendPart(items.slice(at, at + ITEMS_PER_TURN)))
    }
    await Promise.all(parts)
  }

  async function sendPart(items: T[]): Promise<void> {
    try {
      await sendInTime(items)
      exported += items.length
    } catch {
      failed += items.length
      report()
    }
  }

  /** Without the cause, which may contain a URL or a header. */
  function report(): void {
    const now = clock.steady()
    if (now - reported_at < REPORT_MILLISECONDS) return
    log.warn(`${name} could not be exported`, { lost: failed + dropped - reported, queued: queue.length })
    reported_at = now
    reported = failed + dropped
  }

  function flush(): void {
    cancelTimer?.()
    cancelTimer = undefined
    sending ??= sendBatch().finally(() => {
      sending = undefined
      if (queue.length >= max_batch) flush()
      else if (queue.length > 0 && !isClosed) schedule()
    })
  }

  function schedule(): void {
    cancelTimer ??= clock.after(delay_ms, flush)
  }

  return {
    add(item, size) {
      if (isClosed || queue.length >= max_queue || bytes + size > MAX_BYTES) {
        dropped++
        return
      }
      queue.push(item)
      bytes += size
      if (queue.length >= max_batch) {
        if (!sending) flush()
      } else schedule()
    },
    counts: () => ({ exported, dropped, failed, queued: queue.length }),
    async close({ deadline_ms }) {
      isClosed = true
      cancelTimer?.()
      const { promise: isLate, resolve } = Promise.withResolvers<'late'>()
      const cancel = clock.after(deadline_ms, () => resolve('late'))
      while (queue.length > 0 || sending) {
        if (!sending) flush()
        if ((await Promise.race([sending, isLate])) === 'late') break
      }
      cancel()
      if (queue.length === 0) return
      dropped += queue.length
      queue = []
      log.warn(`${name} were not exported before the gateway stopped`, { lost: dropped })
    },
  }
}
