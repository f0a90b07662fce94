/** A call that waits for limits which all processes count together: asks again when it may fit, one request at a time. */
import type { Clock } from '../../kit/clock.ts'
import type { Verdict } from './hold.ts'
import type { Exceeded } from './status.ts'

type CountedWaitParts<Hold> = {
  clock: Pick<Clock, 'steady'>
  count(): Promise<Verdict | undefined>
  onBlocked(blocked: Exceeded): void
  take(at: number): Hold
  /** Changes whenever this process gives something back. */
  freed(): number
  /** Lets the queue attempt again. */
  retry(): void
}

/** Others may give something back at any time. */
const LONGEST_PAUSE_MS = 250

export function createCountedWait<Hold extends { cancel(): void }>(parts: CountedWaitParts<Hold>) {
  const { clock, count, onBlocked, take, freed, retry } = parts
  let hold: Hold | undefined
  let isPending = false
  let isOver = false
  let not_before = 0
  let freed_before = -1

  async function ask(): Promise<void> {
    const verdict = await count()
    isPending = false
    if (verdict && !verdict.blocked) {
      hold = take(verdict.at)
      if (isOver) leave()
    }
    if (isOver) return
    if (verdict?.blocked) onBlocked(verdict.blocked)
    const wait_ms = verdict?.blocked?.wait_ms ?? LONGEST_PAUSE_MS
    not_before = clock.steady() + Math.min(wait_ms, LONGEST_PAUSE_MS)
    retry()
  }

  function leave(): void {
    isOver = true
    hold?.cancel()
    hold = undefined
  }

  return {
    isAdmitted: () => hold !== undefined,
    attempt(): { hold: Hold } | { wait_ms: number } {
      if (hold) {
        const taken = hold
        hold = undefined
        return { hold: taken }
      }
      const wait_ms = not_before - clock.steady()
      if (isPending) return { wait_ms: LONGEST_PAUSE_MS }
      if (wait_ms > 0 && freed() === freed_before) return { wait_ms }
      isPending = true
      freed_before = freed()
      void ask()
      return { wait_ms: LONGEST_PAUSE_MS }
    },
    /** The call waits no longer. */
    leave,
  }
}
