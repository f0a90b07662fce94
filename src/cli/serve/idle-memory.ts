/** Returns memory to the system while a gateway has little to do, after its start and after each burst of requests. */
import type { Clock } from '../../kit/clock.ts'

type IdleMemoryParts = {
  /** Requests that are open, and all that have started since that of the process. */
  requests(): { open: number; started: number }
  /** `drops_code`: also what was compiled, of which little is used again after a start. */
  release(drops_code: boolean): void
  clock: Clock
}

const LOOK_MILLISECONDS = 5_000
/** Health checks and scrapes go on while nobody calls a model. */
const FEW_REQUESTS = 10
/** Since the last release: fewer leave little to return. */
const REQUESTS_BETWEEN = 1_000
/** A gateway that has served so many keeps its compiled code: to compile it again takes a second, and delays each tenth call. */
const CODE_IS_KEPT_FROM = 1_000

/** The result ends it. */
export function releaseIdleMemory({ requests, release, clock }: IdleMemoryParts): () => void {
  let seen = 0
  let released_at = Number.NEGATIVE_INFINITY
  let cancel = () => {}
  function look(): void {
    const { open, started } = requests()
    if (open === 0 && started - seen <= FEW_REQUESTS && started - released_at >= REQUESTS_BETWEEN) {
      released_at = started
      release(started < CODE_IS_KEPT_FROM)
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
 * The runtime by itself keeps what a burst took for minutes: pages of which little is used, and its code of all tiers. The
 * second step follows when nothing runs, and drops all compiled code.
 */
export function shrinkHeap(drops_code: boolean): void {
  Bun.gc(true)
  if (drops_code) Bun.shrink()
}
