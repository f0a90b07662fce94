/** Holds a client's question until its task changes: one look at once, one at each sign of a change, one a second. */
import type { Clock } from '../kit/clock.ts'
import type { Task } from '../spec/task.ts'
import type { TaskStore } from '../store/store.ts'
import { isEnded } from './lifecycle.ts'

/** Proxies and clients give up on an answer that takes much longer. */
export const MAX_WAIT_SECONDS = 60
/** Another process may have changed it, and its news got lost. */
const LOOK_MILLISECONDS = 1_000

type WaitOptions = {
  seconds: number
  signal: AbortSignal
  /** Reads the row; throws when there is none. */
  read(): Promise<Task>
}

type Waiting = {
  /** Resolves with the row when it differs from `seen`, has ended, or the time is up; rejects when aborted. */
  until(seen: Task, options: WaitOptions): Promise<Task>
  /** Everyone who waits gets what there is. */
  stop(): void
}

export function createWaiting({ store, clock }: { store: { tasks: TaskStore }; clock: Clock }): Waiting {
  const signs = new Map<string, Set<() => void>>()
  let unwatch: (() => void) | undefined
  let is_stopped = false

  /** Resolves at the next sign of a change of this task, or after `ms`. */
  function sign(
    task_id: string,
    { ms, signal }: { ms: number; signal: AbortSignal },
  ): { come: Promise<void>; leave(): void } {
    const { promise: come, resolve } = Promise.withResolvers<void>()
    unwatch ??= store.tasks.watch((change) => {
      for (const wake of signs.get(change.task_id) ?? []) wake()
    })
    const mine = signs.get(task_id) ?? new Set()
    signs.set(task_id, mine.add(resolve))
    const cancel = clock.after(ms, resolve)
    const aborted = () => resolve()
    signal.addEventListener('abort', aborted, { once: true })
    return {
      come,
      leave() {
        cancel()
        signal.removeEventListener('abort', aborted)
        mine.delete(resolve)
        if (mine.size === 0) signs.delete(task_id)
        if (signs.size > 0) return
        unwatch?.()
        unwatch = undefined
      },
    }
  }

  return {
    async until(seen, { seconds, signal, read }) {
      const end_ms = clock.now() + Math.min(MAX_WAIT_SECONDS, Math.max(0, seconds)) * 1000
      for (;;) {
        signal.throwIfAborted()
        const left = end_ms - clock.now()
        // Listens before it reads: a change in between is not missed.
        const next = sign(seen.task_id, { ms: Math.min(left, LOOK_MILLISECONDS), signal })
        try {
          const task = await read()
          if (isChanged(seen, task) || isEnded(task) || left <= 0 || is_stopped) return task
          await next.come
        } finally {
          next.leave()
        }
      }
    },
    stop() {
      is_stopped = true
      for (const waiting of signs.values()) for (const wake of waiting) wake()
    },
  }
}

const isChanged = (seen: Task, task: Task): boolean => task.status !== seen.status || task.progress !== seen.progress
