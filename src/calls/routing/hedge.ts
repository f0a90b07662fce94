/** Hedging: where the first byte comes later than usual, a second target is asked, and the first answer is taken. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Routing, Sender } from './attempt.ts'
import { quantilesOf } from './bounds.ts'
import type { OpenAttempt } from './open-attempt.ts'
import type { Selection } from './selection.ts'

/** At most this share of calls is hedged: hedging must not add to the load of an outage. */
const SHARE = 0.05
/** How many hedges may be saved up, so that a short stall can be hedged as a whole. */
const MOST_SAVED = 10

function createHedgeBudget() {
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

type HedgeBudget = ReturnType<typeof createHedgeBudget>

type Hedged<Answer> = {
  clock: Clock
  after_ms: number
  first: Promise<Answer>
  /** Starts the second try; undefined: there is none to start. */
  second(): Promise<Answer> | undefined
}

type Race<Answer> = { answer: Answer; winner: 'first' | 'second' }

/** Rejects with the last failure when every started try has failed. */
async function race<Answer>({ clock, after_ms, first, second }: Hedged<Answer>): Promise<Race<Answer>> {
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

type Sending<Answer> = {
  selection: Selection
  routing: Routing
  hedge_ms: number
  isLast: boolean
  sender: Sender<Answer>
}

type Answered<Answer> = { attempt: OpenAttempt; answer: Answer }

export function createHedging(clock: Clock) {
  /** By the settings object of a model: a reload begins anew. */
  const budgets = new WeakMap<RoutingConfig, HedgeBudget>()

  return {
    /** After how many milliseconds a second target is asked beside the first one; undefined: never. */
    after(selection: Selection, { settings, policy, is_hedged }: Routing): number | undefined {
      if (!settings.hedge || !is_hedged || policy !== 'until_answered' || !selection.current) return undefined
      budgets.getOrInsertComputed(settings, createHedgeBudget).earn()
      return quantilesOf(selection.current.state)?.p95
    },

    /** Sends the first attempt, and a second one where that is slow. */
    async send<Answer>(
      attempt: OpenAttempt,
      { selection, routing, hedge_ms, isLast, sender }: Sending<Answer>,
    ): Promise<Answer> {
      const { signal, settings, bounds } = routing
      attempt.mayBeLost(false)
      const first = sendUnder(attempt, isLast, sender)
      let second: { attempt: OpenAttempt; answered: typeof first } | undefined
      const { answer: fastest, winner } = await race({
        clock,
        after_ms: hedge_ms,
        first,
        second() {
          const budget = budgets.get(settings)
          if (signal.aborted || bounds.deadline <= clock.steady() || !budget?.allows()) return undefined
          const hedge = selection.another()
          if (!hedge) return undefined
          budget.take()
          hedge.mayBeLost(true)
          second = { attempt: hedge, answered: sendUnder(hedge, true, sender) }
          return second.answered
        },
      })
      const loser = winner === 'first' ? second : { attempt, answered: first }
      loser?.attempt.lose()
      // It may have answered in the same moment.
      loser?.answered.then(
        ({ attempt: late }) => late.loseAnswered(),
        () => {},
      )
      routing.serving(fastest.attempt)
      return fastest.answer
    },
  }
}

/** An attempt that may be ended by another one. */
async function sendUnder<Answer>(
  attempt: OpenAttempt,
  isLast: boolean,
  sender: Sender<Answer>,
): Promise<Answered<Answer>> {
  try {
    const waiting = attempt.enter()
    if (waiting) await waiting
    const answer = await attempt.send(isLast, sender)
    attempt.answered()
    return { attempt, answer }
  } catch (error) {
    attempt.failed(error)
    throw error
  }
}
