/** A client that reads its task brings the next poll forward, in one batch a second at most. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Task } from '../../spec/task.ts'
import type { TaskStore } from '../../store/store.ts'
import { isEnded } from './lifecycle.ts'
import { mayPollEarlier, type PollSettings } from './poll-schedule.ts'

const BATCH_MILLISECONDS = 1_000
/** More tasks than this in one batch would not be polled within the second anyway. */
const MAX_TASKS = 10_000

type PollAcceleratorParts = {
  store: { tasks: TaskStore }
  clock: Clock
  log: Log
  settings(): PollSettings
  worker: { wake(): void; mayPollNow(task_id: string): boolean }
}

export function createPollAccelerator({ store, clock, log, settings, worker }: PollAcceleratorParts) {
  const waiting = new Set<string>()
  let last_ms = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined

  async function flush(): Promise<void> {
    cancel = undefined
    last_ms = clock.steady()
    const task_ids = [...waiting]
    waiting.clear()
    try {
      await store.tasks.advancePolling(task_ids, clock.now())
      worker.wake()
    } catch (error) {
      log.warn('failed to advance polling', { tasks: task_ids.length, error: (error as Error).name }) // only for speed
    }
  }

  return {
    /** Records that a client has read this task. */
    note(task: Task): void {
      const now_ms = clock.now()
      if (isEnded(task) || waiting.size >= MAX_TASKS) return
      if (!mayPollEarlier(task, settings(), now_ms) || !worker.mayPollNow(task.task_id)) return
      waiting.add(task.task_id)
      cancel ??= clock.after(Math.max(0, last_ms + BATCH_MILLISECONDS - clock.steady()), () => void flush())
    },
    stop(): void {
      cancel?.()
      cancel = undefined
      waiting.clear()
    },
  }
}
