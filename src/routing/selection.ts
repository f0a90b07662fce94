/** Which target a request is sent to first, and which one after a failure: bounded over keys, targets and repetitions. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import { type Clock, pause } from '../kit/clock.ts'
import type { GatewayError } from '../spec/error.ts'
import { type Candidate, chooseAvailable, chooseAvoided } from './choose.ts'
import type { Strategy } from './preferences.ts'
import type { RetryBudgets } from './retry-budget.ts'
import { availableAt, avoidedBecause, begin } from './target-state.ts'

type SelectionParts = {
  candidates: readonly Candidate[]
  settings: RoutingConfig
  /** Instead of that of the settings. */
  strategy?: Strategy | undefined
  /** Whether no other provider is tried after the first one. */
  is_one_provider?: boolean | undefined
  /** By the steady clock: no try begins after it. */
  deadline: number
  /** Whether another model serves the request where no target of this one is available. */
  has_fallback: boolean
  budgets: RetryBudgets
  clock: Clock
  random(): number
  affinity: number | undefined
}

/** A target that was chosen for a try, which counts from then on: calls that choose at the same time see it. */
export type Chosen = {
  readonly candidate: Candidate
  /** Whether it tests an ejected target. */
  readonly isProbe: boolean
  /** To be called when the try has ended. */
  leave(): void
}

export type Selection = {
  first(): Chosen | undefined
  /** How many were chosen so far. */
  readonly tries: number
  /** Whether another target than the current one could be tried after it, as far as known now. */
  hasOther(): boolean
  /** Another one for a call whose current one is slow; undefined: none is available. */
  another(): Chosen | undefined
  /** The next one, after a pause where all were tried; undefined: the failure is final. Rejects when `signal` is aborted. */
  after(error: GatewayError, signal: AbortSignal): Promise<Chosen | undefined>
}

/** The pause before another round through the targets: full jitter, in a range that doubles with each round. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

export function createSelection(parts: SelectionParts): Selection {
  const { settings, deadline, has_fallback, budgets, clock, random, affinity } = parts
  const strategy = parts.strategy ?? settings.strategy ?? 'priority'
  const repeats = settings.tries !== undefined
  let { candidates } = parts
  /** Set when every target was avoided from the start: then they are tried all the same. */
  let isLastResort = false
  let round = 0
  let tries = 0
  let current: Candidate | undefined

  const choose = (now = clock.steady()) => chooseAvailable(candidates, { strategy, now, random, affinity })
  const wasSent = ({ target }: Candidate) =>
    round > 0 || candidates.some((one) => one.is_tried && one.target.provider.id === target.provider.id)

  function take(candidate: Candidate): Chosen {
    const { state, target } = candidate
    const leaveProvider = budgets.enter(target.provider.id, tries > 0 && wasSent(candidate))
    candidate.is_tried = true
    current = candidate
    if (parts.is_one_provider && tries === 0) {
      candidates = candidates.filter((one) => one.target.provider.id === target.provider.id)
    }
    tries++
    const leave = () => {
      state.open--
      leaveProvider()
    }
    return { candidate, isProbe: begin(state, clock.steady()), leave }
  }

  /** Whether its provider may get the request once more. */
  function isPermitted(candidate: Candidate, error: GatewayError): boolean {
    if (!wasSent(candidate)) return true
    const { provider, key } = candidate.target
    const isOtherKey = provider.id === current?.target.provider.id && key !== current.target.key
    // Another key after a refused or limited one adds no load to speak of: the provider did no work for the first.
    return (isOtherKey && isOfKey(error)) || budgets.allows(provider.id)
  }

  function choosePermitted(error: GatewayError, now?: number): Candidate | undefined {
    for (let mayBeAvoided = isLastResort && round === 0; ; mayBeAvoided = false) {
      const candidate = choose(now) ?? (mayBeAvoided ? chooseAvoided(candidates) : undefined)
      if (!candidate || isPermitted(candidate, error)) return candidate
      candidate.is_tried = true // passed over, for one of another provider
    }
  }

  /** After all were tried once: from the start, after a pause. */
  async function anotherRound(error: GatewayError, signal: AbortSignal): Promise<Chosen | undefined> {
    if (!repeats || error.detail.retry === false) return undefined
    for (const candidate of candidates) candidate.is_tried = false
    const now = clock.steady()
    const candidate = choose(now) ?? chooseAvoided(candidates)
    if (!candidate || avoidedBecause(candidate.state, now) === 'key refused') return undefined
    const range = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** round++)
    const asked = candidate === current ? (error.detail.retry_after ?? 0) * 1000 : 0
    const pause_ms = Math.max(random() * range, availableAt(candidate.state) - now, asked)
    if (pause_ms > LONGEST_PAUSE_MS || now + pause_ms >= deadline) return undefined
    if (pause_ms > 0) await pause(clock, pause_ms, signal)
    // Chosen anew: in the pause, other calls may have shown that the target is broken, or test it now.
    if (clock.steady() >= deadline) return undefined
    const next = choosePermitted(error, Math.max(clock.steady(), now + pause_ms))
    return next && take(next)
  }

  return {
    first() {
      const candidate = choose()
      if (candidate) return take(candidate)
      if (has_fallback) return undefined
      isLastResort = true
      const avoided = chooseAvoided(candidates)
      return avoided && take(avoided)
    },
    get tries() {
      return tries
    },
    hasOther() {
      if (candidates.length === 1) return false
      const now = clock.steady()
      for (const candidate of candidates) {
        if (candidate === current || (candidate.is_tried && !repeats)) continue
        if (isLastResort || !avoidedBecause(candidate.state, now)) return true
      }
      return false
    },
    another() {
      const candidate = choose()
      return candidate && take(candidate)
    },
    async after(error, signal) {
      if (clock.steady() >= deadline) return undefined
      const next = choosePermitted(error)
      return next ? take(next) : await anotherRound(error, signal)
    },
  }
}

const isOfKey = ({ code }: GatewayError): boolean => code === 'rate_limit_exceeded' || code === 'upstream_auth'
