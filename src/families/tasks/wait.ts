/** Long polling: waits until a task changes. Reads it at once, at each notification, and once a second. */
import type { Clock } from '../../kit/clock.ts'
import type { Task } from '../../spec/task.ts'
import type { TaskStore } from '../../store/store.ts'
import { isEnded } from './lifecycle.ts'

/** Proxies and clients give up on a response that takes much longer. */
export const MAX_WAIT_SECONDS = 60
/** Another process may have changed it, and its notification may be lost. */
const READ_MILLISECONDS = 1_000

type WaitOptions = {
  seconds: number
  signal: AbortSignal
  /** Reads the row; throws when there is none. */
  read(): Promise<Task>
}

export function createWaiting({ store, clock }: { store: { tasks: TaskStore }; clock: Clock }) {
  const waiters = new Map<string, Set<() => void>>()
  let unwatch: (() => void) | undefined
  let is_stopped = false

  /** Resolves at the next notification of a change of this task, or after `ms`. */
  function nextChange(
    task_id: string,
    { ms, signal }: { ms: number; signal: AbortSignal },
  ): { changed: Promise<void>; stop(): void } {
    const { promise: changed, resolve } = Promise.withResolvers<void>()
    unwatch ??= store.tasks.watch((change) => {
      for (const wake of waiters.get(change.task_id) ?? []) wake()
    })
    const own = waiters.getOrInsertComputed(task_id, () => new Set()).add(resolve)
    const cancel = clock.after(ms, resolve)
    const aborted = () => resolve()
    signal.addEventListener('abort', aborted, { once: true })
    return {
      changed,
      stop() {
        cancel()
        signal.removeEventListener('abort', aborted)
        own.delete(resolve)
        if (own.size === 0) waiters.delete(task_id)
        if (waiters.size > 0) return
        unwatch?.()
        unwatch = undefined
      },
    }
  }

  return {
    /** Resolves with the task when it differs from `seen`, has ended, or the time is up; rejects when aborted. */
    async until(seen: Task, { seconds, signal, read }: WaitOptions): Promise<Task> {
      const end_ms = clock.steady() + Math.min(MAX_WAIT_SECONDS, Math.max(0, seconds)) * 1000
      for (;;) {
        signal.throwIfAborted()
        const left = end_ms - clock.steady()
        // Subscribes before it reads, so that a change in between is not missed.
        const next = nextChange(seen.task_id, { ms: Math.min(left, READ_MILLISECONDS), signal })
        try {
          const task = await read()
          if (isChanged(seen, task) || isEnded(task) || left <= 0 || is_stopped) return task
          await next.changed
        } finally {
          next.stop()
        }
      }
    },
    /** All waiting requests get the current state. */
    stop(): void {
      is_stopped = true
      for (const waiting of waiters.values()) for (const wake of waiting) wake()
    },
  }
}

const isChanged = (seen: Task, task: Task): boolean => task.status !== seen.status || task.progress !== seen.progress
