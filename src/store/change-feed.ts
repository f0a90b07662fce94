/** Notifies listeners in this process of changed tasks. */
import type { TaskChangeFeed } from './engine.ts'

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
