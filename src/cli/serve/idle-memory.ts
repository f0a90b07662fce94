/** Returns memory to the system while a gateway has little to do, after its start and after each burst of requests. */
import type { Clock } from '../../kit/clock.ts'

type IdleMemoryParts = {
  /** Requests that are open, and all that have started since that of the process. */
  requests(): { open: number; started: number }
  release(): void
  clock: Clock
}

const LOOK_MILLISECONDS = 5_000
/** Health checks and scrapes go on while nobody calls a model. */
const FEW_REQUESTS = 10
/** Compiled code is dropped as well, and compiled again once it is used: a quarter of a second of processor time in all. */
const REQUESTS_BETWEEN = 1_000

/** The result ends it. */
export function releaseIdleMemory({ requests, release, clock }: IdleMemoryParts): () => void {
  let seen = 0
  let released_at = Number.NEGATIVE_INFINITY
  let cancel = () => {}
  function look(): void {
    const { open, started } = requests()
    if (open === 0 && started - seen <= FEW_REQUESTS && started - released_at >= REQUESTS_BETWEEN) {
      released_at = started
      release()
    }
    seen = started
    wait()
  }
  function wait(): void {
    cancel = clock.after(LOOK_MILLISECONDS, look)
  }
  wait()
  return () => cancel()
}

/**
 * The runtime by itself keeps what a burst took for minutes: its code of all tiers, and pages of which little is used. The
 * second step follows when nothing runs, and drops the code that only the start, or only the burst, has used.
 */
export function shrinkHeap(): void {
  Bun.gc(true)
  Bun.shrink()
}
