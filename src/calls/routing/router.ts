/**
 * Sends a call to one target after another, and remembers between calls how each target behaved. A durable order is routed by
 * the same memory: one step chooses a target and stores it, and a later one, perhaps after a restart, calls it.
 */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { ProviderHealth } from '../../providers/health.ts'
import type { Target } from '../../providers/provider.ts'
import type { Routing, Sender } from './attempt.ts'
import { createRetryBudgets } from './bounds.ts'
import { type Candidate, type Choice, chooseAvailable, chooseAvoided } from './choose.ts'
import { createLimiters } from './concurrency.ts'
import { expectedCost } from './conditions.ts'
import { createHedging } from './hedge.ts'
import { logChange, noteError, type OnlyTarget } from './open-attempt.ts'
import { mayTryNext, noneAvailable, outcomeOf, tooLate } from './outcome.ts'
import { NO_OVERRIDES, type OverridableTarget, type Overrides } from './overrides.ts'
import { Selection } from './selection.ts'
import { createShares, newShare, type Share } from './shares.ts'
import {
  answered,
  begin,
  createTargetState,
  endEjections,
  forget,
  note,
  type Outcome,
  stateId,
  type TargetState,
} from './target-state.ts'

export type Router = OrderRouting &
  Pick<Memory, 'states' | 'candidates' | 'reset' | 'recovered' | 'override'> & {
    /** The only target of a model, for its plan: what is remembered of it stays the same object. */
    only(targets: readonly Target[], settings: RoutingConfig): OnlyTarget | undefined
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
    only(targets, settings) {
      const [candidate] = candidatesOf(targets, settings, true)
      return candidate && { candidate, parts }
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
          if (selection.tries >= most || (routing.ending ?? routing.signal).aborted || !mayTryNext(error, policy))
            throw error
          attempt = await selection.after(error)
          if (!attempt) throw error
        }
      }
    },
  }
}

type Memory = {
  /** The candidates for a call that is observed; those of any other are as if they had never been called. */
  candidatesOf(targets: readonly Target[], settings: RoutingConfig, isObserved: boolean): readonly Candidate[]
  states(): Iterable<TargetState>
  /** The targets with what is remembered of them; those that were never called are not remembered by this. */
  candidates(targets: readonly Target[], settings: RoutingConfig): Candidate[]
  /** Forgets what is remembered of one target, by its id, or of all. Returns of how many; open calls still count. */
  reset(id?: string): number
  /** The probes of a provider show that it works again: its ejected targets are tested by their next call. */
  recovered(health: ProviderHealth): void
  /** What the operator has set at run time, from now on, for running calls too. */
  override(overrides: Overrides): void
}

type Known = { state: TargetState; weight: number }

/** The candidates of one list of targets, and the settings whose shares they have. */
type CandidateList = { settings: RoutingConfig; candidates: readonly Candidate[] }

function createMemory(clock: Clock): Memory {
  const states = new Map<string, TargetState>()
  /** The targets of the states, for what is overridden later. */
  const named = new Map<string, OverridableTarget>()
  /** By the object of the target: one look-up without making its id. */
  let known = new WeakMap<Target, Known>()
  /** By the list of targets of a model, which a reload replaces. */
  let lists = new WeakMap<readonly Target[], CandidateList>()
  let overrides = NO_OVERRIDES
  const limiterOf = createLimiters(clock)
  const sharesOf = createShares()

  function knownOf(target: Target): Known {
    const found = known.get(target)
    if (found) return found
    const id = stateId(target)
    let state = states.get(id)
    if (!state) {
      state = newState(target)
      states.set(id, state)
      const { provider, model, key } = target
      named.set(id, { provider: { id: provider.id }, model, ...(key === undefined ? {} : { key }) })
    }
    const both = { state, weight: overrides.weightOf(target) }
    known.set(target, both)
    return both
  }

  function newState(target: Target): TargetState {
    const state = createTargetState(stateId(target))
    state.blocked = overrides.stateOf(target)
    return state
  }

  function candidateOf(target: Target, { state, weight }: Known, share: Share): Candidate {
    state.health = target.provider.health?.()
    return { target, state, weight, share, limiter: limiterOf(target) }
  }

  /** Without a trace in the memory. */
  const looked = (target: Target, state = newState(target)): Known => ({ state, weight: overrides.weightOf(target) })

  const unobserved = (targets: readonly Target[]) =>
    targets.map((target) => candidateOf(target, looked(target), newShare()))

  function listed(targets: readonly Target[], settings: RoutingConfig): readonly Candidate[] {
    const shareOf = sharesOf(settings)
    const candidates = targets.map((target) => {
      const known = knownOf(target)
      return candidateOf(target, known, shareOf(known.state.id))
    })
    lists.set(targets, { settings, candidates })
    return candidates
  }

  return {
    candidatesOf(targets, settings, isObserved) {
      if (!isObserved) return unobserved(targets)
      const list = lists.get(targets)
      return list?.settings === settings && isOf(list.candidates, targets) ? list.candidates : listed(targets, settings)
    },
    states: () => states.values(),
    candidates: (targets, settings) =>
      targets.map((target) => {
        const id = stateId(target)
        return candidateOf(target, looked(target, { ...(states.get(id) ?? newState(target)) }), sharesOf(settings)(id))
      }),
    reset(id) {
      const found = [...states.values()].filter((state) => id === undefined || state.id === id)
      for (const state of found) forget(state)
      return found.length
    },
    recovered: (health) => endEjections(states.values(), health, clock.steady()),
    override(next) {
      overrides = next
      known = new WeakMap()
      lists = new WeakMap()
      for (const [id, target] of named) {
        const state = states.get(id)
        if (state) state.blocked = next.stateOf(target)
      }
    },
  }
}

/** Whether the candidates are still those of the targets; also refreshes what the probes of their providers show. */
function isOf(candidates: readonly Candidate[], targets: readonly Target[]): boolean {
  if (candidates.length !== targets.length) return false
  for (let at = 0; at < targets.length; at++) {
    const candidate = candidates[at]
    if (candidate === undefined || candidate.target !== targets[at]) return false
    candidate.state.health = candidate.target.provider.health?.()
  }
  return true
}

type Choosing = {
  settings: RoutingConfig
  /** The state ids of the targets that are not to be chosen. */
  tried: readonly string[]
}

/** How an order ended at its target. `isAborted`: by the gateway, so that it says nothing about the target. */
type OrderEnd = { error: unknown; isAborted: boolean }

export type OrderRouting = {
  /** One that is avoided only where no other is left; undefined: all were tried. */
  choose(targets: readonly Target[], choosing: Choosing): Target | undefined
  /** An order is sent to the target. Call the result once, when the target has answered. */
  begin(target: Target): (end?: OrderEnd) => void
}

type OrderRoutingParts = {
  candidatesOf: Memory['candidatesOf']
  clock: Clock
  log: Log
  random(): number
}

const createOrderRouting = ({ candidatesOf, clock, log, random }: OrderRoutingParts): OrderRouting => ({
  choose(targets, { settings, tried }) {
    const now = unixSeconds(clock)
    const candidates = candidatesOf(targets, settings, true)
    const choice: Choice = {
      strategy: settings.strategy ?? 'priority',
      now: clock.steady(),
      random,
      affinity: undefined,
      isTried: ({ state }) => tried.includes(state.id),
      costOf: (target) => expectedCost(target, undefined, now),
    }
    return (chooseAvailable(candidates, choice) ?? chooseAvoided(candidates, choice))?.target
  },
  begin(target) {
    const [candidate] = candidatesOf([target], NO_SETTINGS, true)
    if (!candidate) return () => {}
    const { state } = candidate
    const started = clock.steady()
    const isProbe = begin(state, started)
    return (end) => {
      answered(state, clock.steady())
      state.open--
      if (end && !end.isAborted) noteError(state, end.error, clock.steady())
      const outcome: Outcome = end
        ? outcomeOf(end.error, { isAborted: end.isAborted, wasSilent: state.last_ok_at < started })
        : { kind: 'ok', first_byte_ms: clock.steady() - started }
      logChange(log, state, note(state, outcome, { now: clock.steady(), started, isProbe }))
    }
  },
})

/** Nothing is chosen by them. */
const NO_SETTINGS: RoutingConfig = {}
