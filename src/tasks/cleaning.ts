/** Removes what is over its time, in small batches: files of tasks, and idempotency keys. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Outputs } from '../outputs/outputs.ts'
import type { TaskOutput } from '../spec/task.ts'
import type { TaskStore } from '../store/store.ts'

/** Nothing of it is urgent. */
const PAUSE_MILLISECONDS = 60_000
/** After a full batch there is probably more. */
const SHORT_PAUSE_MILLISECONDS = 1_000
const TASKS_A_BATCH = 50
const KEYS_A_BATCH = 500

export type Cleaning = { start(): void; stop(): Promise<void> }

type CleaningParts = { store: { tasks: TaskStore }; outputs: Outputs; clock: Clock; log: Log }

export function createCleaning({ store, outputs, clock, log }: CleaningParts): Cleaning {
  let cancel: (() => void) | undefined
  let is_running = false
  let batch: Promise<void> = Promise.resolve()

  /** Whether there is probably more. */
  async function clean(): Promise<boolean> {
    const now = unixSeconds(clock)
    const tasks = await store.tasks.outputsToRemove(now, TASKS_A_BATCH)
    const gone: string[] = []
    for (const { task_id, outputs: files } of tasks) if (await removeAll(task_id, files)) gone.push(task_id)
    if (gone.length > 0) {
      await store.tasks.outputsRemoved(gone)
      log.info('files removed', { tasks: gone.length })
    }
    const keys = await store.tasks.forgetKeys(now, KEYS_A_BATCH)
    return (tasks.length === TASKS_A_BATCH && gone.length > 0) || keys === KEYS_A_BATCH
  }

  /** False: the storage would not; the task keeps its list, and is tried again. */
  async function removeAll(task_id: string, files: TaskOutput[]): Promise<boolean> {
    try {
      for (const { key } of files) if (key !== undefined) await outputs.remove(key)
      return true
    } catch (error) {
      log.warn('files not removed', { task_id, why: (error as Error).name })
      return false
    }
  }

  function later(ms: number): void {
    cancel = clock.after(ms, () => {
      batch = clean()
        .catch((error: unknown) => {
          log.error('cleaning failed', {}, error)
          return false
        })
        .then((is_more) => {
          if (is_running) later(is_more ? SHORT_PAUSE_MILLISECONDS : PAUSE_MILLISECONDS)
        })
    })
  }

  return {
    start() {
      if (is_running) return
      is_running = true
      later(SHORT_PAUSE_MILLISECONDS)
    },
    async stop() {
      is_running = false
      cancel?.()
      await batch
    },
  }
}
