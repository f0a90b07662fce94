/** The loop over targets: sends a call to one target after another, and remembers how each behaved. */
import { endingOf } from '../../kit/abortable.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Target } from '../../providers/provider.ts'
import type { Routing, Sender } from './attempt.ts'
import { createRetryBudgets } from './bounds.ts'
import { createHedging } from './hedge.ts'
import { createMemory, type Memory } from './memory.ts'
import { OpenAttempt } from './open-attempt.ts'
import { createOrderRouting, type OrderRouting } from './order-routing.ts'
import { mayTryNext, noneAvailable, tooLate } from './outcome.ts'
import { Selection } from './selection.ts'
import { avoidedBecause } from './target-state.ts'

export type Router = OrderRouting &
  Pick<Memory, 'states' | 'candidates' | 'reset' | 'recovered' | 'override'> & {
    /** An attempt at the only target; undefined where it is avoided, its calls have to wait, or it is too late. */
    only(targets: readonly Target[], routing: Routing): OpenAttempt | undefined
    /** The answer of the first target that succeeds. Throws the last failure, or `no_available_channel` if none was tried. */
    attempt<Answer>(targets: readonly Target[], routing: Routing, sender: Sender<Answer>): Promise<Answer>
  }

type RouterParts = { clock: Clock; log: Log; random?: () => number }

export function createRouter({ clock, log, random = Math.random }: RouterParts): Router {
  const { candidatesOf, candidates, states, reset, recovered, override } = createMemory(clock)
  const hedging = createHedging(clock)
  const parts = { budgets: createRetryBudgets(), clock, log, random }

  return {
    ...createOrderRouting({ candidatesOf, clock, log, random }),
    states,
    candidates,
    reset,
    recovered,
    override,
    only(targets, routing) {
      const [candidate] = candidatesOf(targets, routing.settings, routing.is_observed)
      const now = clock.steady()
      if (!candidate || candidate.limiter || routing.bounds.deadline <= now) return undefined
      if (avoidedBecause(candidate.state, now) !== undefined) return undefined
      return new OpenAttempt({ candidate, now, isRetry: false }, routing, parts)
    },
    async attempt(targets, routing, sender) {
      const { policy, bounds } = routing
      const most = bounds.tries - bounds.tries_made
      const now = clock.steady()
      if (bounds.deadline <= now) throw tooLate()
      const selection = new Selection(candidatesOf(targets, routing.settings, routing.is_observed), routing, parts)
      let attempt = selection.first(now)
      if (!attempt) throw noneAvailable()
      let hedge_ms = targets.length > 1 && most > 1 ? hedging.after(selection, routing) : undefined
      for (;;) {
        const hasNext = selection.tries < most && policy !== 'until_accepted'
        const isLast = !hasNext || !(routing.has_fallback || selection.hasOther())
        try {
          if (hedge_ms !== undefined)
            return await hedging.send(attempt, { selection, routing, hedge_ms, isLast, sender })
          const waiting = attempt.enter()
          if (waiting) await waiting
          const answer = await attempt.send(isLast, sender)
          attempt.answered()
          routing.serving(attempt)
          return answer
        } catch (error) {
          if (hedge_ms === undefined) attempt.failed(error)
          hedge_ms = undefined
          if (selection.tries >= most || endingOf(routing).aborted || !mayTryNext(error, policy)) throw error
          attempt = await selection.after(error)
          if (!attempt) throw error
        }
      }
    },
  }
}
