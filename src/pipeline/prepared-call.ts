/** A call whose request fits its model: one object for each, which the stages of the pipeline and the router work on. */
import type { RoutingConfig } from '../config/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import { type Attempt, LOST, type NextStep, type Routing, type ServingAttempt } from '../routing/attempt.ts'
import type { Bounds } from '../routing/bounds.ts'
import {
  eligibleTargets,
  expectedCost,
  noneEligible,
  type RequestFacts,
  type SizedRequest,
} from '../routing/conditions.ts'
import { explainModel } from '../routing/explain-model.ts'
import type { AttemptPolicy } from '../routing/outcome.ts'
import type { ProviderPreferences } from '../routing/preferences.ts'
import type { Router } from '../routing/router.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { AttemptAdmission } from './admission.ts'
import type { Call, CallRecord } from './call.ts'
import { mayHaveCharged, noteDoubt } from './doubt.ts'
import type { CallEvents } from './events.ts'
import type { AnyMeter, Execution, Family, Try } from './family.ts'

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

type Prepared<Work, Answer, M extends AnyMeter> = {
  descriptor: Family<never, Work, Answer, M>
  input: unknown
  record: CallRecord
  requested: CatalogueModel
  model: CatalogueModel
  work: Work
}

type Sticky = NonNullable<RoutingConfig['sticky']>

const UNBOUNDED: Bounds = { tries: 1, tries_made: 0, deadline: Number.POSITIVE_INFINITY }

export class PreparedCall<Work, Answer, M extends AnyMeter> implements Execution<M>, Routing, SizedRequest {
  readonly call: Call
  readonly record: CallRecord
  readonly requested: CatalogueModel
  readonly descriptor: Family<never, Work, Answer, M>
  /** The model that it was resolved to. */
  readonly chosen: CatalogueModel
  /** Of all its models together; set when it is executed. */
  bounds: Bounds = UNBOUNDED
  /** The model that serves it, and the request fitted to that model: they change when a fallback takes over. */
  model: CatalogueModel
  work: Work
  /** Of the try that serves the call, or of the first one. */
  meter: M
  has_fallback = false
  readonly #input: unknown
  readonly #parts: ExecutionParts
  /** How many attempts there were at other models. */
  #earlier = 0
  #facts: RequestFacts | undefined
  /** Of the second one of two tries at the same time. */
  #hedge: { meter: M } | undefined

  constructor({ descriptor, input, record, requested, model, work }: Prepared<Work, Answer, M>, parts: ExecutionParts) {
    this.call = record.call
    this.record = record
    this.requested = requested
    this.descriptor = descriptor
    this.chosen = model
    this.model = model
    this.work = work
    this.meter = descriptor.meter(work)
    this.#input = input
    this.#parts = parts
  }

  get policy(): AttemptPolicy {
    return this.descriptor.policy
  }

  /** The request, fitted to another model. Throws GatewayError. */
  fitTo(model: CatalogueModel): Work {
    return this.descriptor.fit(model, this.#input as never, this.call)
  }

  /** Another model serves the call. */
  replaceModel({ model, work }: { model: CatalogueModel; work: Work }): void {
    const { record } = this
    this.model = model
    this.work = work
    this.meter = this.descriptor.meter(work)
    this.#earlier = record.attempts.length
    this.#facts = undefined
    this.#hedge = undefined
    record.model = model.id
    record.requested = this.requested.id
  }

  /** Rejects, and does not throw, where no target takes the request. */
  readonly attempt: Execution<M>['attempt'] = (all, execute) => {
    const { attempts, router } = this.#parts
    const { record } = this
    try {
      const { targets, excluded } = eligibleTargets(all, this)
      if (this.call.is_explained) this.#explain(all)
      if (targets.length === 0 && excluded.length > 0) throw noneEligible(excluded)
      const send = (target: Target, signal: AbortSignal, attempt: Attempt) =>
        this.#execute(execute, target, { signal, attempt })
      if (!attempts?.hasLimits(targets)) return router.attempt(targets, this, send)
      return attempts.targetsWithinLimits(record, targets).then((within) => router.attempt(within, this, send))
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  #execute<Part>(
    execute: (target: Target, tried: Try<M>) => Promise<Part>,
    target: Target,
    { signal, attempt }: Trying,
  ): Promise<Part> {
    const { attempts, traceAttempt } = this.#parts
    const { is_hedge } = attempt
    const meter = is_hedge ? this.descriptor.meter(this.work) : this.meter
    if (is_hedge) this.#hedge = { meter }
    const isLimited = attempts?.limitsProvider(target.provider.id)
    if (!isLimited && !traceAttempt) return execute(target, { signal, meter, is_hedge })
    const run = () => execute(target, { signal, meter, is_hedge })
    const limited = () =>
      attempts && isLimited ? attempts.withinLimits(this.record, { target, signal, execute: run }) : run()
    return traceAttempt ? traceAttempt(this.call, attempt, limited) : limited()
  }

  attemptStarted(attempt: Attempt): void {
    const { record } = this
    record.target = attempt.target
    const last = record.attempts.at(-1)
    if (last) last.next = record.attempts.length === this.#earlier ? 'fallback_model' : stepTo(attempt, last)
    record.attempts.push(attempt)
    this.#parts.events.attemptStarted(record, attempt)
  }

  attemptFailed(attempt: Attempt, error: unknown): void {
    if (error !== LOST && mayHaveCharged(error, this.policy)) this.#noteDoubt(attempt.target)
    this.#parts.events.attemptFailed(this.record, attempt, error)
  }

  /** Notes an attempt that its provider may have charged. `lost_hedge`: of one that another attempt has beaten. */
  #noteDoubt(target: Target, lost_hedge?: M): void {
    const { record, model, work, descriptor } = this
    if (!this.meter) return // its calls are not recorded
    // Attempts at the same time share the estimate of the call.
    if (descriptor.attemptsAtOnce?.(work) && record.doubts?.some((one) => one.target === target)) return
    noteDoubt(record, { target, model, most: record.estimate?.most, ...(lost_hedge ? { lost_hedge } : {}) })
  }

  serving(attempt: Attempt & ServingAttempt): void {
    const { record } = this
    const hedge = this.#hedge
    record.target = attempt.target
    record.serving = record.serving ? new Both(record.serving, attempt) : attempt
    if (!hedge) return
    const lost = record.attempts.findLast(({ is_hedge }) => is_hedge !== attempt.is_hedge)
    // One that has failed before is noted already, unless its provider has refused it.
    if (lost && lost.error === undefined) this.#noteDoubt(lost.target, attempt.is_hedge ? this.meter : hedge.meter)
    if (attempt.is_hedge) this.meter = hedge.meter
  }

  /** Adds how the call is routed at this model, before it is sent. */
  #explain(targets: readonly Target[]): void {
    const { call, record, model, has_fallback } = this
    const { attempts, router, clock } = this.#parts
    const request = {
      targets,
      routing: model.routing,
      conditional: this,
      options: call.options,
      now: clock.steady(),
      is_stream: record.is_stream,
      has_fallback,
      affinity: (sticky: Sticky) => this.descriptor.affinity?.(this.work, call, sticky),
      limitOf: attempts && ((target: Target) => attempts.limitOf(record, target)),
    }
    record.decisions ??= []
    record.decisions.push({ model: model.id, ...explainModel(request, router) })
  }

  // What the router needs to know of the call.

  get settings(): RoutingConfig {
    return this.model.routing
  }

  get strategy(): ProviderPreferences['sort'] {
    return this.preferences?.sort
  }

  get is_one_provider(): boolean {
    const { preferences } = this
    return preferences?.allow_fallbacks === false && preferences.order === undefined
  }

  get token_id(): string {
    return this.call.caller.token_id
  }

  get signal(): AbortSignal {
    return this.call.signal
  }

  get is_stream(): boolean {
    return this.record.is_stream
  }

  get is_observed(): boolean {
    return this.descriptor.is_observed ?? true
  }

  get is_hedged(): boolean {
    return (this.descriptor.is_hedged ?? true) && !this.call.options?.no_fallback
  }

  costOf(target: Target): number | undefined {
    return expectedCost(target, this.facts(), this.now())
  }

  affinity(sticky: Sticky): number | undefined {
    return this.strategy === undefined ? this.descriptor.affinity?.(this.work, this.call, sticky) : undefined
  }

  // What conditions and strategies need to know of the request.

  get family(): EndpointFamily {
    return this.record.family
  }

  get tags(): readonly string[] | undefined {
    return this.call.options?.tags
  }

  get project_id(): string | undefined {
    return this.call.caller.project_id
  }

  get preferences(): ProviderPreferences | undefined {
    return this.call.options?.provider
  }

  now(): number {
    return unixSeconds(this.#parts.clock)
  }

  facts(): RequestFacts | undefined {
    this.#facts ??= this.descriptor.facts?.(this.work)
    return this.#facts
  }
}

type Trying = { signal: AbortSignal; attempt: Attempt }

function stepTo({ target, is_hedge }: Attempt, { target: last }: Attempt): NextStep {
  if (is_hedge) return 'hedge'
  if (target.provider.id !== last.provider.id || target.model !== last.model) return 'other_target'
  return target.key === last.key ? 'same_target' : 'other_key'
}

/** Attempts that serve one call together. */
class Both implements ServingAttempt {
  readonly #first: ServingAttempt
  readonly #second: ServingAttempt

  constructor(first: ServingAttempt, second: ServingAttempt) {
    this.#first = first
    this.#second = second
  }

  end(error?: unknown): void {
    this.#first.end(error)
    this.#second.end(error)
  }
}
