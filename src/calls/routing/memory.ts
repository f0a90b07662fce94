/** What the router remembers between calls: how each target behaved, and how many calls each provider has open. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { ProviderHealth } from '../../providers/health.ts'
import type { Target } from '../../providers/provider.ts'
import type { Candidate } from './choose.ts'
import { createLimiters } from './concurrency.ts'
import { NO_OVERRIDES, type OverridableTarget, type Overrides } from './overrides.ts'
import { createShares, newShare, type Share } from './shares.ts'
import { createTargetState, endEjections, forget, stateId, type TargetState } from './target-state.ts'

export type Memory = {
  /** The candidates for a call that is observed; those of any other are as if they had never been called. */
  candidatesOf(targets: readonly Target[], settings: RoutingConfig, isObserved: boolean): readonly Candidate[]
  /** What is remembered of the targets that were called. */
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

/** What is known of a target. */
type Known = { state: TargetState; weight: number }

/** The candidates of one list of targets, and the settings whose shares they have. */
type CandidateList = { settings: RoutingConfig; candidates: readonly Candidate[] }

export function createMemory(clock: Clock): Memory {
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
