/** Collects items and writes them together, later: the caller never waits, and what cannot be written in time is dropped and counted. */
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

export type BatchHealth = {
  /** Items in memory, with those that are being written. */
  queued: number
  /** Since the start: written, and given up because the receiver refused them, too many waited or the process ended. */
  written: number
  dropped: number
  /** Of the dropped ones: those that the receiver refused. */
  refused: number
  is_failing: boolean
}

type BatchParts<Item> = {
  /** For messages: `the request log`. */
  name: string
  /**
   * The number of items that were refused for good. Rejects where the items are to be written again. `signal`: aborted
   * when nobody waits for it any more.
   */
  write(items: readonly Item[], signal: AbortSignal): Promise<number>
  /** False: the items of a write that fails are refused, and its error, which may contain a secret, is not logged. */
  is_repeated?: false
  /** Items in memory; further ones are dropped. */
  max_queued: number
  /** Of all items together, where each is pushed with its own; absent: any number. */
  max_bytes?: number
  /** Items of one write. */
  max_batch: number
  /** The same while more than ten such writes wait; absent: the same number. */
  max_batch_behind?: number
  /** Whether a full batch is written at once: the queue has no room for what comes until `every_ms` are over. */
  writes_full?: true
  /** How long an item waits for others. */
  every_ms: number
  /** A write that takes longer is aborted and has failed. */
  timeout_ms: number
  clock: Clock
  log: Log
}

const FIRST_RETRY_MILLISECONDS = 1_000
const MAX_RETRY_MILLISECONDS = 30_000
/** Between messages about lost items. */
const REPORT_MILLISECONDS = 60_000
/** So many writes that wait make the next one larger. */
const BEHIND = 10
/** Of a batch, when the queue is closed. */
const LAST_ATTEMPTS = 3

export class BatchQueue<Item> {
  readonly #parts: BatchParts<Item>
  #queue: Item[] = []
  #bytes = 0
  #written = 0
  #dropped = 0
  #refused = 0
  #failures = 0
  #reported = 0
  #reportedAt = Number.NEGATIVE_INFINITY
  #isClosed = false
  #cancel: (() => void) | undefined
  #writing: Promise<boolean> | undefined

  constructor(parts: BatchParts<Item>) {
    this.#parts = parts
  }

  /** Never throws. False: the item was dropped. `bytes`: about what it holds in memory. */
  push(item: Item, bytes = 0): boolean {
    const { max_queued, max_bytes = Number.POSITIVE_INFINITY, max_batch, writes_full, every_ms } = this.#parts
    if (this.#isClosed || this.#queue.length >= max_queued || this.#bytes + bytes > max_bytes) {
      this.#drop(1)
      return false
    }
    this.#queue.push(item)
    this.#bytes += bytes
    if (this.#writing) return true
    if (writes_full && this.#queue.length >= max_batch && this.#failures === 0) this.#start()
    else this.#schedule(every_ms)
    return true
  }

  pushAll(items: readonly Item[]): void {
    const last = items.at(-1)
    if (last === undefined) return
    const others = items.slice(0, -1)
    const { max_queued } = this.#parts
    if (this.#isClosed || this.#queue.length + items.length > max_queued) for (const item of others) this.push(item)
    else this.#queue.push(...others)
    this.push(last)
  }

  /** Writes what is queued now; resolves also where that fails, and is retried later. */
  async flush(): Promise<void> {
    await this.#writing
    // Not what is queued meanwhile: under load that would never end.
    for (let left = this.#queue.length; left > 0; ) {
      left -= this.#batchSize()
      if (!(await this.#writeOne())) return this.#next(false)
    }
  }

  health(): BatchHealth {
    const is_failing = this.#failures > 0
    return {
      queued: this.#queue.length,
      written: this.#written,
      dropped: this.#dropped,
      refused: this.#refused,
      is_failing,
    }
  }

  /** Writes what is queued until the deadline, and accepts no more. */
  async close({ deadline_ms }: { deadline_ms: number }): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#cancel?.()
    let isLate = false
    const late = Promise.withResolvers<void>()
    const stop = this.#parts.clock.after(deadline_ms, () => {
      isLate = true
      late.resolve()
    })
    const all = async () => {
      await this.#writing
      for (let failed = 0; this.#queue.length > 0 && failed < LAST_ATTEMPTS && !isLate; )
        if (!(await this.#writeOne())) failed++
    }
    await Promise.race([all(), late.promise])
    stop()
    const lost = this.#queue.length
    if (lost === 0) return
    this.#dropped += lost
    this.#queue = []
    this.#report('items lost, since they could not be written before the end')
  }

  #drop(count: number): void {
    this.#dropped += count
    const now = this.#parts.clock.steady()
    if (now - this.#reportedAt < REPORT_MILLISECONDS) return
    this.#reportedAt = now
    this.#report('items lost, since they were refused or could not be written in time')
  }

  #report(message: string): void {
    const { name, is_repeated, log } = this.#parts
    const counts = { lost: this.#dropped - this.#reported, queued: this.#queue.length }
    this.#reported = this.#dropped
    if (is_repeated === false) log.warn(`${name}: ${message}`, counts)
    else log.error(`${name}: ${message}`, counts)
  }

  #schedule(ms: number): void {
    if (!this.#isClosed) this.#cancel ??= this.#timerOf(ms)
  }

  #timerOf(ms: number): () => void {
    return this.#parts.clock.after(ms, () => this.#start())
  }

  #start(): void {
    this.#cancel?.()
    this.#cancel = undefined
    void this.#writeOne().then((isWritten) => this.#next(isWritten))
  }

  #next(isWritten: boolean): void {
    const { max_batch, every_ms } = this.#parts
    if (this.#queue.length === 0) return
    if (!isWritten)
      this.#schedule(Math.min(FIRST_RETRY_MILLISECONDS * 2 ** (this.#failures - 1), MAX_RETRY_MILLISECONDS))
    else this.#schedule(this.#queue.length >= max_batch ? 0 : every_ms)
  }

  /** One batch; false: it waits for another attempt. Never rejects. */
  #writeOne(): Promise<boolean> {
    if (this.#writing) return this.#writing
    const { promise, resolve } = Promise.withResolvers<boolean>()
    // Set first: the writer may push further items.
    this.#writing = promise
    void this.#attempt().then((isWritten) => {
      this.#writing = undefined
      resolve(isWritten)
    })
    return promise
  }

  #batchSize(): number {
    const { max_batch, max_batch_behind = max_batch } = this.#parts
    return this.#queue.length > BEHIND * max_batch ? max_batch_behind : max_batch
  }

  async #attempt(): Promise<boolean> {
    const { name, is_repeated = true, log } = this.#parts
    const batch = this.#queue.slice(0, this.#batchSize())
    if (batch.length === 0) return true
    try {
      this.#ended(batch.length, await this.#withinTime(batch))
      if (this.#failures > 0) log.info(`${name}: written after failures`, { failures: this.#failures })
      this.#failures = 0
      return true
    } catch (cause) {
      if (!is_repeated) {
        this.#ended(batch.length, batch.length)
        return true
      }
      if (this.#failures++ === 0) log.error(`${name}: could not be written; will retry`, { items: batch.length }, cause)
      return false
    }
  }

  #ended(items: number, refused: number): void {
    if (this.#queue.length === 0) return // the queue was closed meanwhile
    // Batches are small against the whole: which item held which bytes is not kept.
    this.#bytes = Math.round(this.#bytes * (1 - items / this.#queue.length))
    this.#queue = this.#queue.slice(items)
    this.#written += items - refused
    this.#refused += refused
    if (refused > 0) this.#drop(refused)
  }

  /** A writer that ignores its signal does not hold up the others. */
  #withinTime(batch: readonly Item[]): Promise<number> {
    const { write, timeout_ms, clock } = this.#parts
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
}
