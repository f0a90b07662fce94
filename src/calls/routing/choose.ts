/** Chooses one target among those that a call may still try. Pure: state in, target out. */
import { hash32 } from '../../kit/secret.ts'
import type { Target } from '../../providers/provider.ts'
import { latencyCost } from './bounds.ts'
import type { Limiter } from './concurrency.ts'
import type { Strategy } from './preferences.ts'
import { byWeight, type Share } from './shares.ts'
import { availableAt, avoidedBecause, type TargetState } from './target-state.ts'

/** Of all calls of a model: what one call has tried of it is noted in its selection. */
export type Candidate = {
  target: Target
  state: TargetState
  /** Its share of the calls, with what the operator has set at run time. */
  weight: number
  /** Of the calls of the model. */
  share: Share
  /** Of its provider; undefined: no limit. */
  limiter: Pick<Limiter, 'isFree' | 'isQueueFull' | 'enter'> | undefined
}

export type Choice = {
  readonly strategy: Strategy
  readonly now: number
  /** A number from 0 up to, not including, 1. */
  random(): number
  /** Calls with the same number go to the same target; undefined: by the strategy. */
  readonly affinity: number | undefined
  isTried(candidate: Candidate): boolean
  /** What the call costs at a target, for the strategy `cheapest`; undefined: not known. */
  costOf(target: Target): number | undefined
}

/** The candidate to try next among those that are neither tried nor avoided; undefined: there is none. */
export function chooseAvailable(candidates: readonly Candidate[], choice: Choice): Candidate | undefined {
  const best = firstPriority(candidates, choice)
  return Array.isArray(best) ? byStrategy(best, choice) : best
}

/**
 * The one that is avoided for the shortest time, and those whose probes fail after all others, for a call that would otherwise fail without having been sent: a breaker
 * that refuses everybody is worse than the fault it protects from.
 */
export function chooseAvoided(
  candidates: readonly Candidate[],
  choice: Pick<Choice, 'isTried'>,
): Candidate | undefined {
  let best: Candidate | undefined
  for (const candidate of candidates) {
    if (choice.isTried(candidate) || candidate.state.blocked !== undefined) continue
    if (!best || isSooner(candidate.state, best.state)) best = candidate
  }
  return best
}

function isSooner(one: TargetState, other: TargetState): boolean {
  const [is_down = false, was_down = false] = [one.health?.is_unhealthy, other.health?.is_unhealthy]
  return is_down === was_down ? availableAt(one) < availableAt(other) : was_down
}

/** The available candidates of the lowest priority number; those of weight 0 only where there is no other at all. */
function firstPriority(candidates: readonly Candidate[], choice: Choice): Candidate | Candidate[] | undefined {
  let best: Candidate | undefined
  let equal: Candidate[] | undefined
  let lowest = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    if (choice.isTried(candidate) || avoidedBecause(candidate.state, choice.now) !== undefined) continue
    const priority = candidate.weight === 0 ? Number.MAX_VALUE : priorityOf(candidate)
    if (priority > lowest) continue
    if (best === undefined || priority < lowest) {
      best = candidate
      equal = undefined
    } else if (equal) equal.push(candidate)
    else equal = [best, candidate]
    lowest = priority
  }
  return equal ?? best
}

/** Where the call would have to wait, any other target comes first. */
const priorityOf = ({ target: { priority = 0 }, limiter }: Candidate): number =>
  limiter === undefined || limiter.isFree() ? priority : priority + MOST_PRIORITY

/** Above every priority that can be configured. */
const MOST_PRIORITY = 1_000_000

function byStrategy(candidates: Candidate[], choice: Choice): Candidate | undefined {
  const { strategy, now, affinity } = choice
  const random = () => choice.random()
  if (affinity !== undefined) return byAffinity(candidates, affinity)
  switch (strategy) {
    case 'least_latency':
      return ofTwo(candidates, random, (state) => latencyCost(state, now))
    case 'least_busy':
      return leastOf(candidates, random, ({ state, weight }) => (state.open + 1) / (weight || 1))
    case 'cheapest':
      return byWeight(cheapestOf(candidates, choice))
    default:
      return byWeight(candidates)
  }
}

/** All of the lowest cost; those of unknown cost only where no cost is known. */
function cheapestOf(candidates: Candidate[], choice: Choice): Candidate[] {
  const costs = candidates.map(({ target }) => choice.costOf(target) ?? Number.POSITIVE_INFINITY)
  const lowest = Math.min(...costs)
  return candidates.filter((_, at) => costs[at] === lowest)
}

/**
 * Weighted rendezvous hashing: when a target comes or goes, only its own share of the calls moves.
 * https://www.snia.org/sites/default/files/SDC15_presentations/dist_sys/Jason_Resch_New_Consistent_Hashings_Rev.pdf
 */
function byAffinity(candidates: Candidate[], affinity: number): Candidate | undefined {
  return leastOf(
    candidates,
    () => 1,
    ({ state, weight }) => -Math.log((hash32(state.id, affinity) + 1) / (MAX_HASH + 2)) / (weight || 1),
  )
}

const MAX_HASH = 2 ** 32 - 1

/** The better of two random candidates: nearly as good as the best of all, and not all callers choose the same. */
function ofTwo(candidates: Candidate[], random: () => number, costOf: (state: TargetState) => number) {
  const first = Math.floor(random() * candidates.length)
  const second = (first + 1 + Math.floor(random() * (candidates.length - 1))) % candidates.length
  const [a, b] = [candidates[first], candidates[second]]
  return a && b && costOf(b.state) < costOf(a.state) ? b : a
}

/** The candidate of the lowest cost; of several equal ones a random one. */
function leastOf(candidates: Candidate[], random: () => number, costOf: (candidate: Candidate) => number) {
  let best: Candidate | undefined
  let lowest = Number.POSITIVE_INFINITY
  let equal = 1
  for (const candidate of candidates) {
    const cost = costOf(candidate)
    if (cost > lowest) continue
    equal = cost < lowest ? 1 : equal + 1
    if (cost < lowest || random() * equal < 1) best = candidate
    lowest = cost
  }
  return best
}
