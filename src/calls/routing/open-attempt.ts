/** Sends one attempt within its time limits, and notes for its target how it went. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Target } from '../../providers/provider.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import { type Attempt, LOST, type NextStep, type Routing, type Sender, type ServingAttempt } from './attempt.ts'
import { firstByteLimit, leaveProvider, type ProviderLoad, type RetryBudgets, timeLimit } from './bounds.ts'
import type { Candidate } from './choose.ts'
import type { Release } from './concurrency.ts'
import { isFaultOfTarget, outcomeOf, silentFor } from './outcome.ts'
import { answered, avoidedBecause, begin, note, noteAnswer, type Outcome, type TargetState } from './target-state.ts'

/** The means to end one attempt, by a time limit or because another was faster, while the call itself goes on. */
type Control = {
  readonly controller: AbortController
  /** Set while the first byte is awaited. */
  reject: ((reason: unknown) => void) | undefined
}

export type AttemptParts = { budgets: RetryBudgets; clock: Clock; log: Log }

/** The candidate counts as called from then on: calls that choose at the same time see it. */
type Choosing = { candidate: Candidate; now: number; isRetry: boolean }

/** One object for each attempt, without closures. Its router calls `enter`, `send`, then `answered` or `failed`, once. */
export class OpenAttempt implements Attempt, ServingAttempt {
  readonly target: Target
  started: number
  ms: number | undefined = undefined
  error: ErrorCode | undefined = undefined
  upstream_status: number | undefined = undefined
  is_hedge = false
  is_lost = false
  declare span_id?: string
  declare next?: NextStep
  readonly #candidate: Candidate
  readonly #routing: Routing
  readonly #parts: AttemptParts
  readonly #load: ProviderLoad
  readonly #isRetry: boolean
  /** Whether it tests an ejected target. */
  readonly #isProbe: boolean
  #isSent = false
  #control: Control | undefined
  #release: Release | undefined
  #stopFirstByte: (() => void) | undefined
  /** Stops the limit of its total time. */
  #stopTotal: (() => void) | undefined
  /** The error of its time to the first byte, once that is over. */
  #timeout: GatewayError | undefined

  constructor({ candidate, now, isRetry }: Choosing, routing: Routing, parts: AttemptParts) {
    this.target = candidate.target
    this.started = now
    this.#candidate = candidate
    this.#routing = routing
    this.#parts = parts
    this.#isRetry = isRetry
    this.#load = parts.budgets.enter(candidate.target.provider.id, isRetry)
    this.#isProbe = begin(candidate.state, now)
  }

  /** Makes it one that another attempt may end. */
  mayBeLost(is_hedge: boolean): void {
    this.is_hedge = is_hedge
    this.#control = controlUnder(this.#routing.signal)
  }

  /** A promise where its provider has as many open calls as it may; rejects where the call may not wait. */
  enter(): Promise<void> | undefined {
    const { limiter } = this.#candidate
    if (!limiter) return undefined
    const { token_id, bounds } = this.#routing
    const entered = limiter.enter({ token_id, signal: this.#signal, at_most_ms: bounds.deadline - this.started })
    if (entered instanceof Promise) return this.#waitFor(entered)
    this.#release = entered
    return undefined
  }

  async #waitFor(entered: Promise<Release>): Promise<void> {
    try {
      const release = await entered
      if (this.#signal.aborted) {
        release()
        throw this.#signal.reason
      }
      this.#release = release
      this.started = this.#parts.clock.steady()
    } catch (error) {
      this.#leave(undefined)
      this.#candidate.state.waiting--
      if (this.#isProbe) this.#candidate.state.is_probing = false
      throw error
    }
  }

  get #signal(): AbortSignal {
    return this.#control?.controller.signal ?? this.#routing.signal
  }

  /** `isLast`: no other target is left, so it may take as long as the time limits of its provider allow. */
  send<Answer>(isLast: boolean, sender: Sender<Answer>): Promise<Answer> {
    const { target } = this
    const routing = this.#routing
    const left = routing.bounds.deadline - this.started
    const ms = timeLimit(this.#candidate, left, isLast ? 'last' : routing)
    if (ms !== undefined || target.timeouts) this.#control ??= controlUnder(routing.signal)
    const control = this.#control
    this.#isSent = true
    if (control) this.#limitTotal(control)
    routing.attemptStarted(this)
    if (!control) return sender.sendTo(target, undefined, this)
    if (ms !== undefined) this.#limitFirstByte(control, ms)
    return this.#sendUnder(control, sender)
  }

  /** Rejects when the attempt is cancelled, whether or not its target heeds the signal. */
  #sendUnder<Answer>(control: Control, sender: Sender<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      control.reject = reject
      sender.sendTo(this.target, control.controller.signal, this).then(resolve, reject)
    })
  }

  #limitFirstByte(control: Control, ms: number): void {
    this.#stopFirstByte = this.#parts.clock.after(ms, () => {
      this.#timeout = silentFor(this.target, ms)
      cancel(control, this.#timeout)
    })
  }

  /** The stream included. */
  #limitTotal(control: Control): void {
    const { provider, timeouts } = this.target
    const seconds = timeouts?.total_seconds
    if (seconds === undefined) return
    const message = `The response of the upstream "${provider.id}" took longer than ${seconds} s.`
    this.#stopTotal = this.#parts.clock.after(seconds * 1000, () =>
      cancel(control, new GatewayError('upstream_timeout', message)),
    )
  }

  answered(): void {
    this.#stopFirstByte?.()
    const now = this.#parts.clock.steady()
    answered(this.#candidate.state, now)
    this.ms = now - this.started
    const change = noteAnswer(this.#candidate.state, this.ms, { now, started: this.started, isProbe: this.#isProbe })
    if (change !== undefined) logChange(this.#parts.log, this.#candidate.state, change)
  }

  /** No effect on one that was not sent. */
  failed(error: unknown): void {
    if (!this.#isSent) return
    this.#stopFirstByte?.()
    const { state } = this.#candidate
    const { aborted } = this.#routing.ending ?? this.#routing.signal
    this.#leave(isFaultOfTarget(error) && !aborted ? 'failed' : undefined)
    const now = this.#parts.clock.steady()
    answered(state, now)
    const ms = now - this.started
    this.ms = ms
    this.is_lost = error === LOST
    if (this.is_lost) this.#remember(aborted ? NEUTRAL : { kind: 'lost', after_ms: ms }, now)
    else {
      const isKnown = error instanceof GatewayError
      this.error = isKnown ? error.code : 'internal_error'
      this.upstream_status = isKnown ? error.detail.upstream_status : undefined
      // One that had less time than the target is given says nothing, like one that the client has ended.
      const hadLessTime = error === this.#timeout && ms < firstByteLimit(this.#candidate, this.#routing)
      const isAborted = aborted || hadLessTime
      const wasSilent = state.last_ok_at < this.started
      if (!isAborted) noteError(state, error, now)
      this.#remember(outcomeOf(error, { isAborted, wasSilent }), now)
    }
    this.#routing.attemptFailed(this, error)
  }

  /** Another attempt was faster. */
  lose(): void {
    if (this.#control) cancel(this.#control, LOST)
  }

  /** It has answered in the moment in which another one was faster. */
  loseAnswered(): void {
    this.is_lost = true
    this.end(LOST)
    this.#routing.attemptFailed(this, LOST)
  }

  end(error?: unknown): void {
    const { state } = this.#candidate
    this.#leave(this.ms)
    // A stream that breaks says the same of its target as one that never began.
    if (error === undefined) {
      state.consecutive_cuts = 0
      return
    }
    if (!isFaultOfTarget(error) || (this.#routing.ending ?? this.#routing.signal).aborted) return
    const now = this.#parts.clock.steady()
    noteError(state, error, now)
    this.#remember({ kind: 'failed', at_once: false, after_ok: true }, now, false)
  }

  #remember(outcome: Outcome, now: number, isProbe = this.#isProbe): void {
    const { state } = this.#candidate
    const change = note(state, outcome, { now, started: this.started, isProbe })
    if (change !== undefined) logChange(this.#parts.log, state, change)
  }

  #leave(seen: number | 'failed' | undefined): void {
    this.#stopTotal?.()
    this.#candidate.state.open--
    leaveProvider(this.#load, this.#isRetry)
    this.#release?.(seen)
  }
}

/** The only target of a model. */
export type OnlyTarget = { readonly candidate: Candidate; readonly parts: AttemptParts }

/** Undefined where it is avoided, its calls have to wait, or it is too late. */
export function openOnly({ candidate, parts }: OnlyTarget, routing: Routing): OpenAttempt | undefined {
  const { state, target, limiter } = candidate
  const now = parts.clock.steady()
  if (limiter || routing.bounds.deadline <= now) return undefined
  state.health = target.provider.health?.()
  if (avoidedBecause(state, now) !== undefined) return undefined
  return new OpenAttempt({ candidate, now, isRetry: false }, routing, parts)
}

/** The only attempt of a call, until its answer is read or its stream starts. */
export async function sendAttempt<Answer>(
  attempt: OpenAttempt,
  call: Sender<Answer> & Pick<Routing, 'serving'> & { read(received: Answer): Answer | Promise<Answer> },
): Promise<Answer> {
  try {
    const answer = await call.read(await attempt.send(true, call))
    attempt.answered()
    call.serving(attempt)
    return answer
  } catch (thrown) {
    attempt.failed(thrown)
    throw thrown
  }
}

const NEUTRAL: Outcome = { kind: 'neutral' }

/** `signal`: of the call. It is followed for the life of the response, and is collected with the request. */
function controlUnder(signal: AbortSignal): Control {
  const controller = new AbortController()
  if (signal.aborted) controller.abort(signal.reason)
  else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
  return { controller, reject: undefined }
}

/** Whether or not its target heeds the signal. */
function cancel(control: Control, reason: GatewayError): void {
  control.reject?.(reason)
  control.controller.abort(reason)
}

export function logChange(log: Log, { id: target }: TargetState, change: ReturnType<typeof note>): void {
  if (change === 'ejected' || change === 'key refused') log.warn(`target ${change}`, { target })
  else if (change === 'returned') log.info('target returned', { target })
}

/** For the operator, who looks for why a target is avoided. */
export function noteError(state: TargetState, error: unknown, at: number): void {
  if (isFaultOfTarget(error)) state.last_error = { at, error }
}
