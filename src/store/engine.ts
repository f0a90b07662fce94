/** Contract of a database engine, and the notifications of changed tasks within this process. */
import type { TaskStatus } from '../spec/task.ts'
import type { Database, Write } from './tables.ts'

export type TaskNotification = { task_id: string; status: TaskStatus }

/** `is_synced: false`: what a power failure may take, and a killed process may not, such as rows of a log. Default: true. */
export type WriteOptions = { is_synced?: boolean }

export type Engine = {
  name: string
  db: Database
  /**
   * Runs reads that end after a bounded number of rows: each follows the order of an index, whatever the database knows
   * about the sizes of its tables.
   */
  readInOrder<T>(work: (db: Database) => Promise<T>): Promise<T>
  /** Runs `work` in a transaction, possibly a shared one. Resolves once the transaction is on the disk. */
  write<T>(work: (write: Write) => Promise<T>, options?: WriteOptions): Promise<T>
  /** The same, after all writes of this process that were called before it, and before those that are called after it. */
  writeAlone<T>(work: (write: Write) => Promise<T>): Promise<T>
  /** Whether several writers run at once: a claim then skips the rows that another claim has locked. */
  many_writers: boolean
  /** Whether an error says that the database cannot be reached or written now; false for a fault of a statement. */
  isUnavailable(error: unknown): boolean
  /** Whether an error says that the file of the database is damaged, so that trying again does not help. */
  isDamaged?(error: unknown): boolean
  /** The database's own clock in unix milliseconds, where it is not that of this machine. */
  now?(): Promise<number>
  /** Announces a committed change. Only for speed: polling finds it too. */
  notify(notification: TaskNotification): void
  watch(listener: (notification: TaskNotification) => void): () => void
  /** Frees the memory of caches; absent where there are none in this process. */
  releaseMemory?(): void
  close(): Promise<void>
}

export type Notifications = {
  notify(notification: TaskNotification): void
  watch(listener: (notification: TaskNotification) => void): () => void
}

export function createNotifications(): Notifications {
  const listeners = new Set<{ onChange: (notification: TaskNotification) => void }>()
  return {
    notify(notification) {
      for (const listener of [...listeners]) listener.onChange(notification)
    },
    watch(onChange) {
      const listener = { onChange } // a separate object, since the same function may be registered twice
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
