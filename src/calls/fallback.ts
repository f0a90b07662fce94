/** Other models that serve a call which its own model cannot serve: which ones, for which reason, one after another. */
import type { FallbackReason } from '../config/schema/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Catalogue, CatalogueModel } from '../models/catalogue.ts'
import { statusAt } from '../models/lifecycle.ts'
import { GatewayError } from '../spec/error.ts'
import type { Admission } from './admission.ts'
import type { CallOptions } from './call.ts'
import type { AnyMeter } from './family.ts'
import type { Plans } from './plan.ts'
import type { PreparedCall } from './prepared-call.ts'
import { type AttemptPolicy, isFaultOfTarget, isNoneAvailable, mayTryNext } from './routing/outcome.ts'

type FallbackParts = {
  catalogue: Pick<Catalogue, 'require'>
  admission: Pick<Admission, 'moveTo'>
  plans: Pick<Plans, 'gatesOf'>
  clock: Clock
}

type Fallbacks = {
  /** Another model, where it is known before anything is sent that it is to serve the call. Nothing is held yet. */
  replaceBeforehand<Work, Answer, M extends AnyMeter>(prepared: PreparedCall<Work, Answer, M>): void
  /** At the model of the call, then at its fallbacks: one number of tries and one deadline for all of them. */
  execute<Work, Answer, M extends AnyMeter>(prepared: PreparedCall<Work, Answer, M>): Promise<Answer>
}

export function createFallbacks({ catalogue, admission, plans, clock }: FallbackParts): Fallbacks {
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
        const gates = plans.gatesOf(record.call.caller, next.model)
        await admission.moveTo(descriptor, { ...next, record, meter, gates, passed: prepared.gates })
        prepared.replaceModel(next)
        return true
      } catch (thrown) {
        if (!(thrown instanceof GatewayError)) throw thrown
      }
    }
    return false
  }

  return {
    replaceBeforehand(prepared) {
      const { model, descriptor, work, call } = prepared
      const { options } = call
      if (options?.no_fallback) return
      const leastTokens = () => descriptor.leastTokens?.(work)
      const reason = knownReason(model, { options, leastTokens, clock })
      const next = reason && nextModel([...fallbacksOf(model, reason, options)], prepared)
      if (next) prepared.replaceModel(next)
    },

    async execute(prepared) {
      const { descriptor, record, model: first, plan, bounds } = prepared
      const { call } = record
      const namesFor = (reason: FallbackReason) =>
        fallbacksOf(first, reason, call.options).filter((name) => name !== plan.model.id)
      /** By the reason of the first failure: fallbacks of a fallback are not followed. */
      let names: string[] | undefined
      for (;;) {
        const mayFallBack = bounds.tries - record.attempts.length > 1
        prepared.has_fallback = mayFallBack && (names ?? namesFor('unavailable')).length > 0
        try {
          return await prepared.execute()
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

type Ended = Pick<PreparedCall<never, never, AnyMeter>, 'record' | 'policy' | 'bounds'>

/** Notes why no other target of the model followed the last one; a fallback may. */
export function noteEnd({ record, policy, bounds }: Ended, thrown: unknown): void {
  const { attempts, call } = record
  const last = attempts.at(-1)
  // A stream that broke after its first part is served to its end: no target could have followed.
  if (!last || (record.is_stream && last.error === undefined)) return
  if (call.signal.aborted) last.next = 'call_ended'
  else if (!mayTryNext(thrown, policy)) last.next = 'not_retried'
  else if (attempts.length >= bounds.tries) last.next = 'tries_used'
  else last.next = 'none_left'
}

const NO_MODELS: readonly string[] = []

/** The models that serve a call for this reason: those that the caller names, or those of the model. */
export function fallbacksOf(
  { fallbacks }: CatalogueModel,
  reason: FallbackReason,
  options?: CallOptions,
): readonly string[] {
  if (reason === 'deprecated') return fallbacks.deprecated ?? NO_MODELS
  if (options?.models) return options.models
  return options?.provider?.allow_fallbacks === false ? NO_MODELS : (fallbacks[reason] ?? NO_MODELS)
}

type Known = {
  options: CallOptions | undefined
  /** The fewest tokens that the input of the call can have. */
  leastTokens(): number | undefined
  clock: Clock
}

/** Why another model is to serve a call before anything was sent. */
function knownReason(model: CatalogueModel, { options, leastTokens, clock }: Known): FallbackReason | undefined {
  const has = (reason: FallbackReason) => fallbacksOf(model, reason, options).length > 0
  if (has('deprecated') && statusAt(model, unixSeconds(clock)) !== 'active') return 'deprecated'
  if (model.context_tokens === undefined || !has('context_length')) return undefined
  return (leastTokens() ?? 0) > model.context_tokens ? 'context_length' : undefined
}

/** Why another model may serve a call that has failed; undefined: none may. */
function reasonFor(thrown: unknown, policy: AttemptPolicy): FallbackReason | undefined {
  if (!(thrown instanceof GatewayError)) return undefined
  if (thrown.code === 'context_length_exceeded') return 'context_length'
  if (thrown.code === 'content_policy_violation') return 'content_policy'
  return isFaultOfTarget(thrown) && mayTryNext(thrown, policy) ? 'unavailable' : undefined
}
