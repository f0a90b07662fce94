/** Routing: sends a call to one target after another, and remembers how each behaved. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { ProviderHealth } from '../providers/health.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { type Attempt, newAttempt, noteFailure } from './attempt.ts'
import { type Bounds, firstByteLimit, timeLimit } from './bounds.ts'
import type { Candidate } from './choose.ts'
import { createLimiters, type Release } from './concurrency.ts'
import { noneAvailable, silentFor, tooLate } from './errors.ts'
import { createHedgeBudget, type HedgeBudget, race } from './hedge.ts'
import { type AttemptPolicy, isFaultOfTarget, mayTryNext, outcomeOf } from './outcome.ts'
import type { Strategy } from './preferences.ts'
import { createRetryBudgets } from './retry-budget.ts'
import { type Chosen, createSelection, type Selection } from './selection.ts'
import { createShares, newShare, type Shares } from './shares.ts'
import {
  createTargetState,
  endEjections,
  forget,
  note,
  type Outcome,
  quantilesOf,
  stateId,
  type TargetState,
} from './target-state.ts'
import { createTryControl, limitTotal, type TryControl, withControl } from './time-limit.ts'

/** Notified of each attempt, in order. */
export type AttemptObserver = {
  attemptStarted(attempt: Attempt): void
  attemptFailed(attempt: Attempt, error: unknown): void
  /** The attempt that serves the call. `end` must be called when its response has ended: with an error where it broke. */
  serving(attempt: Attempt, end: (error?: unknown) => void): void
}

type Routing<Answer> = {
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

export type Router = {
  /** The answer of the first target that succeeds. Throws the last failure, or `no_available_channel` if none was tried. */
  attempt<Answer>(targets: readonly Target[], routing: Routing<Answer>): Promise<Answer>
  /** What is remembered of the targets that were called. */
  states(): Iterable<TargetState>
  /** The targets with what is remembered of them; those that were never called are not remembered by this. */
  candidates(targets: readonly Target[], settings: RoutingConfig): Candidate[]
  /** Forgets what is remembered of one target, by its id, or of all. Returns of how many; open calls still count. */
  reset(id?: string): number
  /** The probes of a provider show that it works again: its ejected targets are tested by their next call. */
  recovered(health: ProviderHealth): void
}

type Try = {
  /** Whether no other target is left: then it may take as long as the time limits of its provider allow. */
  isLast: boolean
  /** Given where the try may be ended by another one. */
  control?: TryControl
  is_hedge?: boolean
}

type RouterParts = { clock: Clock; log: Log; random?: () => number }

export function createRouter({ clock, log, random = Math.random }: RouterParts): Router {
  const states = new Map<string, TargetState>()
  const budgets = createRetryBudgets()
  /** By the settings object of a model: a reload begins anew. */
  const hedgeBudgets = new WeakMap<RoutingConfig, HedgeBudget>()

  const limiterOf = createLimiters(clock)
  const sharesOf = createShares()

  function candidateOf(target: Target, shareOf: Shares | undefined): Candidate {
    const id = stateId(target)
    let state = shareOf && states.get(id)
    if (!state) {
      state = createTargetState(id)
      if (shareOf) states.set(id, state)
    }
    state.health = target.provider.health?.()
    return { target, state, share: shareOf?.(id) ?? newShare(), is_tried: false, limiter: limiterOf(target) }
  }

  function remember(state: TargetState, outcome: Outcome, { started, isProbe }: Started): void {
    const change = note(state, outcome, { now: clock.steady(), started, isProbe })
    if (change === 'ejected' || change === 'key refused') log.warn(`target ${change}`, { target: state.id })
    else if (change === 'returned') log.info('target returned', { target: state.id })
  }

  /** Waits where the provider has as many open calls as it may. */
  function enter({ limiter }: Candidate, { token_id, bounds }: Routing<unknown>, signal: AbortSignal) {
    if (!limiter) return NO_RELEASE
    return limiter.enter({ token_id, signal, at_most_ms: bounds.deadline - clock.steady() })
  }

  /** One upstream call. */
  async function tryOnce<Answer>(
    chosen: Chosen,
    { isLast, control: given, is_hedge = false }: Try,
    routing: Routing<Answer>,
  ) {
    const { candidate, isProbe } = chosen
    const { target, state } = candidate
    const { signal, observer, execute, bounds } = routing
    const entered = enter(candidate, routing, given?.signal ?? signal)
    const release = entered instanceof Promise ? await entered.catch((error) => leaveQueue(chosen, error)) : entered
    const started = clock.steady()
    const ms = timeLimit({ tried: candidate, isLast, routing, left: bounds.deadline - started })
    const control = given ?? (ms === undefined && !target.timeouts ? undefined : createTryControl(signal))
    const stop = control && limitTotal(control, target, clock)
    const leave = (seen?: number | 'failed') => {
      stop?.()
      chosen.leave()
      release(seen)
    }
    const attempt = newAttempt(target, started, is_hedge)
    let timeout: GatewayError | undefined
    observer.attemptStarted(attempt)
    try {
      const error = () => {
        timeout = silentFor(target, ms ?? 0)
        return timeout
      }
      const limit = { clock, ms, error }
      const answer = await (control
        ? withControl(control, limit, (own) => execute(target, own, attempt))
        : execute(target, signal, attempt))
      attempt.ms = clock.steady() - started
      remember(state, { kind: 'ok', first_byte_ms: attempt.ms }, { started, isProbe })
      const end = (error?: unknown) => {
        leave(attempt.ms)
        // A stream that breaks says the same of its target as one that never began.
        if (error === undefined) state.consecutive_cuts = 0
        if (!isFaultOfTarget(error) || signal.aborted) return
        remember(state, { kind: 'failed', at_once: false, after_ok: true }, { started, isProbe: false })
      }
      const giveUp = () => {
        attempt.is_lost = true
        end(LOST)
        observer.attemptFailed(attempt, LOST)
      }
      return { answer, serve: () => observer.serving(attempt, end), giveUp }
    } catch (error) {
      leave(isFaultOfTarget(error) && !signal.aborted ? 'failed' : undefined)
      attempt.ms = clock.steady() - started
      attempt.is_lost = error === LOST
      if (!attempt.is_lost) noteFailure(attempt, error)
      // One that had less time than the target is given says nothing, like one that the client has ended.
      const isCutShort = error === timeout && attempt.ms < firstByteLimit(candidate, routing)
      const isAborted = signal.aborted || attempt.is_lost || isCutShort
      remember(state, outcomeOf(error, { isAborted, wasSilent: state.last_ok_at < started }), { started, isProbe })
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
    const { signal, settings, bounds } = routing
    const control = createTryControl(signal)
    const first = tryOnce(given.chosen, { isLast: given.isLast, control }, routing)
    let second: { tried: typeof first; control: TryControl } | undefined
    const { answer, winner } = await race({
      clock,
      after_ms,
      first,
      second() {
        if (
          signal.aborted ||
          bounds.deadline <= clock.steady() ||
          !selection.hasOther() ||
          !hedgeBudgets.get(settings)?.take()
        )
          return undefined
        const other = selection.another()
        if (!other) return undefined
        const own = createTryControl(signal)
        second = { tried: tryOnce(other, { isLast: true, control: own, is_hedge: true }, routing), control: own }
        return second.tried
      },
    })
    const loser = winner === 'first' ? second : { tried: first, control }
    loser?.control.cancel(LOST)
    // It may have answered in the same moment.
    loser?.tried.then(
      ({ giveUp }) => giveUp(),
      () => {},
    )
    return answer
  }

  return {
    states: () => states.values(),
    candidates: (targets, settings) =>
      targets.map((target) => {
        const fresh = candidateOf(target, undefined)
        const { id, health } = fresh.state
        const state = states.get(id)
        const share = sharesOf(settings)(id)
        return state ? { ...fresh, share, state: { ...state, health } } : { ...fresh, share }
      }),
    reset(id) {
      const found = [...states.values()].filter((state) => id === undefined || state.id === id)
      for (const state of found) forget(state)
      return found.length
    },
    recovered: (health) => endEjections(states.values(), health, clock.steady()),
    async attempt(targets, routing) {
      const { settings, signal, policy, is_observed, has_fallback } = routing
      const { deadline } = routing.bounds
      const most = routing.bounds.tries - routing.bounds.tries_made
      if (deadline <= clock.steady()) throw tooLate()
      const shareOf = is_observed ? sharesOf(settings) : undefined
      const candidates = targets.map((target) => candidateOf(target, shareOf))
      const { strategy = settings.strategy, is_one_provider } = routing
      if (strategy === 'cheapest') for (const one of candidates) one.cost = routing.costOf?.(one.target)
      const affinity = candidates.length > 1 && settings.sticky ? routing.affinity?.(settings.sticky) : undefined
      const selection = createSelection({
        candidates,
        settings,
        strategy,
        is_one_provider,
        deadline,
        has_fallback,
        budgets,
        clock,
        random,
        affinity,
      })
      let chosen = selection.first()
      if (!chosen) throw noneAvailable()
      const after_ms = candidates.length > 1 && most > 1 ? hedgeAfter(chosen.candidate, routing) : undefined
      for (;;) {
        const { tries } = selection
        const isLast = tries >= most || policy === 'until_accepted' || !(has_fallback || selection.hasOther())
        try {
          const tried =
            tries === 1 && after_ms !== undefined
              ? await tryHedged(selection, after_ms, { chosen, isLast }, routing)
              : await tryOnce(chosen, { isLast }, routing)
          tried.serve()
          return tried.answer
        } catch (error) {
          if (selection.tries >= most || signal.aborted || !mayTryNext(error, policy)) throw error
          chosen = await selection.after(error, signal)
          if (!chosen) throw error
        }
      }
    },
  }
}

type Started = { started: number; isProbe: boolean }

type FirstTry = { chosen: Chosen; isLast: boolean }

const NO_RELEASE: Release = () => {}

/** The call was not sent. */
function leaveQueue({ candidate, isProbe, leave }: Chosen, error: unknown): never {
  leave()
  if (isProbe) candidate.state.is_probing = false
  throw error
}

/** The reason for which a try ends that another one has beaten. */
const LOST = new GatewayError('client_closed_request', 'Another target answered first.')
