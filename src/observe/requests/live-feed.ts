/** Carries live events from every process to those in which somebody follows them, through the store. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { LiveRow, LiveStore } from '../../store/requests/live-store.ts'

type LiveFeed = {
  /** Whether somebody follows, in this process or another one. */
  isFollowed(): boolean
  /** Stores an event, which comes back to this process as to the others. */
  publish(event: Omit<LiveRow, 'sequence'>): void
  /** From now on `onRows` is called. Resolves with the sequence after which it is. */
  follow(): Promise<number>
  /** Nobody follows in this process any more. */
  leave(): void
  /** Stored rows after a sequence, for who comes back. */
  since(sequence: number, limit: number): Promise<LiveRow[]>
  /** The revision of the tokens has changed, as it does when somebody begins to follow in another process. */
  revised(): void
  /** After `leave`. */
  close(): void
}

type FeedParts = {
  store: LiveStore
  /** Rows in order; `dropped`: how many events this process could not store before them. */
  onRows(rows: readonly LiveRow[], dropped: number): void
  clock: Clock
  log: Log
}

/** A browser that has lost its connection comes back within seconds, and misses nothing. */
const ASK_MILLISECONDS = 60_000
const ASK_AGAIN_MILLISECONDS = 20_000
/** How soon an event of another process is seen. */
const READ_MILLISECONDS = 500
/** Between two writes of one process. */
const WRITE_MILLISECONDS = 100
/** Of one write: more than 5,000 events a second are not followed. */
const MAX_QUEUED = 500
const MAX_READ = 1_000

export function createLiveFeed({ store, onRows, clock, log }: FeedParts): LiveFeed {
  /** Unix milliseconds. */
  let asked_until = 0
  let queue: Omit<LiveRow, 'sequence'>[] = []
  let dropped = 0
  let isWriting = false
  /** The last row that was read; undefined: nobody follows in this process. */
  let last: number | undefined
  let beginning: Promise<number> | undefined
  let reading: Promise<void> = Promise.resolve()
  let cancelRead = () => {}
  let cancelAsk = () => {}
  let cancelLook = () => {}
  let isClosed = false

  const failed = (error: unknown) => log.error('live events are not shared: the store failed', {}, error)

  async function write(): Promise<void> {
    const events = queue
    queue = []
    try {
      await store.append(events)
      if (last !== undefined) await read()
    } catch (error) {
      dropped += events.length
      failed(error)
    }
    clock.after(WRITE_MILLISECONDS, () => {
      isWriting = queue.length > 0
      if (isWriting) void write()
    })
  }

  /** Reads what is new; one read at a time. */
  function read(): Promise<void> {
    reading = reading
      .then(async () => {
        for (let isMore = true; isMore && last !== undefined; ) {
          const rows = await store.after(last, MAX_READ)
          if (last === undefined) return
          last = rows.at(-1)?.sequence ?? last
          isMore = rows.length === MAX_READ
          const missed = dropped
          dropped = 0
          if (rows.length > 0 || missed > 0) onRows(rows, missed)
        }
      })
      .catch(failed)
    return reading
  }

  function readOften(): void {
    cancelRead = clock.after(READ_MILLISECONDS, () => {
      void read().then(() => {
        if (last !== undefined) readOften()
      })
    })
  }

  async function ask(): Promise<void> {
    const now_ms = clock.now()
    asked_until = now_ms + ASK_MILLISECONDS
    await store.ask(asked_until, now_ms).catch(failed)
    cancelAsk()
    if (beginning) cancelAsk = clock.after(ASK_AGAIN_MILLISECONDS, () => void ask())
  }

  /** While somebody follows elsewhere, it is looked whether they still do. */
  async function look(): Promise<void> {
    cancelLook()
    try {
      asked_until = Math.max(beginning ? asked_until : 0, await store.askedUntil())
    } catch (error) {
      failed(error)
    }
    if (asked_until > clock.now() && !beginning && !isClosed)
      cancelLook = clock.after(ASK_AGAIN_MILLISECONDS, () => void look())
  }

  return {
    isFollowed: () => asked_until > clock.now(),
    publish(event) {
      if (queue.length >= MAX_QUEUED) dropped++
      else queue.push(event)
      if (isWriting) return
      isWriting = true
      queueMicrotask(() => void write()) // with the others that are published at once
    },
    follow() {
      beginning ??= (async () => {
        await ask()
        last = await store.last().catch(() => 0)
        readOften()
        return last
      })()
      return beginning.then((first) => last ?? first)
    },
    leave() {
      beginning = undefined
      last = undefined
      cancelRead()
      cancelAsk()
      if (!isClosed) cancelLook = clock.after(ASK_AGAIN_MILLISECONDS, () => void look())
    },
    since: (sequence, limit) => store.after(sequence, limit),
    revised() {
      if (!isClosed) void look()
    },
    close() {
      isClosed = true
      cancelLook()
    },
  }
}
