/** Sends a call to the targets of the model that serves it, attempt by attempt, and notes each in its record. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import type { Attempt, NextStep } from '../routing/attempt.ts'
import type { Bounds } from '../routing/bounds.ts'
import {
  eligibleTargets,
  expectedCost,
  noneEligible,
  type RequestFacts,
  type SizedRequest,
} from '../routing/conditions.ts'
import { explainModel } from '../routing/explain-model.ts'
import type { ProviderPreferences } from '../routing/preferences.ts'
import type { Router } from '../routing/router.ts'
import { type AttemptObserver, LOST } from '../routing/try.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { AttemptAdmission } from './admission.ts'
import type { Call, CallRecord } from './call.ts'
import { mayHaveCharged, noteDoubt } from './doubt.ts'
import type { CallEvents } from './events.ts'
import type { AnyMeter, Execution, Family, Metering, Try } from './family.ts'

/** Executes an attempt in the trace of its call. */
export type TraceAttempt = <Answer>(call: Call, attempt: Attempt, execute: () => Promise<Answer>) => Promise<Answer>

/** The same for all calls. */
export type ExecutionParts = {
  router: Pick<Router, 'attempt' | 'candidates'>
  /** Undefined: providers have no limits. */
  attempts: AttemptAdmission | undefined
  /** Undefined: no traces are recorded. */
  traceAttempt?: TraceAttempt | undefined
  events: Pick<CallEvents, 'attemptStarted' | 'attemptFailed'>
  clock: Clock
}

type Served<Work, M extends AnyMeter> = {
  family: Pick<
    Family<never, Work, never, M>,
    'facts' | 'affinity' | 'meter' | 'policy' | 'is_observed' | 'is_hedged' | 'attemptsAtOnce'
  >
  record: CallRecord
  model: CatalogueModel
  work: Work
  metering: Metering<M>
  bounds: Bounds
  has_fallback: boolean
}

type Sticky = NonNullable<RoutingConfig['sticky']>

/** One object for each model of a call, with few closures. */
export class ModelExecution<Work, M extends AnyMeter> implements Execution<M>, AttemptObserver {
  readonly call: Call
  readonly #served: Served<Work, M>
  readonly #parts: ExecutionParts
  /** How many attempts there were at other models. */
  readonly #earlier: number
  /** Of the second one of two tries at the same time. */
  #hedge: { meter: M } | undefined

  constructor(served: Served<Work, M>, parts: ExecutionParts) {
    this.call = served.record.call
    this.#served = served
    this.#parts = parts
    this.#earlier = served.record.attempts.length
  }

  /** Rejects, and does not throw, where no target takes the request. */
  readonly attempt: Execution<M>['attempt'] = (all, execute) => {
    const { attempts, clock } = this.#parts
    const { record } = this.#served
    try {
      const request = new RoutedRequest(this.#served, clock)
      const { targets, excluded } = eligibleTargets(all, request)
      if (this.call.is_explained) this.#explain(all, request)
      if (targets.length === 0 && excluded.length > 0) throw noneEligible(excluded)
      if (!attempts?.hasLimits(targets)) return this.#route(targets, request, execute)
      return attempts.targetsWithinLimits(record, targets).then((within) => this.#route(within, request, execute))
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  #route<Answer>(
    targets: readonly Target[],
    request: RoutedRequest<Work, M>,
    execute: Execute<M, Answer>,
  ): Promise<Answer> {
    const { call } = this
    const { family, record, model, work, bounds, has_fallback } = this.#served
    const { router } = this.#parts
    const { sort: strategy, order, allow_fallbacks } = request.preferences ?? {}
    const hasAffinity = strategy === undefined && family.affinity !== undefined && model.routing.sticky !== undefined
    return router.attempt(targets, {
      settings: model.routing,
      strategy,
      is_one_provider: allow_fallbacks === false && order === undefined,
      bounds,
      token_id: call.caller.token_id,
      signal: call.signal,
      is_stream: record.is_stream,
      policy: family.policy,
      is_observed: family.is_observed ?? true,
      is_hedged: (family.is_hedged ?? true) && !call.options?.no_fallback,
      has_fallback,
      costOf: (strategy ?? model.routing.strategy) === 'cheapest' ? (target) => request.costAt(target) : undefined,
      affinity: hasAffinity ? (sticky) => family.affinity?.(work, call, sticky) : undefined,
      execute: (target, signal, tried) => this.#execute(execute, { target, signal, tried }),
      observer: this,
    })
  }

  #execute<Answer>(execute: Execute<M, Answer>, { target, signal, tried }: Trying): Promise<Answer> {
    const { attempts, traceAttempt } = this.#parts
    const { family, record, work, metering } = this.#served
    const { is_hedge } = tried
    const meter = is_hedge ? family.meter(work) : metering.current
    if (is_hedge) this.#hedge = { meter }
    const isLimited = attempts?.hasLimits([target])
    if (!isLimited && !traceAttempt) return execute(target, { signal, meter, is_hedge })
    const run = () => execute(target, { signal, meter, is_hedge })
    const limited = () =>
      attempts && isLimited ? attempts.withinLimits(record, { target, signal, execute: run }) : run()
    return traceAttempt ? traceAttempt(this.call, tried, limited) : limited()
  }

  attemptStarted(attempt: Attempt): void {
    const { record } = this.#served
    record.target = attempt.target
    const last = record.attempts.at(-1)
    if (last) last.next = record.attempts.length === this.#earlier ? 'fallback_model' : stepTo(attempt, last)
    record.attempts.push(attempt)
    this.#parts.events.attemptStarted(record, attempt)
  }

  attemptFailed(attempt: Attempt, error: unknown): void {
    const { family, record } = this.#served
    if (error !== LOST && mayHaveCharged(error, family.policy)) this.#noteDoubt(attempt.target)
    this.#parts.events.attemptFailed(record, attempt, error)
  }

  /** Notes an attempt that its provider may have charged. `lost_hedge`: of one that another attempt has beaten. */
  #noteDoubt(target: Target, lost_hedge?: M): void {
    const { family, record, model, work, metering } = this.#served
    if (!metering.current) return // its calls are not recorded
    // Attempts at the same time share the estimate of the call.
    if (family.attemptsAtOnce?.(work) && record.doubts?.some((one) => one.target === target)) return
    noteDoubt(record, { target, model, most: record.estimate?.most, ...(lost_hedge ? { lost_hedge } : {}) })
  }

  serving(attempt: Attempt, end: EndAttempt): void {
    const { record, metering } = this.#served
    const hedge = this.#hedge
    record.target = attempt.target
    record.endAttempt = record.endAttempt ? both(record.endAttempt, end) : end
    if (!hedge) return
    const lost = record.attempts.findLast(({ is_hedge }) => is_hedge !== attempt.is_hedge)
    // One that has failed before is noted already, unless its provider has refused it.
    if (lost && lost.error === undefined)
      this.#noteDoubt(lost.target, attempt.is_hedge ? metering.current : hedge.meter)
    if (attempt.is_hedge) metering.current = hedge.meter
  }

  /** Adds how the call is routed at this model, before it is sent. */
  #explain(targets: readonly Target[], conditional: SizedRequest): void {
    const { call } = this
    const { family, record, model, work, has_fallback } = this.#served
    const { attempts, router, clock } = this.#parts
    const request = {
      targets,
      routing: model.routing,
      conditional,
      options: call.options,
      now: clock.steady(),
      is_stream: record.is_stream,
      has_fallback,
      affinity: (sticky: Sticky) => family.affinity?.(work, call, sticky),
      limitOf: attempts && ((target: Target) => attempts.limitOf(record, target)),
    }
    record.decisions ??= []
    record.decisions.push({ model: model.id, ...explainModel(request, router) })
  }
}

type Execute<M extends AnyMeter, Answer> = (target: Target, tried: Try<M>) => Promise<Answer>
type Trying = { target: Target; signal: AbortSignal; tried: Attempt }

/** What conditions and strategies need to know of a call. */
class RoutedRequest<Work, M extends AnyMeter> implements SizedRequest {
  readonly family: EndpointFamily
  readonly tags: readonly string[] | undefined
  readonly project_id: string | undefined
  readonly preferences: ProviderPreferences | undefined
  readonly #served: Served<Work, M>
  readonly #clock: Clock
  #facts: RequestFacts | undefined

  constructor(served: Served<Work, M>, clock: Clock) {
    const { family, call } = served.record
    this.family = family
    this.tags = call.options?.tags
    this.project_id = call.caller.project_id
    this.preferences = call.options?.provider
    this.#served = served
    this.#clock = clock
  }

  now(): number {
    return unixSeconds(this.#clock)
  }

  facts(): RequestFacts | undefined {
    const { family, work } = this.#served
    this.#facts ??= family.facts?.(work)
    return this.#facts
  }

  costAt(target: Target): number | undefined {
    return expectedCost(target, this.facts(), this.now())
  }
}

function stepTo({ target, is_hedge }: Attempt, { target: last }: Attempt): NextStep {
  if (is_hedge) return 'hedge'
  if (target.provider.id !== last.provider.id || target.model !== last.model) return 'other_target'
  return target.key === last.key ? 'same_target' : 'other_key'
}

type EndAttempt = NonNullable<CallRecord['endAttempt']>

const both =
  (one: EndAttempt, other: EndAttempt): EndAttempt =>
  (error) => {
    one(error)
    other(error)
  }
