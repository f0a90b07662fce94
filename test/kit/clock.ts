/** A clock that stands still until a test advances it. */
import type { Clock } from '../../src/kit/clock.ts'

export type ManualClock = Clock & {
  /** Advances time and runs the timers that fall due, in order. */
  advance(ms: number): void
  /** Sets the clock: timers and the steady time do not change. */
  jump(ms: number): void
  /** The number of pending timers. */
  waiting(): number
}

export function manualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start
  let jumped = 0
  let timers: { at: number; work: () => void }[] = []
  return {
    now: () => now + jumped,
    steady: () => now,
    jump(ms) {
      jumped += ms
    },
    after(ms, work) {
      const timer = { at: now + ms, work }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
    advance(ms) {
      const end = now + ms
      for (;;) {
        // The earliest, and of equal ones the first: months have millions of steps.
        let index = -1
        for (const [at, timer] of timers.entries())
          if (timer.at <= end && (index === -1 || timer.at < (timers[index]?.at ?? 0))) index = at
        const [due] = index === -1 ? [] : timers.splice(index, 1)
        if (!due) break
        now = Math.max(now, due.at)
        due.work()
      }
      now = end
    },
    waiting: () => timers.length,
  }
}
