/** A call whose request fits its model: one object for each, which the stages of the pipeline and the router work on. */
import type { RoutingConfig } from '../config/schema/routing-schema.ts'
import type { Abortable } from '../kit/abortable.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import type { AttemptAdmission } from './admission.ts'
import type { Call, CallRecord, Gate, Plan } from './call.ts'
import { mayHaveCharged, noteDoubt } from './entries.ts'
import type { ExecutionParts } from './execution-parts.ts'
import {
  type Answered,
  type AnyMeter,
  type ByTarget,
  type Execution,
  type Family,
  type Served,
  sendAndRead,
  type Try,
  type Unread,
} from './family.ts'
import { executeGuarded, guardCall } from './guarded-call.ts'
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
import { acceptingTargets, expectedCost, haveConditions, type SizedRequest } from './routing/conditions.ts'
import { type OpenAttempt, openOnly } from './routing/open-attempt.ts'
import type { AttemptPolicy } from './routing/outcome.ts'
import type { ProviderPreferences } from './routing/preferences.ts'
import { explainCall, sizedRequest } from './sized-request.ts'

type Sticky = NonNullable<RoutingConfig['sticky']>

const UNBOUNDED: Bounds = { tries: 1, tries_made: 0, deadline: Number.POSITIVE_INFINITY }
export class PreparedCall<Work, Answer, M extends AnyMeter> implements Routing, Sender<Answer>, Try<M> {
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
  /** Of its response: those of its plan, and others that its caller adds. */
  declare headers: Record<string, string>
  /** Set once it is settled: `true`, or what resolves then. */
  settled: Promise<void> | true | undefined
  /** Whether its only attempt is read by the pipeline. */
  #isOnly = false
  readonly #input: unknown
  readonly #parts: ExecutionParts
  #earlier = 0
  #conditional: SizedRequest | undefined
  #hedge: { meter: M } | undefined

  constructor(
    family: Family<never, Work, Answer, M>,
    input: unknown,
    record: CallRecord,
    parts: ExecutionParts,
    plan: Plan,
  ) {
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
    if (plan.guards) guardCall(call, record, plan.guards)
    this.work = family.fit(model, input as never, call)
    if (call.capture?.is_recorded && family.texts) call.capture.input = family.texts(this.work)
    this.meter = family.meter(this.work)
  }

  send(): Promise<Answered<Work, Answer, M>> {
    return this.#parts.answer(this as never) as Promise<Answered<Work, Answer, M>>
  }

  /** The request, fitted to another model. Throws GatewayError. */
  fitTo(model: CatalogueModel): Work {
    const guards = this.#parts.plans.guardsOf(this.call.caller, model)
    if (guards) guardCall(this.call, this.record, guards, this.plan.guards)
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
    this.#conditional = undefined
    this.#hedge = undefined
    record.model = model.id
    record.requested = this.plan.requested.id
  }

  /** At the targets of its model, one after another. */
  execute(): Promise<Answer> {
    return this.call.guards ? executeGuarded(this, this.call.guards, () => this.#execute()) : this.#execute()
  }

  #execute(): Promise<Answer> {
    const { descriptor, work } = this
    if (descriptor.execute) return descriptor.execute(work, this.#execution())
    const waiting = descriptor.beforeSend?.(work, this.call)
    return waiting ? this.#executeAfter(waiting) : this.#attempt(descriptor.targets(work), this)
  }

  /** The same, but the only attempt of a call that nothing else may serve is sent, read and ended by the caller of this. */
  begin(): OpenAttempt | Promise<Answer> {
    const { plan, call, descriptor, work, model } = this
    const isPlain = plan.is_plain && model === plan.model && !call.options && !call.is_explained
    if (!isPlain || descriptor.execute || this.#parts.traceAttempt) return this.execute()
    const waiting = descriptor.beforeSend?.(work, call)
    if (waiting) return this.#executeAfter(waiting)
    const targets = descriptor.targets(work)
    if (this.is_observed) plan.only ??= this.#parts.router.only(model.targets, model.routing)
    const attempt = plan.only && this.is_observed ? openOnly(plan.only, this) : undefined
    this.#isOnly = attempt !== undefined
    return attempt ?? this.#attempt(targets, this)
  }

  /** What the only attempt has received. */
  read(received: Answer | Unread): Answer | Promise<Answer> {
    const { read } = this.descriptor as ByTarget<Work, Answer, M>
    return read ? read(received, this as Served<Work, M>) : (received as Answer)
  }

  get target(): Target | undefined {
    return this.record.target
  }

  /** For a family that does more than to send the call to one target. */
  #execution(): Execution<M> {
    const senderOf = <Part>(send: (target: Target, tried: Try<M>) => Promise<Part>): Sender<Part> => ({
      sendTo: (target, signal, attempt) =>
        this.#sendWithin({ target, signal, attempt }, () => send(target, this.#tryOf(signal, attempt))),
    })
    return { call: this.call, attempt: (all, send) => this.#attempt(all, senderOf(send)) }
  }

  async #executeAfter(waiting: Promise<void>): Promise<Answer> {
    await waiting
    return await this.#attempt((this.descriptor as ByTarget<Work, Answer, M>).targets(this.work), this)
  }

  #attempt<Part>(all: readonly Target[], sender: Sender<Part>): Promise<Part> {
    const { router } = this.#parts
    try {
      if (this.call.is_explained) explainCall(this, all, this.#parts)
      const { plan } = this
      const isOther = this.model !== plan.model
      const hasConditions = isOther ? haveConditions(all) : plan.has_conditions
      const targets = this.preferences || hasConditions ? acceptingTargets(all, this.#request()) : all
      const limits = this.#limits
      if (!limits?.hasLimits(targets)) return router.attempt(targets, this, sender)
      return this.#attemptWithin(limits, targets, sender)
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  async #attemptWithin<Part>(attempts: AttemptAdmission, targets: readonly Target[], sender: Sender<Part>) {
    return await this.#parts.router.attempt(await attempts.targetsWithinLimits(this.record, targets), this, sender)
  }

  sendTo(target: Target, signal: AbortSignal | undefined, attempt: Attempt): Promise<Answer> {
    const descriptor = this.descriptor as ByTarget<Work, Answer, M>
    const tried = this.#tryOf(signal, attempt)
    if (this.#isOnly) return descriptor.send(target, this.work, tried) as Promise<Answer>
    return this.#sendAndRead(descriptor, { target, signal, attempt }, tried)
  }

  #sendAndRead(descriptor: ByTarget<Work, Answer, M>, to: Sending, tried: Try<M>): Promise<Answer> {
    const sending = { target: to.target, work: this.work, tried }
    return this.#sendWithin(to, () => sendAndRead(descriptor, sending))
  }

  #tryOf(signal: AbortSignal | undefined, { is_hedge }: Attempt): Try<M> {
    const { call, meter } = this
    if (is_hedge) this.#hedge = { meter: this.descriptor.meter(this.work) }
    const counting = this.#hedge && is_hedge ? this.#hedge.meter : meter
    return signal ? { call, signal, meter: counting } : this
  }

  /** Within the limits of its provider, and in the trace of the call. */
  #sendWithin<Part>({ target, signal, attempt }: Sending, send: () => Promise<Part>): Promise<Part> {
    const { traceAttempt } = this.#parts
    const limits = this.#limits
    const limited = () =>
      limits?.limitsProvider(target.provider.id)
        ? limits.withinLimits(this.record, { target, signal: signal ?? this.signal, execute: send })
        : send()
    return traceAttempt ? traceAttempt(this.call, attempt, limited) : limited()
  }

  /** Of providers; undefined where none of the model has any. */
  get #limits(): AttemptAdmission | undefined {
    return this.model !== this.plan.model || this.plan.has_limited_targets ? this.#parts.attempts : undefined
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
    record.target = attempt.target
    record.serving = descriptor.attemptsAtOnce?.(this.work) ? new ServingTogether(record.serving, attempt) : attempt
    if (this.#hedge) this.#endOther(attempt.is_hedge, this.#hedge)
  }

  #endOther(isHedge: boolean, hedge: { meter: M }): void {
    const lost = this.record.attempts.findLast(({ is_hedge }) => is_hedge !== isHedge)
    // One that has failed before is noted already, unless its provider has refused it.
    if (lost && lost.error === undefined) this.#noteDoubt(lost.target, isHedge ? this.meter : hedge.meter)
    if (isHedge) this.meter = hedge.meter
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

  get ending(): Abortable {
    return this.call.ending ?? this.call.signal
  }

  get is_stream(): boolean {
    return this.record.is_stream
  }

  get is_hedged(): boolean {
    return (this.descriptor.is_hedged ?? true) && !this.call.options?.no_fallback
  }

  #request(): SizedRequest {
    this.#conditional ??= sizedRequest(this, this.#parts.clock)
    return this.#conditional
  }

  costOf(target: Target): number | undefined {
    const request = this.#request()
    return expectedCost(target, request.facts(), request.now())
  }

  affinity(sticky: Sticky): number | undefined {
    return this.strategy === undefined ? this.descriptor.affinity?.(this.work, this.call, sticky) : undefined
  }

  get preferences(): ProviderPreferences | undefined {
    return this.call.options?.provider
  }
}

type Sending = { target: Target; signal: AbortSignal | undefined; attempt: Attempt }
