/** One upstream call: waits where its provider has as many open calls as it may, keeps its time limits, and notes how it went. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { type Attempt, newAttempt, noteFailure } from './attempt.ts'
import { type Bounds, firstByteLimit, timeLimit } from './bounds.ts'
import type { Release } from './concurrency.ts'
import { silentFor } from './errors.ts'
import { type AttemptPolicy, isFaultOfTarget, outcomeOf } from './outcome.ts'
import type { Strategy } from './preferences.ts'
import { type Chosen, leaveTarget } from './selection.ts'
import { answered, note, type Outcome, type TargetState } from './target-state.ts'
import { cancelTry, createTryControl, limitTotal, type TryControl, underControl } from './time-limit.ts'

/** Notified of each attempt, in order. */
export type AttemptObserver = {
  attemptStarted(attempt: Attempt): void
  attemptFailed(attempt: Attempt, error: unknown): void
  /** The attempt that serves the call, which must be ended when its response has ended. */
  serving(attempt: Attempt, serving: ServingAttempt): void
}

/** One call, at the targets of one model. */
export type Routing<Answer> = {
  settings: RoutingConfig
  /** Instead of that of the settings; absent: that one. */
  strategy?: Strategy | undefined
  /** Whether no other provider is tried after the first one. */
  is_one_provider?: boolean
  bounds: Bounds
  /** Whose turn it is, where calls of several callers wait. */
  token_id: string
  signal: AbortSignal
  is_stream: boolean
  policy: AttemptPolicy
  /** False: the calls say nothing about how the targets work. */
  is_observed: boolean
  /** Whether two targets may be asked at once. */
  is_hedged: boolean
  /** Whether another model serves the call where no target is available: then those that are avoided are not tried. */
  has_fallback: boolean
  /** What the call costs at a target, for the strategy `cheapest`; undefined: not known. */
  costOf?: ((target: Target) => number | undefined) | undefined
  /** The number that calls of one conversation share; called only where it is needed. */
  affinity?: ((sticky: NonNullable<RoutingConfig['sticky']>) => number | undefined) | undefined
  /** Resolves with the first part of a stream, or with a whole response. */
  execute(target: Target, signal: AbortSignal, attempt: Attempt): Promise<Answer>
  observer: AttemptObserver
}

/** The attempt that serves a call: to be ended when its response has ended, with an error where it broke. */
export type ServingAttempt = { end(error?: unknown): void }

export type Sending = {
  chosen: Chosen
  /** Whether no other target is left: then it may take as long as the time limits of its provider allow. */
  isLast: boolean
  /** Given where the try may be ended by another one. */
  control?: TryControl
  is_hedge?: boolean
}

type TryParts = { clock: Clock; log: Log }

/**
 * A try that has begun: one object for each, without closures. `response` is awaited by the router, which then calls
 * `answered` or `failed`, once.
 */
export class OpenTry<Answer> implements ServingAttempt {
  readonly attempt: Attempt
  readonly response: Promise<Answer>
  readonly #chosen: Chosen
  readonly #routing: Routing<Answer>
  readonly #parts: TryParts
  readonly #release: Release | undefined
  #stopFirstByte: (() => void) | undefined
  /** Stops the limit of its total time. */
  #stopTotal: (() => void) | undefined
  /** The error of its time to the first byte, once that is over. */
  #timeout: GatewayError | undefined

  constructor({ chosen, isLast, control: given, is_hedge = false }: Sending, routing: Routing<Answer>, own: Entered) {
    const { parts, release, started } = own
    const { candidate } = chosen
    const { target } = candidate
    const { signal, observer, bounds } = routing
    this.#chosen = chosen
    this.#routing = routing
    this.#parts = parts
    this.#release = release
    this.attempt = newAttempt(target, started, is_hedge)
    const ms = timeLimit({ tried: candidate, isLast, routing, left: bounds.deadline - started })
    const control = given ?? (ms === undefined && !target.timeouts ? undefined : createTryControl(signal))
    if (control) this.#stopTotal = limitTotal(control, target, parts.clock)
    observer.attemptStarted(this.attempt)
    if (control && ms !== undefined) this.#limitFirstByte(control, ms)
    this.response = this.#execute(control)
  }

  #limitFirstByte(control: TryControl, ms: number): void {
    this.#stopFirstByte = this.#parts.clock.after(ms, () => {
      this.#timeout = silentFor(this.attempt.target, ms)
      cancelTry(control, this.#timeout)
    })
  }

  #execute(control: TryControl | undefined): Promise<Answer> {
    const { attempt } = this
    const { target } = attempt
    try {
      return control
        ? underControl(control, (own) => this.#routing.execute(target, own, attempt))
        : this.#routing.execute(target, this.#routing.signal, attempt)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  answered(): void {
    this.#stopFirstByte?.()
    const { attempt } = this
    const now = this.#parts.clock.steady()
    answered(this.#chosen.candidate.state, now)
    attempt.ms = now - attempt.started
    this.#remember({ kind: 'ok', first_byte_ms: attempt.ms }, now)
  }

  failed(error: unknown): void {
    this.#stopFirstByte?.()
    const { attempt } = this
    const { candidate } = this.#chosen
    const { signal, observer } = this.#routing
    this.#leave(isFaultOfTarget(error) && !signal.aborted ? 'failed' : undefined)
    const now = this.#parts.clock.steady()
    answered(candidate.state, now)
    const ms = now - attempt.started
    attempt.ms = ms
    attempt.is_lost = error === LOST
    if (attempt.is_lost) this.#remember(signal.aborted ? NEUTRAL : { kind: 'lost', after_ms: ms }, now)
    else {
      noteFailure(attempt, error)
      // One that had less time than the target is given says nothing, like one that the client has ended.
      const hadLessTime = error === this.#timeout && ms < firstByteLimit(candidate, this.#routing)
      const isAborted = signal.aborted || hadLessTime
      const wasSilent = candidate.state.last_ok_at < attempt.started
      if (!isAborted) noteError(candidate.state, error, now)
      this.#remember(outcomeOf(error, { isAborted, wasSilent }), now)
    }
    observer.attemptFailed(attempt, error)
  }

  end(error?: unknown): void {
    const { state } = this.#chosen.candidate
    this.#leave(this.attempt.ms)
    // A stream that breaks says the same of its target as one that never began.
    if (error === undefined) state.consecutive_cuts = 0
    if (!isFaultOfTarget(error) || this.#routing.signal.aborted) return
    const now = this.#parts.clock.steady()
    noteError(state, error, now)
    this.#remember({ kind: 'failed', at_once: false, after_ok: true }, now, false)
  }

  #remember(outcome: Outcome, now: number, isProbe = this.#chosen.isProbe): void {
    const { state } = this.#chosen.candidate
    const change = note(state, outcome, { now, started: this.attempt.started, isProbe })
    if (change !== undefined) logChange(this.#parts.log, state, change)
  }

  #leave(seen: number | 'failed' | undefined): void {
    this.#stopTotal?.()
    leaveTarget(this.#chosen)
    this.#release?.(seen)
  }
}

type Entered = { parts: TryParts; release: Release | undefined; started: number }

/** Begins a try. A promise where its provider has as many open calls as it may; rejects where the call may not wait. */
export function beginTry<Answer>(
  sending: Sending,
  routing: Routing<Answer>,
  parts: TryParts,
): OpenTry<Answer> | Promise<OpenTry<Answer>> {
  const { chosen, control } = sending
  const { limiter } = chosen.candidate
  if (!limiter) return new OpenTry(sending, routing, { parts, release: undefined, started: chosen.at })
  const signal = control?.controller.signal ?? routing.signal
  const { token_id, bounds } = routing
  const entered = limiter.enter({ token_id, signal, at_most_ms: bounds.deadline - chosen.at })
  if (!(entered instanceof Promise))
    return new OpenTry(sending, routing, { parts, release: entered, started: chosen.at })
  return waitFor(entered, chosen, signal).then(
    (release) => new OpenTry(sending, routing, { parts, release, started: parts.clock.steady() }),
  )
}

export function logChange(log: Log, { id: target }: TargetState, change: ReturnType<typeof note>): void {
  if (change === 'ejected' || change === 'key refused') log.warn(`target ${change}`, { target })
  else if (change === 'returned') log.info('target returned', { target })
}

/** For the operator, who looks for why a target is avoided. */
export function noteError(state: TargetState, error: unknown, at: number): void {
  if (isFaultOfTarget(error)) state.last_error = { at, error }
}

const NEUTRAL: Outcome = { kind: 'neutral' }

async function waitFor(entered: Promise<Release>, chosen: Chosen, signal: AbortSignal): Promise<Release> {
  try {
    const release = await entered
    if (!signal.aborted) return release
    release()
    throw signal.reason
  } catch (error) {
    // The call was not sent.
    leaveTarget(chosen)
    chosen.candidate.state.waiting--
    if (chosen.isProbe) chosen.candidate.state.is_probing = false
    throw error
  }
}

/** The reason for which a try ends that another one has beaten. */
export const LOST = new GatewayError('client_closed_request', 'Another target answered first.')
