/** A call whose request fits its model: one object for each, which the stages of the pipeline and the router work on. */
import type { RoutingConfig } from '../config/schema/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { AttemptAdmission } from './admission.ts'
import type { Call, CallRecord, Gate, Plan } from './call.ts'
import { mayHaveCharged, noteDoubt } from './entries.ts'
import type { CallEvents } from './events.ts'
import type { AnyMeter, ByTarget, Execution, Family, Try } from './family.ts'
import type { Plans } from './plan.ts'
import {
  type Attempt,
  LOST,
  type Routing,
  type Sender,
  type ServingAttempt,
  ServingTogether,
  stepTo,
} from './routing/attempt.ts'
import type { Bounds } from './routing/bounds.ts'
import {
  acceptingTargets,
  expectedCost,
  haveConditions,
  type RequestFacts,
  type SizedRequest,
} from './routing/conditions.ts'
import { explainModel } from './routing/explain-model.ts'
import type { AttemptPolicy } from './routing/outcome.ts'
import type { ProviderPreferences } from './routing/preferences.ts'
import type { Router } from './routing/router.ts'

/** Executes an attempt in the trace of its call. */
export type TraceAttempt = <Answer>(call: Call, attempt: Attempt, execute: () => Promise<Answer>) => Promise<Answer>

type ExecutionParts = {
  router: Pick<Router, 'attempt' | 'candidates'>
  plans: Pick<Plans, 'gatesOf'>
  /** Undefined: providers have no limits. */
  attempts: AttemptAdmission | undefined
  /** Undefined: no traces are recorded. */
  traceAttempt?: TraceAttempt | undefined
  events: Pick<CallEvents, 'attemptStarted' | 'attemptFailed'>
  clock: Clock
}

type Preparing<Work, Answer, M extends AnyMeter> = Pick<PreparedCall<Work, Answer, M>, 'record' | 'plan'> & {
  family: Family<never, Work, Answer, M>
  input: never
}

type Sticky = NonNullable<RoutingConfig['sticky']>

const UNBOUNDED: Bounds = { tries: 1, tries_made: 0, deadline: Number.POSITIVE_INFINITY }

export class PreparedCall<Work, Answer, M extends AnyMeter> implements Routing, Sender<Answer>, SizedRequest {
  readonly call: Call
  readonly record: CallRecord
  readonly descriptor: Family<never, Work, Answer, M>
  readonly policy: AttemptPolicy
  readonly is_observed: boolean
  readonly plan: Plan
  gates: readonly Gate[]
  /** Of all its models together; set when it is executed. */
  bounds: Bounds = UNBOUNDED
  /** The model that serves it, and the request fitted to that model: they change when a fallback takes over. */
  model: CatalogueModel
  work: Work
  /** Of the try that serves the call, or of the last one: what a failed one has reported does not count. */
  meter: M
  has_fallback = false
  /** Set once it is settled: `true`, or what resolves then. */
  settled: Promise<void> | true | undefined
  readonly #input: unknown
  readonly #parts: ExecutionParts
  /** How many attempts there were at other models. */
  #earlier = 0
  #facts: RequestFacts | undefined
  #hedge: { meter: M } | undefined

  constructor(preparing: Preparing<Work, Answer, M>, parts: ExecutionParts) {
    const { family, input, record, plan } = preparing
    const { call } = record
    const { model } = plan
    record.model = model.id
    this.call = call
    this.record = record
    this.descriptor = family
    this.policy = family.policy
    this.is_observed = family.is_observed ?? true
    this.plan = plan
    this.gates = plan.gates
    this.model = model
    this.#input = input
    this.#parts = parts
    this.work = family.fit(model, input, call)
    if (call.capture?.is_recorded && family.texts) call.capture.input = family.texts(this.work)
    this.meter = family.meter(this.work)
  }

  /** The request, fitted to another model. Throws GatewayError. */
  fitTo(model: CatalogueModel): Work {
    return this.descriptor.fit(model, this.#input as never, this.call)
  }

  /** Another model serves the call. */
  replaceModel({ model, work }: { model: CatalogueModel; work: Work }): void {
    const { record } = this
    this.model = model
    this.gates = this.#parts.plans.gatesOf(this.call.caller, model)
    this.work = work
    this.meter = this.descriptor.meter(work)
    this.#earlier = record.attempts.length
    this.#facts = undefined
    this.#hedge = undefined
    record.model = model.id
    record.requested = this.plan.requested.id
  }

  /** At the targets of its model, one after another. */
  execute(): Promise<Answer> {
    const { descriptor, work } = this
    if (descriptor.execute) return descriptor.execute(work, this.#execution())
    const waiting = descriptor.beforeSend?.(work, this.call)
    return waiting ? this.#executeAfter(waiting) : this.#attempt(descriptor.targets(work), this)
  }

  /** For a family that does more than to send the call to one target. */
  #execution(): Execution<M> {
    return {
      call: this.call,
      attempt: (all, send) =>
        this.#attempt(all, {
          sendTo: (target, signal, attempt) => {
            const tried = this.#tryOf(signal, attempt)
            return this.#sendWithin({ target, signal, attempt }, () => send(target, tried))
          },
        }),
    }
  }

  async #executeAfter(waiting: Promise<void>): Promise<Answer> {
    await waiting
    return await this.#attempt((this.descriptor as ByTarget<Work, Answer, M>).targets(this.work), this)
  }

  #attempt<Part>(all: readonly Target[], sender: Sender<Part>): Promise<Part> {
    const { attempts, router } = this.#parts
    try {
      if (this.call.is_explained) this.#explain(all)
      const { plan } = this
      const isOther = this.model !== plan.model
      const hasConditions = isOther ? haveConditions(all) : plan.has_conditions
      const targets = this.preferences || hasConditions ? acceptingTargets(all, this) : all
      const limits = isOther || plan.has_limited_targets ? attempts : undefined
      if (!limits?.hasLimits(targets)) return router.attempt(targets, this, sender)
      return this.#attemptWithin(limits, targets, sender)
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  async #attemptWithin<Part>(attempts: AttemptAdmission, targets: readonly Target[], sender: Sender<Part>) {
    return await this.#parts.router.attempt(await attempts.targetsWithinLimits(this.record, targets), this, sender)
  }

  sendTo(target: Target, signal: AbortSignal, attempt: Attempt): Promise<Answer> {
    const { descriptor, work } = this
    const { attempts, traceAttempt } = this.#parts
    const { send } = descriptor as ByTarget<Work, Answer, M>
    const tried = this.#tryOf(signal, attempt)
    const isPlain = traceAttempt === undefined && !attempts?.limitsProvider(target.provider.id)
    return isPlain ? send(target, work, tried) : this.#sendTried(send, { target, signal, attempt }, tried)
  }

  #sendTried(send: ByTarget<Work, Answer, M>['send'], sending: Sending, tried: Try<M>): Promise<Answer> {
    return this.#sendWithin(sending, () => send(sending.target, this.work, tried))
  }

  #tryOf(signal: AbortSignal, { is_hedge }: Attempt): Try<M> {
    if (!is_hedge) return { call: this.call, signal, meter: this.meter }
    const meter = this.descriptor.meter(this.work)
    this.#hedge = { meter }
    return { call: this.call, signal, meter }
  }

  /** Within the limits of its provider, and in the trace of the call. */
  #sendWithin<Part>({ target, signal, attempt }: Sending, send: () => Promise<Part>): Promise<Part> {
    const { attempts, traceAttempt } = this.#parts
    const limited = () =>
      attempts?.limitsProvider(target.provider.id)
        ? attempts.withinLimits(this.record, { target, signal, execute: send })
        : send()
    return traceAttempt ? traceAttempt(this.call, attempt, limited) : limited()
  }

  attemptStarted(attempt: Attempt): void {
    const { record, descriptor, work } = this
    record.target = attempt.target
    const last = record.attempts.at(-1)
    const isFirst = record.attempts.length === this.#earlier // at its model
    if (last) last.next = isFirst ? 'fallback_model' : stepTo(attempt, last)
    if (!isFirst && !attempt.is_hedge && !descriptor.attemptsAtOnce?.(work)) this.meter = descriptor.meter(work)
    record.attempts.push(attempt)
    this.#parts.events.attemptStarted(record, attempt)
  }

  attemptFailed(attempt: Attempt, error: unknown): void {
    if (error !== LOST && mayHaveCharged(error, this.policy)) this.#noteDoubt(attempt.target)
    this.#parts.events.attemptFailed(this.record, attempt, error)
  }

  /** `lost_hedge`: of an attempt that another one has beaten. */
  #noteDoubt(target: Target, lost_hedge?: M): void {
    const { record, model, work, descriptor } = this
    if (!this.meter) return // its calls are not recorded
    // Attempts at the same time share the estimate of the call.
    if (descriptor.attemptsAtOnce?.(work) && record.doubts?.some((one) => one.target === target)) return
    noteDoubt(record, { target, model, most: record.estimate?.most, ...(lost_hedge ? { lost_hedge } : {}) })
  }

  serving(attempt: Attempt & ServingAttempt): void {
    if (this.settled) return void attempt.end(LOST) // the call has ended meanwhile, and nobody else would end it
    const { record, descriptor } = this
    const hedge = this.#hedge
    record.target = attempt.target
    record.serving = descriptor.attemptsAtOnce?.(this.work) ? new ServingTogether(record.serving, attempt) : attempt
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

  get is_hedged(): boolean {
    return (this.descriptor.is_hedged ?? true) && !this.call.options?.no_fallback
  }

  costOf(target: Target): number | undefined {
    return expectedCost(target, this.facts(), this.now())
  }

  affinity(sticky: Sticky): number | undefined {
    return this.strategy === undefined ? this.descriptor.affinity?.(this.work, this.call, sticky) : undefined
  }

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

type Sending = { target: Target; signal: AbortSignal; attempt: Attempt }
