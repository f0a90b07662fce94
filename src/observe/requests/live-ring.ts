/** Keeps the last live events of this process in memory: for who comes back to it, and for processes that begin to follow. */
import type { LiveItem } from './live-followers.ts'

/** `number`: among the events of this process, without a gap while events are kept. */
export type OwnEvent = LiveItem & { number: number }
export type Kept = { events: readonly OwnEvent[]; isGap: boolean; first: number }

type LiveRing = {
  add(item: LiveItem): OwnEvent
  /** An event was not kept, since nobody follows. */
  skip(): void
  /** From now on events are kept. */
  begin(): void
  /** What is kept after a number; `isGap`: something before it was not kept, or no longer is. */
  since(number: number): Kept
  last(): number
}

/** Some 3 MB of rows, while somebody follows. */
const MAX_KEPT = 2_000

export function createLiveRing(): LiveRing {
  let kept: OwnEvent[] = []
  let last = 0
  let isSkipping = false
  /** A number without an event says that events are missing. */
  function begin(): void {
    if (isSkipping) last++
    isSkipping = false
  }
  return {
    begin,
    add(item) {
      begin()
      last++
      const event = Object.assign(item, { number: last })
      if (kept.length >= 2 * MAX_KEPT) kept = kept.slice(-MAX_KEPT + 1)
      kept.push(event)
      return event
    },
    skip() {
      if (isSkipping) return
      isSkipping = true
      kept = []
    },
    since(number) {
      const oldest = kept[0]?.number ?? last + 1
      const events = kept.slice(Math.max(0, number - oldest + 1))
      return { events, isGap: isSkipping || number < oldest - 1, first: Math.max(oldest, number + 1) }
    },
    last: () => last,
  }
}
