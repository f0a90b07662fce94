/** Which target a request is sent to first, and which one after a failure: bounded over keys, targets and repetitions. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { GatewayError } from '../spec/error.ts'
import { type Candidate, chooseAvailable, chooseAvoided } from './choose.ts'
import type { RetryBudgets } from './retry-budget.ts'
import { availableAt, avoidedBecause } from './target-state.ts'

type SelectionParts = {
  candidates: readonly Candidate[]
  settings: RoutingConfig
  /** Unix milliseconds: no try begins after it. */
  deadline: number
  budgets: Pick<RetryBudgets, 'allows'>
  clock: Clock
  random(): number
  affinity: number | undefined
}

export type Selection = {
  first(): Candidate | undefined
  /** Whether a failure of the current one would be followed by another, as far as known now. */
  hasNext(): boolean
  /** Whether the provider of the current one got this request before. */
  readonly isRetry: boolean
  /** Another one for a call whose current one is slow; undefined: none is available. */
  another(): Candidate | undefined
  /** The next one, after a pause; undefined: the failure is final. */
  after(failed: Candidate, error: GatewayError): { candidate: Candidate; pause_ms: number } | undefined
}

/** The pause before another round through the targets: full jitter, in a range that doubles with each round. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

export function createSelection(parts: SelectionParts): Selection {
  const { candidates, settings, deadline, budgets, clock, random, affinity } = parts
  const strategy = settings.strategy ?? 'priority'
  const repeats = settings.tries !== undefined
  /** Set when every target was avoided from the start: then they are tried all the same. */
  let isLastResort = false
  let isRetry = false
  let round = 0

  const choose = () => chooseAvailable(candidates, { strategy, now: clock.steady(), random, affinity })

  function take(candidate: Candidate): Candidate {
    isRetry = candidates.some(({ target, is_tried }) => is_tried && target.provider.id === candidate.target.provider.id)
    candidate.is_tried = true
    return candidate
  }

  /** After all were tried once: from the start, after a pause. */
  function anotherRound(error: GatewayError): { candidate: Candidate; pause_ms: number } | undefined {
    if (!repeats || error.detail.retry === false) return undefined
    for (const candidate of candidates) candidate.is_tried = false
    const candidate = choose() ?? chooseAvoided(candidates)
    const now = clock.steady()
    if (!candidate || avoidedBecause(candidate.state, now) === 'key refused') return undefined
    const range = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** round++)
    const asked = Math.max(availableAt(candidate.state) - now, (error.detail.retry_after ?? 0) * 1000)
    const pause_ms = Math.max(random() * range, asked)
    return pause_ms > LONGEST_PAUSE_MS ? undefined : { candidate, pause_ms }
  }

  return {
    first() {
      const candidate = choose()
      if (candidate) return take(candidate)
      isLastResort = true
      const avoided = chooseAvoided(candidates)
      return avoided && take(avoided)
    },
    hasNext() {
      if (repeats) return true
      const now = clock.steady()
      return candidates.some(({ is_tried, state }) => !is_tried && (isLastResort || !avoidedBecause(state, now)))
    },
    get isRetry() {
      return isRetry
    },
    another() {
      const candidate = choose()
      return candidate && take(candidate)
    },
    after(failed, error) {
      const other = choose() ?? (isLastResort ? chooseAvoided(candidates) : undefined)
      const next = other ? { candidate: other, pause_ms: 0 } : anotherRound(error)
      if (!next || clock.steady() + next.pause_ms >= deadline) return undefined
      const { provider, key } = next.candidate.target
      const isOtherKey = provider.id === failed.target.provider.id && key !== failed.target.key
      const wasTried = round > 0 || candidates.some((one) => one.is_tried && one.target.provider.id === provider.id)
      // Another key after a refused or limited one adds no load to speak of: the provider did no work for the first.
      if (wasTried && !(isOtherKey && isOfKey(error)) && !budgets.allows(provider.id)) return undefined
      take(next.candidate)
      if (round > 0) isRetry = true
      return next
    },
  }
}

const isOfKey = ({ code }: GatewayError): boolean => code === 'rate_limit_exceeded' || code === 'upstream_auth'
