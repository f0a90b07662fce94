/** Time that passes only when nothing is left to do: an hour of it takes seconds, and each run is the same. */
import type { Clock } from '../../src/kit/clock.ts'

export type VirtualClock = Clock & {
  /** Runs everything that is due before `end`, in milliseconds, and all that follows from it. */
  runUntil(end: number): Promise<void>
}

type Timer = { at: number; order: number; work: (() => void) | undefined }

const isSooner = (one: Timer, other: Timer) => one.at < other.at || (one.at === other.at && one.order < other.order)

export function createVirtualClock(): VirtualClock {
  let now = 0
  let order = 0
  /** A binary heap. */
  const heap: Timer[] = []

  function push(timer: Timer): void {
    let at = heap.push(timer) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = heap[above]
      if (!parent || !isSooner(timer, parent)) break
      heap[at] = parent
      at = above
    }
    heap[at] = timer
  }

  function pop(): Timer | undefined {
    const top = heap[0]
    const last = heap.pop()
    if (!top || !last || heap.length === 0) return top
    let at = 0
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]]
      const child = right && left && isSooner(right, left) ? right : left
      if (!child || !isSooner(child, last)) break
      heap[at] = child
      at = child === left ? 2 * at + 1 : 2 * at + 2
    }
    heap[at] = last
    return top
  }

  return {
    now: () => now,
    steady: () => now,
    after(ms, work) {
      const timer: Timer = { at: now + ms, order: order++, work }
      push(timer)
      return () => {
        timer.work = undefined
      }
    },
    async runUntil(end) {
      for (;;) {
        const next = heap[0]
        if (!next || next.at >= end) break
        pop()
        if (!next.work) continue
        now = next.at
        next.work()
        await allSettled()
      }
      now = end
    },
  }
}

/** After everything that waits for no timer. */
const allSettled = () => new Promise<void>((resolve) => void setImmediate(resolve))
