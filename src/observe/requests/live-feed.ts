/** Carries live events to the other processes in which somebody follows, and theirs to this one, through the store. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { LiveRow, LiveStore } from '../../store/requests/live-store.ts'
import { gapRow, textOf } from './live-followers.ts'
import type { Kept, OwnEvent } from './live-ring.ts'

export type LiveFeed = {
  isFollowed(): boolean
  /** Stores an event of this process. */
  publish(event: OwnEvent): void
  /** From now on `onRows` is called. `isNew`: only now do the others learn that somebody follows here. */
  follow(): Promise<{ last: number; isNew: boolean }>
  /** Nobody follows in this process any more. */
  leave(): void
  /** The last row of which `onRows` was told. */
  last(): number
  /** The last event of this process that is in the store, or was before others. */
  written(): number
  /** Stored rows after a sequence, for who comes back. */
  since(sequence: number, limit: number): Promise<LiveRow[]>
  /** The revision of the tokens has changed, as it does when somebody begins to follow in another process. */
  revised(): void
  /** After `leave`. `isKept`: who followed here may come back to another process, which finds what was kept. */
  close(options: { isKept: boolean }): Promise<void>
}

type FeedParts = {
  process_id: string
  store: LiveStore
  /** What this process has kept after a number. */
  backlog(number: number): Kept
  /** Rows in order, its own among them. */
  onRows(rows: readonly LiveRow[]): void
  clock: Clock
  log: Log
}

/** A browser that has lost its connection comes back within seconds, and misses nothing. */
export const ASK_MILLISECONDS = 60_000
const ASK_AGAIN_MILLISECONDS = 20_000
/** How soon an event of another process is seen. */
const READ_MILLISECONDS = 500
/** Between two writes of one process. */
const WRITE_MILLISECONDS = 100
/** Of one write: more than 5,000 events a second are not followed in other processes. */
const MAX_QUEUED = 500
const MAX_READ = 1_000

export function createLiveFeed({ process_id, store, backlog, onRows, clock, log }: FeedParts): LiveFeed {
  /** By others, in unix milliseconds; undefined: it was never read. */
  let asked_until: number | undefined
  let beginning: Promise<{ last: number; isNew: boolean }> | undefined
  /** The last row that was read; undefined: nobody follows in this process. */
  let last: number | undefined
  let reading: Promise<void> = Promise.resolve()
  let cancelRead = () => {}
  let cancelAsk = () => {}
  let cancelLook = () => {}
  let isClosed = false

  const failed = (error: unknown) => log.error('live events are not shared: the store failed', {}, error)
  const writer = createWriter({ process_id, store, clock, failed })
  const isFollowed = () => asked_until !== undefined && asked_until > clock.now()

  /** Reads what is new; one read at a time. */
  function read(): Promise<void> {
    reading = reading
      .then(async () => {
        for (let isMore = true; isMore && last !== undefined; ) {
          const rows = await store.after(last, MAX_READ)
          if (last === undefined) return
          last = rows.at(-1)?.sequence ?? last
          isMore = rows.length === MAX_READ
          if (rows.length > 0) onRows(rows)
        }
      })
      .catch(failed)
    return reading
  }

  function readOften(): void {
    cancelRead()
    cancelRead = clock.after(READ_MILLISECONDS, () => {
      void read().then(() => {
        if (last !== undefined) readOften()
      })
    })
  }

  async function ask(): Promise<boolean> {
    const now_ms = clock.now()
    const hadAsked = await store.ask(process_id, now_ms + ASK_MILLISECONDS, now_ms).catch((error: unknown) => {
      failed(error)
      return true
    })
    cancelAsk()
    if (beginning) cancelAsk = clock.after(ASK_AGAIN_MILLISECONDS, () => void ask())
    return !hadAsked
  }

  /** While somebody follows elsewhere, it is looked whether they still do. */
  async function look(): Promise<void> {
    cancelLook()
    const wasFollowed = isFollowed()
    asked_until ??= 0
    try {
      asked_until = await store.askedUntil(process_id)
    } catch (error) {
      failed(error)
    }
    if (isClosed || !isFollowed()) return
    if (!wasFollowed) writer.start(backlog(writer.written()))
    cancelLook = clock.after(ASK_AGAIN_MILLISECONDS, () => void look())
  }

  return {
    isFollowed() {
      if (asked_until === undefined && !isClosed) void look()
      return isFollowed()
    },
    publish: writer.add,
    follow() {
      beginning ??= (async () => {
        const isNew = await ask()
        last = await store.last().catch(() => 0)
        readOften()
        return { last, isNew }
      })()
      return beginning.then(({ last: first, isNew }) => {
        const started = { last: last ?? first, isNew }
        if (beginning) beginning = Promise.resolve({ last: first, isNew: false })
        return started
      })
    },
    leave() {
      beginning = undefined
      last = undefined
      cancelRead()
      cancelAsk()
    },
    last: () => last ?? 0,
    written: writer.written,
    since: (sequence, limit) => store.after(sequence, limit),
    revised() {
      if (!isClosed) void look()
    },
    async close({ isKept }) {
      isClosed = true
      cancelLook()
      if (isKept && !isFollowed()) writer.start(backlog(writer.written()))
      await writer.flush()
    },
  }
}

type WriterParts = Pick<FeedParts, 'process_id' | 'store' | 'clock'> & { failed(error: unknown): void }
type Queued = { event: OwnEvent; late: 0 | 1 }

function createWriter({ process_id, store, clock, failed }: WriterParts) {
  let queue: Queued[] = []
  let marker: Omit<LiveRow, 'sequence'> | undefined
  let written = 0
  let isTimed = false
  let writing: Promise<void> = Promise.resolve()

  /** Of the events, and of what is missing between them. */
  function rowsOf(batch: readonly Queued[], before: number): Omit<LiveRow, 'sequence'>[] {
    let at = before
    return batch.flatMap(({ event, late }) => {
      const { number, at_ms, type, project_id } = event
      const missing = number - at - 1
      at = number
      const row = { at_ms, type, project_id, text: textOf(event), process_id, number, late }
      if (missing <= 0) return [row]
      return [gapRow({ at_ms, process_id, number: number - 1, late: 0 }, { lost: true, events: missing }), row]
    })
  }

  async function writeBatch(): Promise<void> {
    const batch = queue.splice(0, MAX_QUEUED)
    const first = marker
    marker = undefined
    const before = first?.number ?? written
    const rows = rowsOf(batch, before)
    try {
      await store.append(first ? [first, ...rows] : rows)
      written = batch.at(-1)?.event.number ?? before
    } catch (error) {
      // The next row says how many are missing.
      failed(error)
    }
  }

  function writeSoon(): void {
    if (isTimed) return
    isTimed = true
    writing = writing.then(writeBatch).then(() => {
      clock.after(WRITE_MILLISECONDS, () => {
        isTimed = false
        if (queue.length > 0 || marker) writeSoon()
      })
    })
  }

  return {
    written: () => written,
    add(event: OwnEvent) {
      if (queue.length >= MAX_QUEUED) return
      queue.push({ event, late: 0 })
      writeSoon()
    },
    /** Others follow from now on: they get what was kept before. */
    start({ events, isGap, first }: Kept) {
      const at_ms = clock.now()
      // Nobody comes back after a longer time without a loss.
      const from = events.findIndex((event) => event.at_ms > at_ms - ASK_MILLISECONDS)
      const recent = from < 0 ? [] : events.slice(from)
      const before = (recent[0]?.number ?? first + events.length) - 1
      marker = gapRow(
        { at_ms, process_id, number: before, late: 1 },
        { lost: isGap && recent.length === events.length },
      )
      queue = recent.map((event) => ({ event, late: 1 }))
      writeSoon()
    },
    async flush() {
      await writing
      while (queue.length > 0 || marker) await writeBatch()
    },
  }
}
