/** The stages fit and attempt: a request fitted to its model, at the targets of that model and then of its fallbacks. */
import type { FallbackReason } from '../config/routing-schema.ts'
import type { Catalogue, CatalogueModel } from '../models/catalogue.ts'
import { type Bounds, boundsOf } from '../routing/bounds.ts'
import { isNoneAvailable } from '../routing/errors.ts'
import { type AttemptPolicy, mayTryNext } from '../routing/outcome.ts'
import { GatewayError } from '../spec/error.ts'
import type { Admission } from './admission.ts'
import type { CallRecord } from './call.ts'
import { type ExecutionParts, ModelExecution } from './execution.ts'
import { fallbacksOf, knownReason, reasonFor } from './fallback.ts'
import type { AnyMeter, Family, PreparedCall } from './family.ts'

type ExecutorParts = ExecutionParts & {
  catalogue: Pick<Catalogue, 'require'>
  admission: Pick<Admission, 'moveTo'>
}

type Preparing<Input, Work, Answer, M extends AnyMeter> = {
  family: Family<Input, Work, Answer, M>
  input: Input
  record: CallRecord
  model: CatalogueModel
  requested: CatalogueModel
}

export function createExecutor(parts: ExecutorParts) {
  const { catalogue, admission, clock } = parts

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
        const { model, work, metering } = prepared
        const served = { family, record, model, work, metering, bounds, has_fallback }
        return await family.execute(work, new ModelExecution(served, parts))
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
      policy: family.policy,
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
