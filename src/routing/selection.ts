/** Which target a request is sent to first, and which one after a failure: bounded over keys, targets and repetitions. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import { type Clock, pause } from '../kit/clock.ts'
import type { GatewayError } from '../spec/error.ts'
import { type Candidate, chooseAvailable, chooseAvoided } from './choose.ts'
import type { Strategy } from './preferences.ts'
import { leaveProvider, type ProviderLoad, type RetryBudgets } from './retry-budget.ts'
import { availableAt, avoidedBecause, begin } from './target-state.ts'

/** What one request has tried of its targets. */
export type Selection = {
  candidates: readonly Candidate[]
  readonly settings: RoutingConfig
  /** Instead of that of the settings. */
  readonly strategy: Strategy | undefined
  /** Whether no other provider is tried after the first one. */
  readonly is_one_provider: boolean
  /** By the steady clock: no try begins after it. */
  readonly deadline: number
  /** Whether another model serves the request where no target of this one is available. */
  readonly has_fallback: boolean
  readonly affinity: number | undefined
  /** How many were chosen so far. */
  tries: number
  round: number
  current: Candidate | undefined
  /** Set when every target was avoided from the start: then they are tried all the same. */
  isLastResort: boolean
}

type Given = Pick<
  Selection,
  'candidates' | 'settings' | 'strategy' | 'is_one_provider' | 'deadline' | 'has_fallback' | 'affinity'
>

export const newSelection = (given: Given): Selection => ({
  candidates: given.candidates,
  settings: given.settings,
  strategy: given.strategy,
  is_one_provider: given.is_one_provider,
  deadline: given.deadline,
  has_fallback: given.has_fallback,
  affinity: given.affinity,
  tries: 0,
  round: 0,
  current: undefined,
  isLastResort: false,
})

/** A target that was chosen for a try, which counts from then on: calls that choose at the same time see it. */
export type Chosen = {
  readonly candidate: Candidate
  /** When, by the steady clock. */
  readonly at: number
  /** Whether it tests an ejected target. */
  readonly isProbe: boolean
  readonly isRetry: boolean
  readonly load: ProviderLoad
}

/** To be called when the try has ended. */
export function leaveTarget({ candidate, load, isRetry }: Chosen): void {
  candidate.state.open--
  leaveProvider(load, isRetry)
}

type Selector = {
  first(selection: Selection, now: number): Chosen | undefined
  /** Whether another target than the current one could be tried after it, as far as known now. */
  hasOther(selection: Selection, now: number): boolean
  /** Another one for a request whose current one is slow; undefined: none is available, or may get one more call. */
  another(selection: Selection): Chosen | undefined
  /** The next one, after a pause where all were tried; undefined: the failure is final. Rejects when `signal` is aborted. */
  after(selection: Selection, error: GatewayError, signal: AbortSignal): Promise<Chosen | undefined>
}

type SelectorParts = { budgets: RetryBudgets; clock: Clock; random(): number }

/** The pause before another round through the targets: full jitter, in a range that doubles with each round. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

export function createSelector({ budgets, clock, random }: SelectorParts): Selector {
  function choose({ candidates, affinity, settings, strategy: asked }: Selection, now: number): Candidate | undefined {
    const strategy = asked ?? settings.strategy ?? 'priority'
    return chooseAvailable(candidates, { strategy, now, random, affinity })
  }

  function take(selection: Selection, candidate: Candidate, now: number): Chosen {
    const isRetry = wasSent(selection, candidate)
    const load = budgets.enter(candidate.target.provider.id, isRetry)
    candidate.is_tried = true
    selection.current = candidate
    if (selection.is_one_provider && selection.tries === 0) {
      const { id } = candidate.target.provider
      selection.candidates = selection.candidates.filter((one) => one.target.provider.id === id)
    }
    selection.tries++
    return { candidate, at: now, isProbe: begin(candidate.state, now), isRetry, load }
  }

  /** Whether its provider may get the request once more. */
  function isPermitted(selection: Selection, candidate: Candidate, error?: GatewayError): boolean {
    if (!wasSent(selection, candidate)) return true
    const { current } = selection
    const { provider, key } = candidate.target
    const isOtherKey = provider.id === current?.target.provider.id && key !== current.target.key
    // Another key after a refused or limited one adds no load to speak of: the provider did no work for the first.
    return (isOtherKey && error !== undefined && isOfKey(error)) || budgets.allows(provider.id)
  }

  function choosePermitted(selection: Selection, error: GatewayError, now: number): Candidate | undefined {
    const { candidates, isLastResort, round } = selection
    for (let mayBeAvoided = isLastResort && round === 0; ; mayBeAvoided = false) {
      const candidate = choose(selection, now) ?? (mayBeAvoided ? chooseAvoided(candidates) : undefined)
      if (!candidate || isPermitted(selection, candidate, error)) return candidate
      candidate.is_tried = true // passed over, for one of another provider
    }
  }

  /** After all were tried once: from the start, after a pause. */
  async function anotherRound(
    selection: Selection,
    error: GatewayError,
    signal: AbortSignal,
  ): Promise<Chosen | undefined> {
    const { candidates, settings, deadline, current } = selection
    if (settings.tries === undefined || error.detail.retry === false) return undefined
    for (const candidate of candidates) candidate.is_tried = false
    const now = clock.steady()
    const candidate = choose(selection, now) ?? chooseAvoided(candidates)
    if (!candidate || avoidedBecause(candidate.state, now) === 'key refused') return undefined
    const range = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** selection.round++)
    const asked = candidate === current ? (error.detail.retry_after ?? 0) * 1000 : 0
    const pause_ms = Math.max(random() * range, availableAt(candidate.state) - now, asked)
    if (pause_ms > LONGEST_PAUSE_MS || now + pause_ms >= deadline) return undefined
    if (pause_ms > 0) await pause(clock, pause_ms, signal)
    // Chosen anew: in the pause, other calls may have shown that the target is broken, or test it now.
    const then = clock.steady()
    if (then >= deadline) return undefined
    const next = choosePermitted(selection, error, Math.max(then, now + pause_ms))
    return next && take(selection, next, then)
  }

  return {
    first(selection, now) {
      const candidate = choose(selection, now)
      if (candidate) return take(selection, candidate, now)
      if (selection.has_fallback) return undefined
      selection.isLastResort = true
      const avoided = chooseAvoided(selection.candidates)
      return avoided && take(selection, avoided, now)
    },
    hasOther({ candidates, current, settings, isLastResort }, now) {
      if (candidates.length === 1) return false
      for (const candidate of candidates) {
        if (candidate === current || (candidate.is_tried && settings.tries === undefined)) continue
        if (candidate.state.blocked !== undefined) continue
        if (isLastResort || !avoidedBecause(candidate.state, now)) return true
      }
      return false
    },
    another(selection) {
      const now = clock.steady()
      const passedOver: Candidate[] = []
      let candidate = choose(selection, now)
      while (candidate && !(isPermitted(selection, candidate) && (candidate.limiter?.isFree() ?? true))) {
        candidate.is_tried = true
        passedOver.push(candidate)
        candidate = choose(selection, now)
      }
      // They may still be tried after a failure.
      for (const one of passedOver) one.is_tried = false
      return candidate && take(selection, candidate, now)
    },
    async after(selection, error, signal) {
      const now = clock.steady()
      if (now >= selection.deadline) return undefined
      const next = choosePermitted(selection, error, now)
      return next ? take(selection, next, now) : await anotherRound(selection, error, signal)
    },
  }
}

/** Whether the provider of a candidate had the request already. */
function wasSent({ candidates, tries, round }: Selection, { target }: Candidate): boolean {
  if (tries === 0) return false
  return round > 0 || candidates.some((one) => one.is_tried && one.target.provider.id === target.provider.id)
}

const isOfKey = ({ code }: GatewayError): boolean => code === 'rate_limit_exceeded' || code === 'upstream_auth'
