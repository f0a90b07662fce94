/** Routing: sends a call to one target after another, and remembers how each behaved. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Target } from '../providers/provider.ts'
import type { Candidate } from './choose.ts'
import { noneAvailable, tooLate } from './errors.ts'
import { createHedgeBudget, type HedgeBudget, race } from './hedge.ts'
import { quantilesOf } from './latency.ts'
import { createMemory, type Memory } from './memory.ts'
import { createOrderRouting, type OrderRouting } from './order-routing.ts'
import { mayTryNext } from './outcome.ts'
import { createRetryBudgets } from './retry-budget.ts'
import { type Chosen, createSelector, newSelection, type Selection } from './selection.ts'
import { cancelTry, createTryControl, type TryControl } from './time-limit.ts'
import { beginTry, LOST, type OpenTry, type Routing, type Sending } from './try.ts'

export type Router = OrderRouting &
  Pick<Memory, 'states' | 'candidates' | 'reset' | 'recovered' | 'override'> & {
    /** The answer of the first target that succeeds. Throws the last failure, or `no_available_channel` if none was tried. */
    attempt<Answer>(targets: readonly Target[], routing: Routing<Answer>): Promise<Answer>
  }

type RouterParts = { clock: Clock; log: Log; random?: () => number }

export function createRouter({ clock, log, random = Math.random }: RouterParts): Router {
  const { candidatesOf, candidates, states, reset, recovered, override } = createMemory(clock)
  const selector = createSelector({ budgets: createRetryBudgets(), clock, random })
  const parts = { clock, log }
  /** By the settings object of a model: a reload begins anew. */
  const hedgeBudgets = new WeakMap<RoutingConfig, HedgeBudget>()

  /** After how long a second target is asked beside this one; undefined: never. */
  function hedgeAfter({ state }: Candidate, { settings, policy, is_hedged }: Routing<unknown>): number | undefined {
    if (!settings.hedge || !is_hedged || policy !== 'until_answered') return undefined
    let budget = hedgeBudgets.get(settings)
    if (!budget) {
      budget = createHedgeBudget()
      hedgeBudgets.set(settings, budget)
    }
    budget.earn()
    return quantilesOf(state)?.p95
  }

  /** A try that may be ended by another one. */
  async function sendUnder<Answer>(sending: Sending, routing: Routing<Answer>): Promise<Answered<Answer>> {
    const open = await beginTry(sending, routing, parts)
    try {
      const answer = await open.response
      open.answered()
      return { open, answer }
    } catch (error) {
      open.failed(error)
      throw error
    }
  }

  /** The first try, and a second one where that is slow. */
  async function sendHedged<Answer>(
    { selection, after_ms, ...given }: Hedging,
    routing: Routing<Answer>,
  ): Promise<Answered<Answer>> {
    const { signal, settings, bounds, observer } = routing
    const control = createTryControl(signal)
    const first = sendUnder({ ...given, control }, routing)
    let second: { tried: typeof first; control: TryControl } | undefined
    const { answer, winner } = await race({
      clock,
      after_ms,
      first,
      second() {
        const budget = hedgeBudgets.get(settings)
        if (signal.aborted || bounds.deadline <= clock.steady() || !budget?.allows()) return undefined
        const chosen = selector.another(selection)
        if (!chosen) return undefined
        budget.take()
        const own = createTryControl(signal)
        second = { tried: sendUnder({ chosen, isLast: true, control: own, is_hedge: true }, routing), control: own }
        return second.tried
      },
    })
    const loser = winner === 'first' ? second : { tried: first, control }
    if (loser) cancelTry(loser.control, LOST)
    // It may have answered in the same moment.
    loser?.tried.then(
      ({ open }) => {
        open.attempt.is_lost = true
        open.end(LOST)
        observer.attemptFailed(open.attempt, LOST)
      },
      () => {},
    )
    return answer
  }

  function selectionOf(targets: readonly Target[], routing: Routing<unknown>): Selection {
    const { settings, bounds, strategy, is_one_provider = false, has_fallback } = routing
    const candidates = candidatesOf(targets, settings, routing.is_observed)
    if ((strategy ?? settings.strategy) === 'cheapest')
      for (const one of candidates) one.cost = routing.costOf?.(one.target)
    const affinity = candidates.length > 1 && settings.sticky ? routing.affinity?.(settings.sticky) : undefined
    const { deadline } = bounds
    return newSelection({ candidates, settings, strategy, is_one_provider, deadline, has_fallback, affinity })
  }

  return {
    ...createOrderRouting({ candidatesOf, clock, log, random }),
    states,
    candidates,
    reset,
    recovered,
    override,
    async attempt<Answer>(targets: readonly Target[], routing: Routing<Answer>): Promise<Answer> {
      const { signal, policy, bounds, has_fallback, observer } = routing
      const most = bounds.tries - bounds.tries_made
      const now = clock.steady()
      if (bounds.deadline <= now) throw tooLate()
      const selection = selectionOf(targets, routing)
      let chosen = selector.first(selection, now)
      if (!chosen) throw noneAvailable()
      const after_ms = targets.length > 1 && most > 1 ? hedgeAfter(chosen.candidate, routing) : undefined
      for (;;) {
        const { tries } = selection
        const hasNext = tries < most && policy !== 'until_accepted'
        const isLast = !hasNext || !(has_fallback || selector.hasOther(selection, chosen.at))
        const sending = { chosen, isLast }
        let open: OpenTry<Answer> | undefined
        try {
          if (tries === 1 && after_ms !== undefined) {
            const hedged = await sendHedged({ selection, after_ms, ...sending }, routing)
            observer.serving(hedged.open.attempt, hedged.open)
            return hedged.answer
          }
          const entered = beginTry(sending, routing, parts)
          open = entered instanceof Promise ? await entered : entered
          const answer = await open.response
          open.answered()
          observer.serving(open.attempt, open)
          return answer
        } catch (error) {
          open?.failed(error)
          if (selection.tries >= most || signal.aborted || !mayTryNext(error, policy)) throw error
          chosen = await selector.after(selection, error, signal)
          if (!chosen) throw error
        }
      }
    },
  }
}

type Answered<Answer> = { open: OpenTry<Answer>; answer: Answer }
type Hedging = { selection: Selection; after_ms: number; chosen: Chosen; isLast: boolean }
