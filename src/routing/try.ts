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
  /** The attempt that serves the call. `end` must be called when its response has ended: with an error where it broke. */
  serving(attempt: Attempt, end: (error?: unknown) => void): void
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

type Sending = {
  chosen: Chosen
  /** Whether no other target is left: then it may take as long as the time limits of its provider allow. */
  isLast: boolean
  /** Given where the try may be ended by another one. */
  control?: TryControl
  is_hedge?: boolean
}

type Running = {
  readonly chosen: Chosen
  readonly attempt: Attempt
  /** Of the call. */
  readonly signal: AbortSignal
  readonly release: Release | undefined
  /** Stops the limit of its total time. */
  readonly stopTotal: (() => void) | undefined
  /** The error of its time to the first byte, once that is over. */
  timeout: GatewayError | undefined
}

/** A try that has answered. */
export type Tried<Answer> = { readonly running: Running; readonly answer: Answer }

type Trier = {
  /** Rejects when the target has failed, or with `LOST`. */
  send<Answer>(sending: Sending, routing: Routing<Answer>): Promise<Tried<Answer>>
  /** To be called when its response has ended: with an error where it broke. */
  end(tried: Tried<unknown>, error?: unknown): void
}

export function createTrier({ clock, log }: { clock: Clock; log: Log }): Trier {
  function remember({ chosen, attempt }: Running, outcome: Outcome, now: number, isProbe = chosen.isProbe): void {
    const { state } = chosen.candidate
    const change = note(state, outcome, { now, started: attempt.started, isProbe })
    logChange(log, state, change)
  }

  /** Waits where the provider has as many open calls as it may. */
  function enter(chosen: Chosen, { token_id, bounds }: Routing<unknown>, signal: AbortSignal) {
    const { limiter } = chosen.candidate
    if (!limiter) return undefined
    const entered = limiter.enter({ token_id, signal, at_most_ms: bounds.deadline - chosen.at })
    return entered instanceof Promise ? waitFor(entered, chosen, signal) : entered
  }

  function failTry(
    running: Running,
    error: unknown,
    { routing, target_ms }: { routing: Routing<unknown>; target_ms: number },
  ): void {
    const { attempt, chosen, signal } = running
    leave(running, isFaultOfTarget(error) && !signal.aborted ? 'failed' : undefined)
    const now = clock.steady()
    answered(chosen.candidate.state, now)
    const ms = now - attempt.started
    attempt.ms = ms
    attempt.is_lost = error === LOST
    if (attempt.is_lost) remember(running, signal.aborted ? NEUTRAL : { kind: 'lost', after_ms: ms }, now)
    else {
      noteFailure(attempt, error)
      // One that had less time than the target is given says nothing, like one that the client has ended.
      const isAborted = signal.aborted || (error === running.timeout && ms < target_ms)
      const wasSilent = chosen.candidate.state.last_ok_at < attempt.started
      if (!isAborted) noteError(chosen.candidate.state, error, now)
      remember(running, outcomeOf(error, { isAborted, wasSilent }), now)
    }
    routing.observer.attemptFailed(attempt, error)
  }

  return {
    async send(sending, routing) {
      const { chosen, isLast, is_hedge = false } = sending
      const { candidate } = chosen
      const { target } = candidate
      const { signal, observer, execute, bounds } = routing
      const entering = enter(chosen, routing, sending.control?.controller.signal ?? signal)
      const hasWaited = entering instanceof Promise
      const release = hasWaited ? await entering : entering
      const started = hasWaited ? clock.steady() : chosen.at
      const ms = timeLimit({ tried: candidate, isLast, routing, left: bounds.deadline - started })
      const control = sending.control ?? (ms === undefined && !target.timeouts ? undefined : createTryControl(signal))
      const stopTotal = control && limitTotal(control, target, clock)
      const attempt = newAttempt(target, started, is_hedge)
      const running: Running = { chosen, attempt, signal, release, stopTotal, timeout: undefined }
      observer.attemptStarted(attempt)
      let stop: (() => void) | undefined
      try {
        if (control && ms !== undefined) {
          stop = clock.after(ms, () => {
            running.timeout = silentFor(target, ms)
            cancelTry(control, running.timeout)
          })
        }
        const answer = await (control
          ? underControl(control, (own) => execute(target, own, attempt))
          : execute(target, signal, attempt))
        stop?.()
        const now = clock.steady()
        answered(candidate.state, now)
        attempt.ms = now - started
        remember(running, { kind: 'ok', first_byte_ms: attempt.ms }, now)
        return { answer, running }
      } catch (error) {
        stop?.()
        failTry(running, error, { routing, target_ms: firstByteLimit(candidate, routing) })
        throw error
      }
    },
    end({ running }, error) {
      const { chosen, attempt, signal } = running
      leave(running, attempt.ms)
      // A stream that breaks says the same of its target as one that never began.
      if (error === undefined) chosen.candidate.state.consecutive_cuts = 0
      if (!isFaultOfTarget(error) || signal.aborted) return
      noteError(chosen.candidate.state, error, clock.steady())
      remember(running, { kind: 'failed', at_once: false, after_ok: true }, clock.steady(), false)
    },
  }
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

function leave({ chosen, release, stopTotal }: Running, seen: number | 'failed' | undefined): void {
  stopTotal?.()
  leaveTarget(chosen)
  release?.(seen)
}

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
