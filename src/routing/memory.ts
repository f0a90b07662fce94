/** What the router remembers between calls: how each target behaved, and how many calls each provider has open. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { ProviderHealth } from '../providers/health.ts'
import type { Target } from '../providers/provider.ts'
import type { Candidate } from './choose.ts'
import { createLimiters } from './concurrency.ts'
import { createShares, newShare, type Share } from './shares.ts'
import { createTargetState, endEjections, forget, stateId, type TargetState } from './target-state.ts'

export type Memory = {
  /** The candidates for a call that is observed; those of any other are as if they had never been called. */
  candidatesOf(targets: readonly Target[], settings: RoutingConfig, isObserved: boolean): Candidate[]
  /** What is remembered of the targets that were called. */
  states(): Iterable<TargetState>
  /** The targets with what is remembered of them; those that were never called are not remembered by this. */
  candidates(targets: readonly Target[], settings: RoutingConfig): Candidate[]
  /** Forgets what is remembered of one target, by its id, or of all. Returns of how many; open calls still count. */
  reset(id?: string): number
  /** The probes of a provider show that it works again: its ejected targets are tested by their next call. */
  recovered(health: ProviderHealth): void
}

export function createMemory(clock: Clock): Memory {
  const states = new Map<string, TargetState>()
  /** The same by the object of the target: one look-up without making its id. */
  const known = new WeakMap<Target, TargetState>()
  const limiterOf = createLimiters(clock)
  const sharesOf = createShares()

  function stateOf(target: Target): TargetState {
    const found = known.get(target)
    if (found) return found
    const id = stateId(target)
    let state = states.get(id)
    if (!state) {
      state = createTargetState(id)
      states.set(id, state)
    }
    known.set(target, state)
    return state
  }

  function candidateOf(target: Target, state: TargetState, share: Share): Candidate {
    state.health = target.provider.health?.()
    return { target, state, share, is_tried: false, cost: undefined, limiter: limiterOf(target) }
  }

  return {
    candidatesOf(targets, settings, isObserved) {
      if (!isObserved)
        return targets.map((target) => candidateOf(target, createTargetState(stateId(target)), newShare()))
      const shareOf = sharesOf(settings)
      return targets.map((target) => {
        const state = stateOf(target)
        return candidateOf(target, state, shareOf(state.id))
      })
    },
    states: () => states.values(),
    candidates: (targets, settings) =>
      targets.map((target) => {
        const id = stateId(target)
        const state = { ...(states.get(id) ?? createTargetState(id)) }
        return candidateOf(target, state, sharesOf(settings)(id))
      }),
    reset(id) {
      const found = [...states.values()].filter((state) => id === undefined || state.id === id)
      for (const state of found) forget(state)
      return found.length
    },
    recovered: (health) => endEjections(states.values(), health, clock.steady()),
  }
}
