/** The time for what is shown relative to it: one timer for all that show it. */
import { useSyncExternalStore } from 'react'

const EVERY_MILLISECONDS = 15_000
const listeners = new Set<() => void>()
let now = Math.floor(Date.now() / 1000)
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    now = Math.floor(Date.now() / 1000)
    for (const one of listeners) one()
  }, EVERY_MILLISECONDS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** Unix seconds, renewed every 15 seconds. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now)
