/** Removes expired files, idempotency keys, cached responses and old parts of the ledger, and leftovers of interrupted copies, regularly in small batches. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { TaskOutput } from '../spec/task.ts'
import type { Outputs } from './outputs.ts'

/** The part of the task store that the cleaner uses. */
type CleanedTasks = {
  outputsToRemove(now: number, limit: number): Promise<{ task_id: string; outputs: TaskOutput[] }[]>
  outputsRemoved(task_ids: string[]): Promise<void>
  deleteExpiredKeys(now: number, limit: number): Promise<number>
}

type Cleaner = {
  /** Sweeps periodically until it is stopped. */
  start(): void
  /** Resolves when a running sweep has ended. */
  stop(): Promise<void>
  /** One sweep; never rejects. */
  sweep(): Promise<void>
}

type CleanerParts = {
  tasks: CleanedTasks
  outputs: Pick<Outputs, 'remove'> & { removeLeftovers?(): Promise<number> }
  /** The response cache; absent: there is none. */
  cache?: { deleteExpired(): Promise<void> }
  /** Deletes one batch of what the ledger no longer keeps; false: nothing is left. Absent: there is no ledger. */
  pruneLedger?: () => Promise<boolean>
  /** Removes one batch of the files of tokens that have expired; false: nothing is left. */
  sweepFiles?: () => Promise<boolean>
  /** The same of the request log. */
  pruneRequests?: () => Promise<boolean>
  clock: Clock
  log: Log
}

/** Files are retained for days, so a quarter of an hour more does no harm and spares the disk. */
const INTERVAL_MILLISECONDS = 15 * 60 * 1000
/** The first sweep waits until the start is finished. */
const FIRST_DELAY_MILLISECONDS = 30_000
const TASKS_PER_BATCH = 20
const KEYS_PER_BATCH = 500
/** A job ends after this many batches, so that the others have their turn. */
const BATCHES_PER_SWEEP = 200
/** Then the next sweep continues soon: a busy gateway adds more rows in a quarter of an hour than one sweep deletes. */
const PAUSE_MILLISECONDS = 1_000

export function createCleaner(parts: CleanerParts): Cleaner {
  const { tasks, outputs, cache, pruneLedger, pruneRequests, sweepFiles, clock, log } = parts
  let isStopped = false
  /** Whether the last sweep has left something that it could have removed. */
  let isUnfinished = false
  let cancelTimer = () => {}
  let running: Promise<void> | undefined

  /** Until `one` has nothing left, or the next sweep continues. */
  async function inBatches(one: () => Promise<boolean>): Promise<void> {
    for (let batch = 0; batch < BATCHES_PER_SWEEP && !isStopped; batch++) if (!(await one())) return
    isUnfinished = true
  }

  /** The files first, then the row: after a failure in between it is repeated, and removing a missing file is no error. */
  async function removeOutputs(): Promise<void> {
    const failed = new Set<string>()
    await inBatches(async () => {
      // Tasks that failed come first again: they must not block the others.
      const limit = TASKS_PER_BATCH + failed.size
      const found = await tasks.outputsToRemove(unixSeconds(clock), limit)
      const due = found.filter(({ task_id }) => !failed.has(task_id))
      if (due.length === 0) return false
      const removed: string[] = []
      for (const task of due) {
        if (await removeFiles(task)) removed.push(task.task_id)
        else failed.add(task.task_id)
      }
      await tasks.outputsRemoved(removed)
      return found.length === limit
    })
    if (failed.size > 0) isUnfinished = false
  }

  async function removeFiles(task: { task_id: string; outputs: TaskOutput[] }): Promise<boolean> {
    try {
      for (const { key } of task.outputs) if (key !== undefined) await outputs.remove(key)
      return true
    } catch (thrown) {
      log.error('outputs not removed', { task_id: task.task_id }, thrown)
      return false
    }
  }

  /** A failed job does not block the others. */
  async function sweepOnce(): Promise<void> {
    isUnfinished = false
    const jobs = {
      'outputs not cleaned': removeOutputs,
      'idempotency keys not deleted': () =>
        inBatches(async () => (await tasks.deleteExpiredKeys(unixSeconds(clock), KEYS_PER_BATCH)) === KEYS_PER_BATCH),
      'partial files not removed': removeLeftovers,
      'files not removed': async () => sweepFiles && inBatches(sweepFiles),
      'cached responses not deleted': async () => cache?.deleteExpired(),
      'ledger not pruned': async () => pruneLedger && inBatches(pruneLedger),
      'request log not pruned': async () => pruneRequests && inBatches(pruneRequests),
    }
    for (const [event, job] of Object.entries(jobs)) {
      try {
        if (!isStopped) await job()
      } catch (thrown) {
        log.error(event, {}, thrown)
      }
    }
  }

  async function removeLeftovers(): Promise<void> {
    await outputs.removeLeftovers?.()
  }

  const cleaner: Cleaner = {
    start() {
      isStopped = false
      const wait = (ms: number) => {
        cancelTimer = clock.after(ms, () => {
          void cleaner.sweep().then(() => {
            if (!isStopped) wait(isUnfinished ? PAUSE_MILLISECONDS : INTERVAL_MILLISECONDS)
          })
        })
      }
      wait(FIRST_DELAY_MILLISECONDS)
    },
    async stop() {
      isStopped = true
      cancelTimer()
      await running
    },
    sweep() {
      running ??= sweepOnce().finally(() => {
        running = undefined
      })
      return running
    },
  }
  return cleaner
}
