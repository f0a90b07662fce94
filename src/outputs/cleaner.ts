/** Removes files whose time is over, and what is not needed any more with them: in small batches, all day long. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { TaskOutput } from '../spec/task.ts'
import type { Outputs } from './outputs.ts'

/** What the cleaner asks of whoever remembers tasks. */
type CleanedTasks = {
  outputsToRemove(now: number, limit: number): Promise<{ task_id: string; outputs: TaskOutput[] }[]>
  outputsRemoved(task_ids: string[]): Promise<void>
  deleteExpiredKeys(now: number, limit: number): Promise<number>
}

type Cleaner = {
  /** Sweeps now and then until it is stopped. */
  start(): void
  /** Resolves when a sweep under way has ended. */
  stop(): Promise<void>
  /** Once through; never rejects. */
  sweep(): Promise<void>
}

type CleanerParts = {
  tasks: CleanedTasks
  outputs: Pick<Outputs, 'remove'> & { tidy?(): Promise<number> }
  clock: Clock
  log: Log
}

/** Files are kept for days: a quarter of an hour more does no harm, and leaves the disk alone. */
const EVERY_MILLISECONDS = 15 * 60 * 1000
/** The first sweep waits until a start is over, with all that it has to do. */
const FIRST_MILLISECONDS = 30_000
const TASKS_AT_A_TIME = 20
const KEYS_AT_A_TIME = 500
/** A sweep ends after so many batches, so that a stop need not wait; the next one goes on. */
const BATCHES_A_SWEEP = 200

export function createCleaner({ tasks, outputs, clock, log }: CleanerParts): Cleaner {
  let isStopped = false
  let cancelTimer = () => {}
  let underWay: Promise<void> | undefined

  /** The files first, then the row: what breaks in between is done again, and removing twice is no error. */
  async function removeOutputs(): Promise<void> {
    const failed = new Set<string>()
    for (let batch = 0; batch < BATCHES_A_SWEEP && !isStopped; batch++) {
      // Those that failed come first again: they must not block the others.
      const limit = TASKS_AT_A_TIME + failed.size
      const found = await tasks.outputsToRemove(unixSeconds(clock), limit)
      const due = found.filter(({ task_id }) => !failed.has(task_id))
      if (due.length === 0) return
      const removed: string[] = []
      for (const task of due) {
        if (await removeFiles(task)) removed.push(task.task_id)
        else failed.add(task.task_id)
      }
      await tasks.outputsRemoved(removed)
      if (found.length < limit) return
    }
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

  async function forgetKeys(): Promise<void> {
    for (let batch = 0; batch < BATCHES_A_SWEEP && !isStopped; batch++) {
      if ((await tasks.deleteExpiredKeys(unixSeconds(clock), KEYS_AT_A_TIME)) < KEYS_AT_A_TIME) return
    }
  }

  /** One that fails does not block the others. */
  async function sweepOnce(): Promise<void> {
    const chores = {
      'outputs not cleaned': removeOutputs,
      'keys not forgotten': forgetKeys,
      'partials not removed': tidy,
    }
    for (const [event, chore] of Object.entries(chores)) {
      try {
        if (!isStopped) await chore()
      } catch (thrown) {
        log.error(event, {}, thrown)
      }
    }
  }

  async function tidy(): Promise<void> {
    await outputs.tidy?.()
  }

  const cleaner: Cleaner = {
    start() {
      isStopped = false
      const wait = (ms: number) => {
        cancelTimer = clock.after(ms, () => {
          void cleaner.sweep().then(() => {
            if (!isStopped) wait(EVERY_MILLISECONDS)
          })
        })
      }
      wait(FIRST_MILLISECONDS)
    },
    async stop() {
      isStopped = true
      cancelTimer()
      await underWay
    },
    sweep() {
      underWay ??= sweepOnce().finally(() => {
        underWay = undefined
      })
      return underWay
    },
  }
  return cleaner
}
