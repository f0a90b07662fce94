/** Checkpoints of SQLite beside the event loop: a thread copies the pages of the log into the database, and waits for the disk. */
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../kit/clock.ts'
import { createIdleWorker } from '../../kit/idle-worker.ts'

const IDLE_MILLISECONDS = 20_000

type Checkpoints = {
  /** Makes one, unless one is under way; resolves once it has ended. */
  make(): Promise<void>
  /** Resolves once none is under way; no other is made. */
  close(): Promise<void>
}

/** Of the database at `path`. One that fails is left to the next: SQLite's own, which blocks, bounds the log. */
export function createCheckpoints(path: string): Checkpoints {
  const worker = createIdleWorker<string, null>({
    start: () => new Worker(new URL('./checkpoints-worker.ts', import.meta.url)),
    idleMilliseconds: IDLE_MILLISECONDS,
    clock: systemClock,
  })
  let isClosed = false
  let running: Promise<void> | undefined

  async function checkpoint(): Promise<void> {
    try {
      await worker.ask(path)
    } catch {}
  }

  return {
    async make() {
      if (isClosed) return
      running ??= checkpoint().finally(() => {
        running = undefined
      })
      await running
    },
    async close() {
      isClosed = true
      await running
      worker.stop(new Error('the database is closed'))
    },
  }
}
