/** The stages fit and attempt: a request fitted to its model, at the targets of that model and then of its fallbacks. */
import type { FallbackReason, RoutingConfig } from '../config/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Catalogue, CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import type { Attempt, NextStep } from '../routing/attempt.ts'
import { type Bounds, boundsOf } from '../routing/bounds.ts'
import {
  eligibleTargets,
  expectedCost,
  noneEligible,
  type RequestFacts,
  type SizedRequest,
} from '../routing/conditions.ts'
import { isNoneAvailable } from '../routing/errors.ts'
import { explainModel } from '../routing/explain-model.ts'
import { type AttemptPolicy, mayTryNext } from '../routing/outcome.ts'
import type { Router } from '../routing/router.ts'
import type { AttemptObserver } from '../routing/try.ts'
import { GatewayError } from '../spec/error.ts'
import type { Admission, AttemptAdmission } from './admission.ts'
import type { Call, CallRecord } from './call.ts'
import type { CallEvents } from './events.ts'
import { fallbacksOf, knownReason, reasonFor } from './fallback.ts'
import type { AnyMeter, Execution, Family, PreparedCall } from './family.ts'

type ExecutorParts = {
  catalogue: Pick<Catalogue, 'require'>
  router: Pick<Router, 'attempt' | 'candidates'>
  admission: Pick<Admission, 'moveTo'>
  /** Undefined: providers have no limits. */
  attempts: AttemptAdmission | undefined
  /** Undefined: no traces are recorded. */
  traceAttempt?: TraceAttempt | undefined
  events: Pick<CallEvents, 'attemptStarted' | 'attemptFailed'>
  clock: Clock
}

/** Executes an attempt in the trace of its call. */
export type TraceAttempt = <Answer>(call: Call, attempt: Attempt, execute: () => Promise<Answer>) => Promise<Answer>

type Preparing<Input, Work, Answer, M extends AnyMeter> = {
  family: Family<Input, Work, Answer, M>
  input: Input
  record: CallRecord
  model: CatalogueModel
  requested: CatalogueModel
}

export function createExecutor(parts: ExecutorParts) {
  const { catalogue, router, admission, attempts, traceAttempt, events, clock } = parts

  /** The next model of the list that the caller may use and that accepts the request. */
  function nextModel<Input, Work, Answer, M extends AnyMeter>(
    names: string[],
    { family, input, record }: Preparing<Input, Work, Answer, M>,
  ): { model: CatalogueModel; work: Work } | undefined {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      try {
        const { model } = catalogue.require(name, record.family, record.call.caller)
        return { model, work: family.fit(model, input, record.call) }
      } catch (thrown) {
        // The caller may not use it, or it does not accept this request.
        if (!(thrown instanceof GatewayError)) throw thrown
      }
    }
    return undefined
  }

  function replaceModel<Input, Work, Answer, M extends AnyMeter>(
    { family, record, requested }: Preparing<Input, Work, Answer, M>,
    prepared: Pick<PreparedCall<Work, Answer, M>, 'model' | 'work' | 'metering'>,
    next: { model: CatalogueModel; work: Work },
  ): void {
    prepared.work = next.work
    prepared.model = next.model
    prepared.metering.current = family.meter(next.work)
    record.model = next.model.id
    record.requested = requested.id
  }

  /** The next model that also has place within its limits replaces that of the call. */
  async function fallBack<Input, Work, Answer, M extends AnyMeter>(
    names: string[],
    preparing: Preparing<Input, Work, Answer, M>,
    prepared: Pick<PreparedCall<Work, Answer, M>, 'model' | 'work' | 'metering'>,
  ): Promise<boolean> {
    for (let next = nextModel(names, preparing); next; next = nextModel(names, preparing)) {
      try {
        await admission.moveTo(preparing.family, { ...next, record: preparing.record, metering: prepared.metering })
        replaceModel(preparing, prepared, next)
        return true
      } catch (thrown) {
        if (!(thrown instanceof GatewayError)) throw thrown
      }
    }
    return false
  }

  /** What a family may do with the targets of the model that serves the call now. */
  function executionOf<Input, Work, Answer, M extends AnyMeter>(
    { family, record }: Preparing<Input, Work, Answer, M>,
    { model, work, metering }: PreparedCall<Work, Answer, M>,
    { bounds, has_fallback }: { bounds: Bounds; has_fallback: boolean },
  ): Execution<M> {
    const { call } = record
    /** Of the second one of two tries at the same time. */
    let hedge: { meter: M } | undefined
    const earlier = record.attempts.length
    const observer: AttemptObserver = {
      attemptStarted(attempt) {
        record.target = attempt.target
        const last = record.attempts.at(-1)
        if (last) last.next = record.attempts.length === earlier ? 'fallback_model' : stepTo(attempt, last)
        record.attempts.push(attempt)
        events.attemptStarted(record, attempt)
      },
      attemptFailed: (attempt, error) => events.attemptFailed(record, attempt, error),
      serving(attempt, end) {
        record.target = attempt.target
        record.endAttempt = record.endAttempt ? both(record.endAttempt, end) : end
        if (!hedge) return
        metering.lost = attempt.is_hedge ? metering.current : hedge.meter
        const lost = record.attempts.findLast(({ is_hedge }) => is_hedge !== attempt.is_hedge)
        if (lost) metering.lost_target = lost.target
        if (attempt.is_hedge) metering.current = hedge.meter
      },
    }
    let facts: RequestFacts | undefined
    const factsOf = () => {
      facts ??= family.facts?.(work)
      return facts
    }
    const conditional: SizedRequest = {
      family: record.family,
      tags: call.options?.tags,
      project_id: call.caller.project_id,
      preferences: call.options?.provider,
      now: () => unixSeconds(clock),
      facts: factsOf,
    }
    return {
      call,
      // Rejects, and does not throw, where no target takes the request.
      async attempt(all, execute) {
        const { targets: eligible, excluded } = eligibleTargets(all, conditional)
        const costOf = (target: Target) => expectedCost(target, factsOf(), conditional.now())
        const { sort: strategy, order, allow_fallbacks } = conditional.preferences ?? {}
        if (call.is_explained) explainTo(record, { family, model, work, targets: all, conditional, has_fallback })
        if (eligible.length === 0 && excluded.length > 0) throw noneEligible(excluded)
        const targets = attempts?.hasLimits(eligible) ? await attempts.targetsWithinLimits(record, eligible) : eligible
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
          costOf,
          affinity: (sticky) => (strategy === undefined ? family.affinity?.(work, call, sticky) : undefined),
          execute(target, signal, tried) {
            const { is_hedge } = tried
            const meter = is_hedge ? family.meter(work) : metering.current
            if (is_hedge) hedge = { meter }
            const run = () => execute(target, { signal, meter, is_hedge })
            const limited = () =>
              attempts?.hasLimits([target]) ? attempts.withinLimits(record, { target, signal, execute: run }) : run()
            return traceAttempt ? traceAttempt(call, tried, limited) : limited()
          },
          observer,
        })
      },
    }
  }

  /** Adds how the call is routed at one model, before it is sent. */
  function explainTo<Work>(
    record: CallRecord,
    { family, model, work, targets, conditional, has_fallback }: Explained<Work>,
  ): void {
    const { call, is_stream } = record
    const request = {
      targets,
      routing: model.routing,
      conditional,
      options: call.options,
      now: clock.steady(),
      is_stream,
      has_fallback,
      affinity: (sticky: Sticky) => family.affinity?.(work, call, sticky),
      limitOf: attempts && ((target: Target) => attempts.limitOf(record, target)),
    }
    record.decisions ??= []
    record.decisions.push({ model: model.id, ...explainModel(request, router) })
  }

  /** At the model of the call, then at its fallbacks: one number of tries and one deadline for all of them. */
  async function execute<Input, Work, Answer, M extends AnyMeter>(
    preparing: Preparing<Input, Work, Answer, M>,
    prepared: PreparedCall<Work, Answer, M>,
  ): Promise<Answer> {
    const { family, model, record } = preparing
    const first = prepared.model
    const bounds = boundsOf(first.routing, record.call.arrived, record.call.options)
    const namesFor = (reason: FallbackReason) =>
      fallbacksOf(first, reason, record.call.options).filter((name) => name !== model.id)
    /** By the reason of the first failure: fallbacks of a fallback are not followed. */
    let names: string[] | undefined
    for (;;) {
      const has_fallback = bounds.tries - record.attempts.length > 1 && (names ?? namesFor('unavailable')).length > 0
      try {
        return await family.execute(prepared.work, executionOf(preparing, prepared, { bounds, has_fallback }))
      } catch (thrown) {
        noteEnd(record, { thrown, policy: family.policy, bounds })
        const reason = reasonFor(thrown, family.policy)
        const { signal, options } = record.call
        if (reason === undefined || signal.aborted || options?.no_fallback) throw thrown
        names ??= namesFor(reason)
        const tries_made = record.attempts.length
        if (tries_made >= bounds.tries || clock.steady() >= bounds.deadline) throw thrown
        // Without a fallback that accepts it, a call that was not sent yet goes to a target that is avoided.
        const wasPassedOver = has_fallback && isNoneAvailable(thrown)
        if (!(await fallBack(names, preparing, prepared)) && !wasPassedOver) throw thrown
        bounds.tries_made = tries_made
      }
    }
  }

  /** Fits the request to its model. Throws GatewayError that names the field and its rule. */
  function prepare<Input, Work, Answer, M extends AnyMeter>(
    preparing: Preparing<Input, Work, Answer, M>,
  ): PreparedCall<Work, Answer, M> {
    const { family, input, record, model, requested } = preparing
    record.model = model.id
    const work = family.fit(model, input, record.call)
    if (record.call.capture?.is_recorded && family.texts) record.call.capture.input = family.texts(work)
    const metering = { current: family.meter(work) }
    const prepared: PreparedCall<Work, Answer, M> = {
      requested,
      record,
      metering,
      model,
      work,
      execute: () => execute(preparing, prepared),
    }
    const { options } = record.call
    const has = (reason: FallbackReason) => fallbacksOf(model, reason, options).length > 0
    const reason = options?.no_fallback
      ? undefined
      : knownReason(model, { has, leastTokens: () => family.leastTokens?.(work) }, clock)
    // Nothing is held yet.
    const next = reason && nextModel([...fallbacksOf(model, reason, options)], preparing)
    if (next) replaceModel(preparing, prepared, next)
    return prepared
  }

  return { prepare }
}

type Explained<Work> = {
  family: Pick<Family<never, Work, never, AnyMeter>, 'affinity'>
  model: CatalogueModel
  work: Work
  targets: readonly Target[]
  conditional: SizedRequest
  has_fallback: boolean
}

type Sticky = NonNullable<RoutingConfig['sticky']>

function stepTo({ target, is_hedge }: Attempt, { target: last }: Attempt): NextStep {
  if (is_hedge) return 'hedge'
  if (target.provider.id !== last.provider.id || target.model !== last.model) return 'other_target'
  return target.key === last.key ? 'same_target' : 'other_key'
}

/** Notes why no other target of the model followed the last one; a fallback may. */
function noteEnd(
  { attempts, call }: CallRecord,
  { thrown, policy, bounds }: { thrown: unknown; policy: AttemptPolicy; bounds: Bounds },
): void {
  const last = attempts.at(-1)
  if (!last) return
  if (call.signal.aborted) last.next = 'call_ended'
  else if (!mayTryNext(thrown, policy)) last.next = 'not_retried'
  else if (attempts.length >= bounds.tries) last.next = 'tries_used'
  else last.next = 'none_left'
}

type EndAttempt = NonNullable<CallRecord['endAttempt']>

const both =
  (one: EndAttempt, other: EndAttempt): EndAttempt =>
  (error) => {
    one(error)
    other(error)
  }
