/** Reads something of the store again and again, so that a change takes effect in every process within a second. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'

/** As for tokens. */
const WATCH_MILLISECONDS = 500

/** `unread`: what is logged where the store cannot be reached. */
export function createStoreWatch(
  read: () => Promise<void>,
  unread: string,
  { clock, log }: { clock: Clock; log: Log },
) {
  let isRunning = false
  let isReachable = true
  let cancel = () => {}
  let reading: Promise<void> = Promise.resolve()

  async function look(): Promise<void> {
    try {
      await read()
      isReachable = true
    } catch (cause) {
      if (isReachable) log.error(unread, {}, cause)
      isReachable = false
    }
    if (isRunning) cancel = clock.after(WATCH_MILLISECONDS, () => void next(look))
  }

  /** One at a time, so that an older state never replaces a newer one. */
  function next(work: () => Promise<void>): Promise<void> {
    const mine = reading.then(work)
    reading = mine.catch(() => {})
    return mine
  }

  return {
    /** Rejects where the store does. */
    readNow: () => next(read),
    /** Reads, and starts polling. An unreachable store is logged, and asked again. */
    async start(): Promise<void> {
      isRunning = true
      await next(look)
    },
    async close(): Promise<void> {
      isRunning = false
      cancel()
      await reading
    },
  }
}
