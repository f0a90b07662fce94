/** One commit for the writes of one turn of the event loop: each commit waits for the disk, once for all of them. */
import { sql } from 'kysely'
import type { Database, Write } from './tables.ts'

/** One write takes some 0.1 ms; other processes wait for the lock, and reads of this one for the connection. */
const MOST_IN_ONE = 256

type Job = { work: (write: Write) => Promise<unknown>; done: (value: never) => void; failed: (reason: unknown) => void }

type SharedCommit = {
  /** Resolves or rejects as `work` does, and not before the commit. */
  write<T>(work: (write: Write) => Promise<T>): Promise<T>
  /** Resolves once nothing waits. */
  settled(): Promise<void>
}

/** For an engine with one connection. */
export function createSharedCommit(db: Database): SharedCommit {
  const waiting: Job[] = []
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      await nextTurn() // the other requests that arrived with this one get their word in
      const jobs = waiting.splice(0, MOST_IN_ONE)
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

/** All jobs in one transaction; what fails at its begin or its commit fails them all. Never rejects. */
async function commit(db: Database, jobs: Job[]): Promise<void> {
  try {
    const settle = await db.transaction().execute(async (write) => {
      const outcomes: (() => void)[] = []
      for (const job of jobs) outcomes.push(jobs.length === 1 ? await plain(write, job) : await guarded(write, job))
      return outcomes
    })
    for (const tell of settle) tell()
  } catch (reason) {
    for (const job of jobs) job.failed(reason)
  }
}

async function plain(write: Write, job: Job): Promise<() => void> {
  const value = await job.work(write)
  return () => job.done(value as never)
}

/** A job that fails is undone alone. If SQLite has undone all (a full disk), the savepoint is gone: then all fail. */
async function guarded(write: Write, job: Job): Promise<() => void> {
  await sql`savepoint job`.execute(write)
  try {
    const tell = await plain(write, job)
    await sql`release job`.execute(write)
    return tell
  } catch (reason) {
    await sql`rollback to job`.execute(write).catch(() => Promise.reject(reason))
    await sql`release job`.execute(write)
    return () => job.failed(reason)
  }
}
