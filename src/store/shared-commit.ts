/** One commit for all writes of one turn of the event loop, since each commit waits for the disk. */
import { sql } from 'kysely'
import type { Database, Write } from './tables.ts'

/** One write takes some 0.1 ms. Meanwhile other processes wait for the lock, and this one's reads for the connection. */
const MAX_PER_COMMIT = 256

type Job = { work: (write: Write) => Promise<unknown>; done: (value: never) => void; failed: (reason: unknown) => void }

type SharedCommit = {
  /** Resolves or rejects as `work` does, and not before the commit. */
  write<T>(work: (write: Write) => Promise<T>): Promise<T>
  /** Resolves once no write is waiting. */
  settled(): Promise<void>
}

/** For an engine with one connection. */
export function createSharedCommit(db: Database): SharedCommit {
  const waiting: Job[] = []
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      await nextTurn() // so that the requests that arrived with this one share the commit
      const jobs = waiting.splice(0, MAX_PER_COMMIT)
      await commit(db, jobs)
    }
    running = undefined
  }

  return {
    write<T>(work: (write: Write) => Promise<T>): Promise<T> {
      return new Promise<T>((done, failed) => {
        waiting.push({ work, done, failed })
        running ??= run()
      })
    },
    settled: async () => running,
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** All jobs in one transaction. A failure of its begin or its commit fails all of them. Never rejects. */
async function commit(db: Database, jobs: Job[]): Promise<void> {
  try {
    const settlers = await db.transaction().execute(async (write) => {
      const all: (() => void)[] = []
      for (const job of jobs) all.push(jobs.length === 1 ? await plain(write, job) : await guarded(write, job))
      return all
    })
    for (const settle of settlers) settle()
  } catch (reason) {
    for (const job of jobs) job.failed(reason)
  }
}

async function plain(write: Write, job: Job): Promise<() => void> {
  const value = await job.work(write)
  return () => job.done(value as never)
}

/** Only the failed job is rolled back. If SQLite has rolled back everything (a full disk), the savepoint is gone and all fail. */
async function guarded(write: Write, job: Job): Promise<() => void> {
  await sql`savepoint job`.execute(write)
  try {
    const settle = await plain(write, job)
    await sql`release job`.execute(write)
    return settle
  } catch (reason) {
    await sql`rollback to job`.execute(write).catch(() => Promise.reject(reason))
    await sql`release job`.execute(write)
    return () => job.failed(reason)
  }
}
