/** Checkpoints of SQLite beside the event loop: a thread copies the pages of the log into the database, and waits for the disk. */
import { Worker } from 'node:worker_threads'
import { endsWithin, systemClock } from '../../kit/clock.ts'
import { createIdleWorker } from '../../kit/idle-worker.ts'

const IDLE_MILLISECONDS = 20_000
/** A checkpoint takes some 10 ms. On a disk that takes longer than this for one, commits go on beside it. */
const WAIT_MILLISECONDS = 1_000

const PARTS = { start: () => new Worker(new URL('./checkpoints-worker.ts', import.meta.url)), clock: systemClock }

/** Of the database at `path`. */
export function createCheckpoints(path: string, { start, clock } = PARTS) {
  // A thread that is ended within a checkpoint leaves a lock on the database.
  const worker = createIdleWorker<string, null>({ start, idleMilliseconds: IDLE_MILLISECONDS, isPatient: true, clock })
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    try {
      await worker.ask(path)
    } catch {}
  }

  return {
    /**
     * Resolves once it has ended, or takes too long; does nothing while an earlier one goes on. One that fails is left to the
     * next: SQLite's own, which blocks, bounds the log.
     */
    async make(): Promise<void> {
      if (running) return
      running = run().then(() => {
        running = undefined
      })
      await endsWithin(clock, WAIT_MILLISECONDS, running)
    },
    /** One that goes on is not waited for, and ends with the process at the latest. */
    close(): void {
      const stop = () => worker.stop(new Error('the database is closed'))
      if (running) void running.then(stop)
      else stop()
    },
  }
}
