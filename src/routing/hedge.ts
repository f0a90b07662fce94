/** Hedging: where the first byte comes later than usual, a second target is asked, and the first answer is taken. */
import type { Clock } from '../kit/clock.ts'

/** At most this share of calls is hedged: hedging must not add to the load of an outage. */
const SHARE = 0.05
/** How many hedges may be saved up, so that a short stall can be hedged as a whole. */
const MOST_SAVED = 10

export type HedgeBudget = {
  /** A call begins. */
  earn(): void
  /** Whether a call may be hedged. */
  allows(): boolean
  /** A call is hedged. */
  take(): void
}

export function createHedgeBudget(): HedgeBudget {
  let saved = 0
  return {
    earn() {
      saved = Math.min(MOST_SAVED, saved + SHARE)
    },
    // Additions of 0.05 do not come to exactly 1.
    allows: () => saved >= 1 - 1e-9,
    take() {
      saved -= 1
    },
  }
}

type Hedged<Answer> = {
  clock: Clock
  after_ms: number
  first: Promise<Answer>
  /** Starts the second try; undefined: there is none to start. */
  second(): Promise<Answer> | undefined
}

type Race<Answer> = { answer: Answer; winner: 'first' | 'second' }

/** Rejects with the last failure when every started try has failed. */
export async function race<Answer>({ clock, after_ms, first, second }: Hedged<Answer>): Promise<Race<Answer>> {
  const named = (winner: Race<Answer>['winner']) => (answer: Answer) => ({ answer, winner })
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const stop = clock.after(after_ms, () => resolve(undefined))
  const one = first.then(named('first'))
  try {
    const early = await Promise.race([one, late])
    if (early) return early
  } finally {
    stop()
  }
  const other = second()?.then(named('second'))
  if (!other) return await one
  try {
    return await Promise.any([one, other])
  } catch {
    return await other // both have failed: the later error is that of the second
  }
}
