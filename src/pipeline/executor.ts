/** The stages fit and attempt: a request fitted to its model, at the targets of that model and then of its fallbacks. */
import type { FallbackReason } from '../config/routing-schema.ts'
import type { Catalogue, CatalogueModel } from '../models/catalogue.ts'
import { boundsOf } from '../routing/bounds.ts'
import { isNoneAvailable } from '../routing/errors.ts'
import { mayTryNext } from '../routing/outcome.ts'
import { GatewayError } from '../spec/error.ts'
import type { Admission } from './admission.ts'
import type { CallRecord } from './call.ts'
import { fallbacksOf, hasFallbacks, knownReason, reasonFor } from './fallback.ts'
import type { AnyMeter, Family } from './family.ts'
import { type ExecutionParts, PreparedCall } from './prepared-call.ts'

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

type Executor = {
  /** Fits the request to its model. Throws GatewayError that names the field and its rule. */
  prepare<Input, Work, Answer, M extends AnyMeter>(
    preparing: Preparing<Input, Work, Answer, M>,
  ): PreparedCall<Work, Answer, M>
  /** At the model of the call, then at its fallbacks: one number of tries and one deadline for all of them. Called once. */
  execute<Work, Answer, M extends AnyMeter>(prepared: PreparedCall<Work, Answer, M>): Promise<Answer>
}

export function createExecutor(parts: ExecutorParts): Executor {
  const { catalogue, admission, clock } = parts

  /** The next model of the list that the caller may use and that accepts the request. */
  function nextModel<Work, Answer, M extends AnyMeter>(
    names: string[],
    prepared: PreparedCall<Work, Answer, M>,
  ): { model: CatalogueModel; work: Work } | undefined {
    const { record } = prepared
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      try {
        const { model } = catalogue.require(name, record.family, record.call.caller)
        return { model, work: prepared.fitTo(model) }
      } catch (thrown) {
        // The caller may not use it, or it does not accept this request.
        if (!(thrown instanceof GatewayError)) throw thrown
      }
    }
    return undefined
  }

  /** The next model that also has place within its limits replaces that of the call. */
  async function fallBack<Work, Answer, M extends AnyMeter>(
    names: string[],
    prepared: PreparedCall<Work, Answer, M>,
  ): Promise<boolean> {
    const { descriptor, record, meter } = prepared
    for (let next = nextModel(names, prepared); next; next = nextModel(names, prepared)) {
      try {
        await admission.moveTo(descriptor, { ...next, record, meter })
        prepared.replaceModel(next)
        return true
      } catch (thrown) {
        if (!(thrown instanceof GatewayError)) throw thrown
      }
    }
    return false
  }

  /** Another model, where it is known before anything is sent that it is to serve the call. Nothing is held yet. */
  function replaceBeforehand<Work, Answer, M extends AnyMeter>(prepared: PreparedCall<Work, Answer, M>): void {
    const { model, descriptor, work, call } = prepared
    const { options } = call
    if (options?.no_fallback) return
    const reason = knownReason(model, {
      options,
      leastTokens: () => descriptor.leastTokens?.(work),
      clock,
    })
    const next = reason && nextModel([...fallbacksOf(model, reason, options)], prepared)
    if (next) prepared.replaceModel(next)
  }

  return {
    prepare({ family, input, record, model, requested }) {
      const { call } = record
      record.model = model.id
      const work = family.fit(model, input, call)
      if (call.capture?.is_recorded && family.texts) call.capture.input = family.texts(work)
      const prepared = new PreparedCall({ descriptor: family, input, record, requested, model, work }, parts)
      if (hasFallbacks(model, call)) replaceBeforehand(prepared)
      return prepared
    },

    async execute(prepared) {
      const { descriptor, record, model: first, chosen } = prepared
      const { call } = record
      const bounds = boundsOf(first.routing, call.arrived, call.options)
      prepared.bounds = bounds
      const namesFor = (reason: FallbackReason) =>
        fallbacksOf(first, reason, call.options).filter((name) => name !== chosen.id)
      /** By the reason of the first failure: fallbacks of a fallback are not followed. */
      let names: string[] | undefined
      for (;;) {
        const mayFallBack = hasFallbacks(first, call) && bounds.tries - record.attempts.length > 1
        prepared.has_fallback = mayFallBack && (names ?? namesFor('unavailable')).length > 0
        try {
          return await descriptor.execute(prepared.work, prepared)
        } catch (thrown) {
          noteEnd(prepared, thrown)
          const reason = reasonFor(thrown, descriptor.policy)
          if (reason === undefined || call.signal.aborted || call.options?.no_fallback) throw thrown
          names ??= namesFor(reason)
          const tries_made = record.attempts.length
          if (tries_made >= bounds.tries || clock.steady() >= bounds.deadline) throw thrown
          // Without a fallback that accepts it, a call that was not sent yet goes to a target that is avoided.
          const wasPassedOver = prepared.has_fallback && isNoneAvailable(thrown)
          if (!(await fallBack(names, prepared)) && !wasPassedOver) throw thrown
          bounds.tries_made = tries_made
        }
      }
    },
  }
}

/** Notes why no other target of the model followed the last one; a fallback may. */
function noteEnd<Work, Answer, M extends AnyMeter>(
  { record: { attempts, call }, policy, bounds }: PreparedCall<Work, Answer, M>,
  thrown: unknown,
): void {
  const last = attempts.at(-1)
  if (!last) return
  if (call.signal.aborted) last.next = 'call_ended'
  else if (!mayTryNext(thrown, policy)) last.next = 'not_retried'
  else if (attempts.length >= bounds.tries) last.next = 'tries_used'
  else last.next = 'none_left'
}
