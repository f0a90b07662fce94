/** Routing: sends a call to one target after another, and remembers how each behaved. */
import type { CallLimits, RoutingConfig } from '../config/routing-schema.ts'
import { type Clock, pause } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { type Target, targetName } from '../providers/provider.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import type { Candidate } from './choose.ts'
import { createLimiter, type Limiter, type Release } from './concurrency.ts'
import { createHedgeBudget, type HedgeBudget, race } from './hedge.ts'
import { type AttemptPolicy, isFaultOfTarget, mayTryNext, outcomeOf } from './outcome.ts'
import { createRetryBudgets } from './retry-budget.ts'
import { createSelection, type Selection } from './selection.ts'
import { begin, createTargetState, note, type Outcome, quantilesOf, type TargetState } from './target-state.ts'
import { createTryControl, type TryControl, withControl } from './time-limit.ts'

/** One upstream call of a request. */
export type Attempt = {
  readonly target: Target
  /** Unix milliseconds. */
  readonly started: number
  /** The time to its first byte or its error; undefined while neither has come. */
  ms: number | undefined
  error: ErrorCode | undefined
  upstream_status: number | undefined
  /** Whether it was asked because the first one was slow. */
  readonly is_hedge: boolean
  /** Whether it was given up because another one answered first. */
  is_lost: boolean
}

/** Notified of each attempt, in order. */
export type AttemptObserver = {
  attemptStarted(attempt: Attempt): void
  attemptFailed(attempt: Attempt, error: unknown): void
  /** The attempt that serves the call. `end` must be called when its response has ended: with an error where it broke. */
  serving(attempt: Attempt, end: (error?: unknown) => void): void
}

/** What all tries of a request share, over keys, targets and fallback models. */
export type Bounds = {
  tries: number
  /** How many were made with other models. */
  tries_made: number
  /** By the steady clock: none begins after it. */
  deadline: number
}

/** What the caller asks of one call. */
type Asked = { timeout_ms?: number; no_fallback?: true }

/** `arrived`: by the steady clock. */
export const boundsOf = (
  { tries = DEFAULT_TRIES, deadline_seconds = Number.POSITIVE_INFINITY }: RoutingConfig,
  arrived: number,
  { timeout_ms = Number.POSITIVE_INFINITY, no_fallback }: Asked = {},
): Bounds => ({
  tries: no_fallback ? 1 : tries,
  tries_made: 0,
  deadline: arrived + Math.min(deadline_seconds * 1000, timeout_ms),
})

type Routing<Answer> = {
  settings: RoutingConfig
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
  /** The number that calls of one conversation share; called only where it is needed. */
  affinity?: ((sticky: NonNullable<RoutingConfig['sticky']>) => number | undefined) | undefined
  /** Resolves with the first part of a stream, or with a whole response. */
  execute(target: Target, signal: AbortSignal, attempt: Attempt): Promise<Answer>
  observer: AttemptObserver
}

export type Router = {
  /** The answer of the first target that succeeds. Throws the last failure, or `no_available_channel` without targets. */
  attempt<Answer>(targets: readonly Target[], routing: Routing<Answer>): Promise<Answer>
  /** What is remembered of the targets that were called. */
  states(): Iterable<TargetState>
}

/** Enough to find a target that answers; more would only multiply the load of an outage. */
const DEFAULT_TRIES = 5
/** Until the latency of a target is known. A whole response has no first byte before its text is complete. */
const FIRST_BYTE_MS = { stream: 15_000, whole: 60_000 }
const SHORTEST_FIRST_BYTE_MS = 5_000

type Try = {
  /** The time limit of the first byte; undefined: that of the provider. */
  ms: number | undefined
  /** Whether its provider got this request before. */
  isRetry: boolean
  /** Given where the try may end before the call; it needs one for a time limit. */
  control: TryControl | undefined
  is_hedge?: boolean
}

type RouterParts = { clock: Clock; log: Log; random?: () => number }

export function createRouter({ clock, log, random = Math.random }: RouterParts): Router {
  const states = new Map<string, TargetState>()
  const budgets = createRetryBudgets()
  /** By the settings object of a model: a reload begins anew. */
  const hedgeBudgets = new WeakMap<RoutingConfig, HedgeBudget>()
  /** By the settings object of a provider, which its keys share. */
  const limiters = new WeakMap<CallLimits, Limiter>()

  function limiterOf({ provider: { id, callLimits } }: Target): Limiter | undefined {
    if (callLimits === undefined) return undefined
    let limiter = limiters.get(callLimits)
    if (!limiter) {
      limiter = createLimiter(id, callLimits, clock)
      limiters.set(callLimits, limiter)
    }
    return limiter
  }

  function candidateOf(target: Target, isObserved: boolean): Candidate {
    const name = targetName(target)
    const id = target.key === undefined ? name : `${name}#${target.key}`
    let state = isObserved ? states.get(id) : undefined
    if (!state) {
      state = createTargetState(id)
      if (isObserved) states.set(id, state)
    }
    return { target, state, is_tried: false, limiter: limiterOf(target) }
  }

  function remember(state: TargetState, outcome: Outcome, isProbe: boolean): void {
    const change = note(state, outcome, clock.steady(), isProbe)
    if (change === 'ejected' || change === 'key refused') log.warn(`target ${change}`, { target: state.id })
    else if (change === 'returned') log.info('target returned', { target: state.id })
  }

  /** Waits where the provider has as many open calls as it may. */
  function enter({ limiter }: Candidate, { token_id, signal, bounds }: Routing<unknown>): Release | Promise<Release> {
    if (!limiter) return NO_RELEASE
    return limiter.enter({ token_id, signal, at_most_ms: bounds.deadline - clock.steady() })
  }

  /** One upstream call. */
  async function tryOnce<Answer>(
    candidate: Candidate,
    { ms: given_ms, isRetry, control, is_hedge = false }: Try,
    routing: Routing<Answer>,
  ) {
    const { target, state } = candidate
    const { signal, observer, execute } = routing
    const arrived = clock.steady()
    const entered = enter(candidate, routing)
    const release = entered instanceof Promise ? await entered : entered
    const started = clock.steady()
    const isProbe = begin(state, started)
    const leave = budgets.enter(target.provider.id, isRetry)
    const attempt = newAttempt(target, started, is_hedge)
    const ms = given_ms === undefined ? undefined : Math.max(0, given_ms - (started - arrived))
    observer.attemptStarted(attempt)
    try {
      const limit = { clock, ms, error: () => silentFor(target, ms ?? 0) }
      const answer = await (control
        ? withControl(control, limit, (own) => execute(target, own, attempt))
        : execute(target, signal, attempt))
      attempt.ms = clock.steady() - started
      remember(state, { kind: 'ok', first_byte_ms: attempt.ms }, isProbe)
      const end = (error?: unknown) => {
        state.open--
        leave()
        release(attempt.ms)
        // A stream that breaks says the same of its target as one that never began.
        if (isFaultOfTarget(error) && !signal.aborted) remember(state, { kind: 'failed', at_once: false }, false)
      }
      return { answer, serve: () => observer.serving(attempt, end), end }
    } catch (error) {
      state.open--
      leave()
      release(isFaultOfTarget(error) && !signal.aborted ? 'failed' : undefined)
      attempt.ms = clock.steady() - started
      attempt.is_lost = error === LOST
      if (!attempt.is_lost) noteFailure(attempt, error)
      const isAborted = signal.aborted || attempt.is_lost
      remember(state, outcomeOf(error, { isAborted, wasSilent: state.last_ok_at < started }), isProbe)
      observer.attemptFailed(attempt, error)
      throw error
    }
  }

  /** After how long a second target is asked beside this one; undefined: never. */
  function hedgeAfter({ state }: Candidate, { settings, policy, is_hedged }: Routing<unknown>): number | undefined {
    if (!settings.hedge || !is_hedged || policy !== 'until_answered') return undefined
    let budget = hedgeBudgets.get(settings)
    if (!budget) {
      budget = createHedgeBudget()
      hedgeBudgets.set(settings, budget)
    }
    budget.earn()
    return quantilesOf(state)?.p95
  }

  /** The first try, and a second one where that is slow. */
  async function tryHedged<Answer>(selection: Selection, after_ms: number, given: FirstTry, routing: Routing<Answer>) {
    const { signal, settings } = routing
    const controls = { first: createTryControl(signal), second: createTryControl(signal) }
    const first = tryOnce(given.candidate, { ...given, control: controls.first }, routing)
    let second: typeof first | undefined
    const { answer, winner } = await race({
      clock,
      after_ms,
      first,
      second() {
        if (!selection.hasNext() || !hedgeBudgets.get(settings)?.take()) return undefined
        const other = selection.another()
        if (!other) return undefined
        const { isRetry } = selection
        second = tryOnce(other, { ms: undefined, isRetry, control: controls.second, is_hedge: true }, routing)
        return second
      },
    })
    const loser = winner === 'first' ? 'second' : 'first'
    controls[loser].cancel(LOST)
    // It may have answered in the same moment.
    ;(loser === 'first' ? first : second)?.then(
      ({ end }) => end(),
      () => {},
    )
    return answer
  }

  return {
    states: () => states.values(),
    async attempt(targets, routing) {
      const { settings, signal, policy, is_observed } = routing
      const { deadline } = routing.bounds
      const most = routing.bounds.tries - routing.bounds.tries_made
      const candidates = targets.map((target) => candidateOf(target, is_observed))
      const affinity = candidates.length > 1 && settings.sticky ? routing.affinity?.(settings.sticky) : undefined
      const selection = createSelection({ candidates, settings, deadline, budgets, clock, random, affinity })
      let candidate = selection.first()
      if (!candidate) throw new GatewayError('no_available_channel', 'No provider is available for this model.')
      const after_ms = candidates.length > 1 ? hedgeAfter(candidate, routing) : undefined
      for (let tries = 1; ; tries++) {
        const isLast = tries >= most || policy === 'until_accepted' || !selection.hasNext()
        const ms = timeLimit({ state: candidate.state, isLast, routing, left: deadline - clock.steady() })
        const { isRetry } = selection
        try {
          const tried =
            tries === 1 && after_ms !== undefined
              ? await tryHedged(selection, after_ms, { candidate, ms, isRetry }, routing)
              : await tryOnce(
                  candidate,
                  { ms, isRetry, control: ms === undefined ? undefined : createTryControl(signal) },
                  routing,
                )
          tried.serve()
          return tried.answer
        } catch (error) {
          if (tries >= most || signal.aborted || !mayTryNext(error, policy)) throw error
          const next = selection.after(candidate, error)
          if (!next) throw error
          if (next.pause_ms > 0) await pause(clock, next.pause_ms, signal)
          candidate = next.candidate
        }
      }
    },
  }
}

type FirstTry = { candidate: Candidate; ms: number | undefined; isRetry: boolean }

const NO_RELEASE: Release = () => {}

/** The reason for which a try ends that another one has beaten. */
const LOST = new GatewayError('client_closed_request', 'Another target answered first.')

const newAttempt = (target: Target, started: number, is_hedge: boolean): Attempt => ({
  target,
  started,
  ms: undefined,
  error: undefined,
  upstream_status: undefined,
  is_hedge,
  is_lost: false,
})

function noteFailure(attempt: Attempt, error: unknown): void {
  const isKnown = error instanceof GatewayError
  attempt.error = isKnown ? error.code : 'internal_error'
  attempt.upstream_status = isKnown ? error.detail.upstream_status : undefined
}

type Limiting = { state: TargetState; isLast: boolean; routing: Routing<unknown>; left: number }

/** How long a try may wait for its first byte; undefined: as long as the time limits of its provider allow. */
function timeLimit({ state, isLast, routing, left }: Limiting): number | undefined {
  const own = isLast ? Number.POSITIVE_INFINITY : firstByteLimit(state, routing)
  const limit = Math.min(own, Math.max(0, left))
  return limit === Number.POSITIVE_INFINITY ? undefined : limit
}

/** While another target is left, a silent one is given up long before the time limits of its provider. */
function firstByteLimit(state: TargetState, { settings, is_stream }: Routing<unknown>): number {
  if (settings.first_byte_seconds !== undefined) return settings.first_byte_seconds * 1000
  const usual = is_stream ? FIRST_BYTE_MS.stream : FIRST_BYTE_MS.whole
  const measured = quantilesOf(state)
  if (!measured) return usual
  return Math.min(FIRST_BYTE_MS.whole, Math.max(SHORTEST_FIRST_BYTE_MS, 3 * measured.p99))
}

const silentFor = ({ provider }: Target, ms: number) =>
  new GatewayError('upstream_timeout', `The upstream "${provider.id}" sent nothing within ${ms / 1000} s.`)
