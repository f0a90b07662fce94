/** Which target a request is sent to first, and which one after a failure: bounded over keys, targets and repetitions. */
import { pause } from '../../kit/clock.ts'
import type { Target } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { Routing } from './attempt.ts'
import { type Candidate, type Choice, chooseAvailable, chooseAvoided } from './choose.ts'
import { type AttemptParts, OpenAttempt } from './open-attempt.ts'
import type { Strategy } from './preferences.ts'
import { availableAt, avoidedBecause } from './target-state.ts'

/** The pause before another round through the targets: full jitter, in a range that doubles with each round. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

type SelectionParts = AttemptParts & { random(): number }

/** What one request has tried of its targets. One object for each request, without closures. */
export class Selection implements Choice {
  candidates: readonly Candidate[]
  readonly affinity: number | undefined
  /** Of the choice that is being made, by the steady clock. */
  now = 0
  tries = 0
  current: Candidate | undefined
  readonly #routing: Routing
  readonly #parts: SelectionParts
  #round = 0
  /** Those that are not to be chosen in this round; the first one stands by itself, since most requests try no other. */
  #firstTried: Candidate | undefined
  #tried: Candidate[] | undefined
  /** Set when every target was avoided from the start: then they are tried all the same. */
  #isLastResort = false

  constructor(candidates: readonly Candidate[], routing: Routing, parts: SelectionParts) {
    const { sticky } = routing.settings
    this.candidates = candidates
    this.affinity = candidates.length > 1 && sticky ? routing.affinity?.(sticky) : undefined
    this.#routing = routing
    this.#parts = parts
  }

  get strategy(): Strategy {
    return this.#routing.strategy ?? this.#routing.settings.strategy ?? 'priority'
  }

  random(): number {
    return this.#parts.random()
  }

  isTried(candidate: Candidate): boolean {
    return candidate === this.#firstTried || (this.#tried?.includes(candidate) ?? false)
  }

  costOf(target: Target): number | undefined {
    return this.#routing.costOf?.(target)
  }

  first(now: number): OpenAttempt | undefined {
    const candidate = this.#choose(now)
    if (candidate) return this.#take(candidate, now)
    if (this.#routing.has_fallback) return undefined
    this.#isLastResort = true
    const avoided = chooseAvoided(this.candidates, this)
    return avoided && this.#take(avoided, now)
  }

  /** Whether another target than the current one could be tried after it, as far as known when that was chosen. */
  hasOther(): boolean {
    const { candidates } = this
    if (candidates.length === 1) return false
    const mayRepeat = this.#routing.settings.tries !== undefined
    for (const candidate of candidates) {
      if (candidate === this.current || (!mayRepeat && this.isTried(candidate))) continue
      if (candidate.state.blocked !== undefined) continue
      if (this.#isLastResort || !avoidedBecause(candidate.state, this.now)) return true
    }
    return false
  }

  /** Another one for a request whose current one is slow; undefined: none is available, or may get one more call. */
  another(): OpenAttempt | undefined {
    const now = this.#parts.clock.steady()
    const before = this.#tried?.length ?? 0
    let candidate = this.#choose(now)
    while (candidate && !(this.#isPermitted(candidate) && (candidate.limiter?.isFree() ?? true))) {
      this.#note(candidate)
      candidate = this.#choose(now)
    }
    // Those that were passed over may still be tried after a failure.
    this.#tried?.splice(before)
    return candidate && this.#take(candidate, now)
  }

  /** The next one, after a pause where all were tried; undefined: the failure is final. Rejects when the request is aborted. */
  async after(error: GatewayError): Promise<OpenAttempt | undefined> {
    const now = this.#parts.clock.steady()
    if (now >= this.#routing.bounds.deadline) return undefined
    const next = this.#choosePermitted(error, now)
    return next ? this.#take(next, now) : await this.#anotherRound(error)
  }

  #choose(now: number): Candidate | undefined {
    this.now = now
    return chooseAvailable(this.candidates, this)
  }

  #take(candidate: Candidate, now: number): OpenAttempt {
    const isRetry = this.#wasSent(candidate)
    this.#note(candidate)
    this.current = candidate
    this.now = now
    if (this.#routing.is_one_provider && this.tries === 0) this.#keepProvider(candidate.target.provider.id)
    this.tries++
    return new OpenAttempt({ candidate, now, isRetry }, this.#routing, this.#parts)
  }

  #keepProvider(id: string): void {
    this.candidates = this.candidates.filter((one) => one.target.provider.id === id)
  }

  #note(candidate: Candidate): void {
    if (this.#firstTried === undefined) this.#firstTried = candidate
    else {
      this.#tried ??= []
      this.#tried.push(candidate)
    }
  }

  /** Whether the provider of a candidate had the request already. */
  #wasSent({ target }: Candidate): boolean {
    if (this.tries === 0) return false
    const { id } = target.provider
    return this.#round > 0 || this.candidates.some((one) => one.target.provider.id === id && this.isTried(one))
  }

  /** Whether its provider may get the request once more. */
  #isPermitted(candidate: Candidate, error?: GatewayError): boolean {
    if (!this.#wasSent(candidate)) return true
    const current = this.current?.target
    const { provider, key } = candidate.target
    const isOtherKey = provider.id === current?.provider.id && key !== current.key
    // Another key after a refused or limited one adds no load to speak of: the provider did no work for the first.
    return (isOtherKey && error !== undefined && isOfKey(error)) || this.#parts.budgets.allows(provider.id)
  }

  #choosePermitted(error: GatewayError, now: number): Candidate | undefined {
    for (let mayBeAvoided = this.#isLastResort && this.#round === 0; ; mayBeAvoided = false) {
      const candidate = this.#choose(now) ?? (mayBeAvoided ? chooseAvoided(this.candidates, this) : undefined)
      if (!candidate || this.#isPermitted(candidate, error)) return candidate
      this.#note(candidate) // passed over, for one of another provider
    }
  }

  /** After all were tried once: from the start, after a pause. */
  async #anotherRound(error: GatewayError): Promise<OpenAttempt | undefined> {
    const { clock } = this.#parts
    const { settings, bounds, signal } = this.#routing
    if (settings.tries === undefined || error.detail.retry === false) return undefined
    this.#firstTried = this.#tried = undefined
    const now = clock.steady()
    const candidate = this.#choose(now) ?? chooseAvoided(this.candidates, this)
    if (!candidate || avoidedBecause(candidate.state, now) === 'key refused') return undefined
    const range = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#round++)
    const asked = candidate === this.current ? (error.detail.retry_after ?? 0) * 1000 : 0
    const pause_ms = Math.max(this.random() * range, availableAt(candidate.state) - now, asked)
    if (pause_ms > LONGEST_PAUSE_MS || now + pause_ms >= bounds.deadline) return undefined
    if (pause_ms > 0) await pause(clock, pause_ms, signal)
    // Chosen anew: in the pause, other calls may have shown that the target is broken, or test it now.
    const then = clock.steady()
    if (then >= bounds.deadline) return undefined
    const next = this.#choosePermitted(error, Math.max(then, now + pause_ms))
    return next && this.#take(next, then)
  }
}

const isOfKey = ({ code }: GatewayError): boolean => code === 'rate_limit_exceeded' || code === 'upstream_auth'
