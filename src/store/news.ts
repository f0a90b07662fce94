/** Changes of tasks, told within this process. */
import type { TaskNews } from './engine.ts'

export type News = {
  tell(news: TaskNews): void
  watch(listener: (news: TaskNews) => void): () => void
}

export function createNews(): News {
  const listeners = new Set<{ hear: (news: TaskNews) => void }>()
  return {
    tell(news) {
      for (const listener of [...listeners]) listener.hear(news)
    },
    watch(hear) {
      const listener = { hear } // an object of its own: the same function may listen twice
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
