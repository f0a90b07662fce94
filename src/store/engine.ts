/** What an engine gives the stores, beyond the one language of statements. */
import type { TaskStatus } from '../spec/task.ts'
import type { Database, Write } from './tables.ts'

export type TaskChangeFeed = { task_id: string; status: TaskStatus }

export type Engine = {
  name: string
  db: Database
  /** Runs `work` in a transaction, perhaps one that it shares; resolves once that is on the disk. */
  write<T>(work: (write: Write) => Promise<T>): Promise<T>
  /** Several writers at once: a claim skips the rows that another one has locked. */
  many_writers: boolean
  /** Tells of a change that is committed; haste only. */
  tell(notifications: TaskChangeFeed): void
  watch(listener: (notifications: TaskChangeFeed) => void): () => void
  close(): Promise<void>
}

export type Notifications = {
  tell(notifications: TaskChangeFeed): void
  watch(listener: (notifications: TaskChangeFeed) => void): () => void
}

export function createNotifications(): Notifications {
  const listeners = new Set<{ hear: (notifications: TaskChangeFeed) => void }>()
  return {
    tell(notifications) {
      for (const listener of [...listeners]) listener.hear(notifications)
    },
    watch(hear) {
      const listener = { hear } // an object of its own: the same function may listen twice
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
