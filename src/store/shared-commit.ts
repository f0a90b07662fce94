/** One commit for all writes of one turn of the event loop, and of the time in which the one before goes to the disk. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WriteOptions } from './engine.ts'
import { createStatement } from './fixed-statements.ts'
import type { Database, Write } from './tables.ts'

/** One write takes some 0.1 ms. Meanwhile other processes wait for the lock, and this one's reads for the connection. */
const MAX_PER_COMMIT = 256

type Job = {
  work: (write: Write) => Promise<unknown>
  is_synced: boolean
  done: (value: never) => void
  failed: (reason: unknown) => void
}

type SharedCommit = {
  /** Resolves or rejects as `work` does, and not before the commit is on the disk. */
  write<T>(work: (write: Write) => Promise<T>, options?: WriteOptions): Promise<T>
  /** Resolves once no write is waiting. */
  settled(): Promise<void>
}

/** Some 2,000 pages of SQLite's log, 8 MB, at a thousand calls a second. */
export const COMMITS_PER_CHECKPOINT = 64

/**
 * `sync`: resolves once what was committed is on the disk. `checkpoint`: never rejects; no commit runs beside it, so that it
 * copies all of the log, which SQLite then begins anew.
 */
type Disk = { sync(): Promise<void>; checkpoint(): Promise<void> }

/** For an engine with one connection. */
export function createSharedCommit(db: Database, disk?: Disk): SharedCommit {
  const waiting: Job[] = []
  let running: Promise<void> | undefined
  let commits = 0

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      await nextTurn() // so that the requests that arrived with this one share the commit
      const jobs = waiting.splice(0, MAX_PER_COMMIT)
      await commit(db, jobs, disk)
      if (++commits % COMMITS_PER_CHECKPOINT === 0) await disk?.checkpoint()
    }
    running = undefined
  }

  return {
    write<T>(work: (write: Write) => Promise<T>, { is_synced = true }: WriteOptions = {}): Promise<T> {
      return new Promise<T>((done, failed) => {
        waiting.push({ work, is_synced, done, failed })
        running ??= run()
      })
    },
    settled: async () => running,
  }
}

/** All jobs in one transaction. A failure of its begin, its commit or its way to the disk fails all of them. Never rejects. */
async function commit(db: Database, jobs: Job[], disk: Disk | undefined): Promise<void> {
  try {
    const settlers = await db.transaction().execute(async (write) => {
      const all: (() => void)[] = []
      for (const job of jobs) all.push(jobs.length === 1 ? await plain(write, job) : await guarded(write, job))
      return all
    })
    for (const [at, settle] of settlers.entries()) if (!jobs[at]?.is_synced) settle()
    if (!jobs.some(({ is_synced }) => is_synced)) return
    await disk?.sync()
    for (const [at, settle] of settlers.entries()) if (jobs[at]?.is_synced) settle()
  } catch (reason) {
    for (const job of jobs) job.failed(reason)
  }
}

async function plain(write: Write, job: Job): Promise<() => void> {
  const value = await job.work(write)
  return () => job.done(value as never)
}

const beginJob = createStatement(() => 'savepoint job')
const releaseJob = createStatement(() => 'release job')
const rollBackJob = createStatement(() => 'rollback to job')

/** Only the failed job is rolled back. If SQLite has rolled back everything (a full disk), the savepoint is gone and all fail. */
async function guarded(write: Write, job: Job): Promise<() => void> {
  await beginJob(write, [])
  try {
    const settle = await plain(write, job)
    await releaseJob(write, [])
    return settle
  } catch (reason) {
    try {
      await rollBackJob(write, [])
    } catch {
      throw reason
    }
    await releaseJob(write, [])
    return () => job.failed(reason)
  }
}
