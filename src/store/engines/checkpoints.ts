/** Checkpoints of SQLite beside the event loop: a thread copies the pages of the log into the database, and waits for the disk. */
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../kit/clock.ts'
import { createIdleWorker } from '../../kit/idle-worker.ts'

/** Also how long one may take before commits go on beside it. */
const IDLE_MILLISECONDS = 20_000

/** Of the database at `path`. */
export function createCheckpoints(path: string) {
  const worker = createIdleWorker<string, null>({
    start: () => new Worker(new URL('./checkpoints-worker.ts', import.meta.url)),
    idleMilliseconds: IDLE_MILLISECONDS,
    clock: systemClock,
  })
  return {
    /** Resolves once it has ended. One that fails is left to the next: SQLite's own, which blocks, bounds the log. */
    async make(): Promise<void> {
      try {
        await worker.ask(path)
      } catch {}
    },
    close: (): void => worker.stop(new Error('the database is closed')),
  }
}
