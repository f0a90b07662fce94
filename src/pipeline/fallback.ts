/** Which models serve a call that its own model cannot serve, and why. */
import type { FallbackReason } from '../config/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { statusAt } from '../models/lifecycle.ts'
import { type AttemptPolicy, isFaultOfTarget, mayTryNext } from '../routing/outcome.ts'
import { GatewayError } from '../spec/error.ts'
import type { Call, CallOptions } from './call.ts'

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

/** Whether any other model may serve a call: most models have none, and most callers name none. */
export function hasFallbacks({ fallbacks }: CatalogueModel, { options }: Pick<Call, 'options'>): boolean {
  if (options?.models !== undefined) return true
  for (const _ in fallbacks) return true
  return false
}

type Known = {
  options: CallOptions | undefined
  /** The fewest tokens that the input of the call can have. */
  leastTokens(): number | undefined
  clock: Clock
}

/** Why another model is to serve a call before anything was sent. */
export function knownReason(model: CatalogueModel, { options, leastTokens, clock }: Known): FallbackReason | undefined {
  const has = (reason: FallbackReason) => fallbacksOf(model, reason, options).length > 0
  if (has('deprecated') && statusAt(model, unixSeconds(clock)) !== 'active') return 'deprecated'
  if (model.context_tokens === undefined || !has('context_length')) return undefined
  return (leastTokens() ?? 0) > model.context_tokens ? 'context_length' : undefined
}

/** Why another model may serve a call that has failed; undefined: none may. */
export function reasonFor(thrown: unknown, policy: AttemptPolicy): FallbackReason | undefined {
  if (!(thrown instanceof GatewayError)) return undefined
  if (thrown.code === 'context_length_exceeded') return 'context_length'
  if (thrown.code === 'content_policy_violation') return 'content_policy'
  return isFaultOfTarget(thrown) && mayTryNext(thrown, policy) ? 'unavailable' : undefined
}
