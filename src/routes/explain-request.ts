/** How a request would be routed, without sending it: for the command line and for administration. */
import type { FallbackReason } from '../config/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { statusAt } from '../models/lifecycle.ts'
import { servesFamily } from '../providers/families.ts'
import { type Decision, explain } from '../routing/explain.ts'
import type { Router } from '../routing/router.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { ModelStatus } from '../spec/model.ts'
import type { Caller } from '../spec/token.ts'

export type ExplainRequest = {
  model: string
  /** Absent: the first family of the model. */
  family?: EndpointFamily | undefined
  is_stream: boolean
}

export type Explained = {
  requested: string
  /** The model that serves it: another one for an alias, and where a retired model redirects. */
  model: string
  family: EndpointFamily
  status: ModelStatus
  /** Ids of other models, by the reason for which they serve the request. */
  fallbacks: Partial<Record<FallbackReason, readonly string[]>>
} & Decision

type Parts = { catalogue: Pick<Catalogue, 'find' | 'require'>; router: Pick<Router, 'candidates'>; clock: Clock }

export function explainRequest(request: ExplainRequest, { catalogue, router, clock }: Parts): Explained {
  const name = request.model
  const family = request.family ?? catalogue.find(name, OPERATOR).supported_endpoint_types[0]
  if (!family) {
    throw new GatewayError('unsupported_endpoint', `No provider of the model "${name}" serves one of its families.`)
  }
  const { model } = catalogue.require(name, family, OPERATOR)
  const decision = explain({
    candidates: router.candidates(model.targets, model.routing),
    settings: model.routing,
    now: clock.steady(),
    is_stream: request.is_stream,
    has_fallback: (model.fallbacks.unavailable?.length ?? 0) > 0,
    serves: ({ provider }) => servesFamily(provider, family),
  })
  const status = statusAt(model, unixSeconds(clock))
  return { requested: name, model: model.id, family, status, fallbacks: model.fallbacks, ...decision }
}

/** Whoever operates the gateway sees every model. */
export const OPERATOR: Caller = { token_id: '', mayUseModel: () => true, mayUseFamily: () => true }
