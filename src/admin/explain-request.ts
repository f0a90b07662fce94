/** How a request would be routed, without sending it: for the command line and for administration. */
import Type from 'typebox'
import type { Call, CallOptions, Gate, Plan } from '../calls/call.ts'
import { fallbacksOf } from '../calls/fallback.ts'
import type { Plans } from '../calls/plan.ts'
import type { RequestFacts } from '../calls/routing/conditions.ts'
import { DECISION } from '../calls/routing/explain.ts'
import { explainModel } from '../calls/routing/explain-model.ts'
import type { Router } from '../calls/routing/router.ts'
import type { ServerSettings } from '../config/config.ts'
import { takeRoutingFields } from '../families/shared/call-options.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { JsonRecord } from '../kit/json.ts'
import type { Catalogue, CatalogueModel } from '../models/catalogue.ts'
import { statusAt } from '../models/lifecycle.ts'
import { servesFamily } from '../providers/families.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { ModelStatus } from '../spec/model.ts'
import type { Caller } from '../spec/token.ts'
import { NO_UNITS } from '../spec/usage.ts'
import { factsOf } from './explain-body.ts'

export type ExplainRequest = {
  model: string
  /** Absent: the first family of the model. */
  family?: EndpointFamily | undefined
  is_stream: boolean
  /** As the client would send it. Absent: nothing is known of it. */
  body?: JsonRecord | undefined
  /** Of `x-gatehouse-tags`. */
  tags?: readonly string[] | undefined
  /** Absent: one without limits. */
  caller?: Caller | undefined
}

export const EXPLANATION = {
  requested: Type.String(),
  model: Type.String({ description: 'The model that serves it.' }),
  family: Type.Unsafe<EndpointFamily>(Type.String()),
  status: Type.Unsafe<ModelStatus>(Type.String()),
  fallbacks: Type.Unsafe<CatalogueModel['fallbacks']>(Type.Record(Type.String(), Type.Array(Type.String()))),
  plan: Type.Object(
    {
      gates: Type.Array(Type.String(), { description: 'What may hold or refuse a call, in order.' }),
      guards: Type.Array(Type.String(), { description: 'What checks the contents of a call, in order.' }),
      cache: Type.String({ description: '`on`, or `off`: responses are cached only where the request asks for it.' }),
      headers: Type.Record(Type.String(), Type.String(), { description: 'Of each response.' }),
    },
    { description: 'What is decided once for all calls of a caller; guards are those of the tags.' },
  ),
  ...DECISION,
}
export type Explained = Type.Static<Type.TObject<typeof EXPLANATION>>

type Parts = {
  catalogue: Pick<Catalogue, 'find' | 'require' | 'hasProvider'>
  plans: Pick<Plans, 'of'>
  router: Pick<Router, 'candidates'>
  settings: ServerSettings
  /** Rate limits of providers. */
  attemptLimits: Pick<Gate, 'limitOfAttempt'>
  clock: Clock
}

/** Throws GatewayError as the request would. */
export function explainRequest(request: ExplainRequest, parts: Parts): Explained {
  const { catalogue, plans, router, attemptLimits, clock } = parts
  // Where only some callers may choose: as one of them.
  const settings = { ...parts.settings, caller_routing: parts.settings.caller_routing !== false }
  const { model: name, caller = OPERATOR } = request
  const family = request.family ?? catalogue.find(name, caller).supported_endpoint_types[0]
  if (!family) {
    throw new GatewayError('unsupported_endpoint', `No provider of the model "${name}" serves one of its families.`)
  }
  const plan = plans.of(caller, name, family)
  const { model } = plan
  const call: ExplainedCall = { caller, plan }
  if (request.tags) call.options = { tags: request.tags }
  const given = family === 'contentgen-compat' ? request.body : request.body && { model: name, ...request.body }
  const body = HAS_ROUTING_FIELDS.includes(family) ? takeRoutingFields(given, call, { catalogue, settings }) : given
  const fallbacks = fallbacksFor(model, call.options)
  let facts: RequestFacts | undefined
  const conditional = {
    family,
    tags: call.options?.tags,
    preferences: call.options?.provider,
    project_id: caller.project_id,
    now: () => unixSeconds(clock),
    facts() {
      facts ??= factsOf(body, family)
      return facts
    },
  }
  const decision = explainModel(
    {
      targets: model.targets,
      routing: model.routing,
      conditional,
      options: call.options,
      now: clock.steady(),
      is_stream: request.is_stream,
      has_fallback: (fallbacks.unavailable?.length ?? 0) > 0,
      serves: ({ provider }) => servesFamily(provider, family),
      limitOf: ({ provider }) => attemptLimits.limitOfAttempt?.(provider.id, ONE_REQUEST),
    },
    router,
  )
  const status = statusAt(model, unixSeconds(clock))
  return { requested: name, model: model.id, family, status, fallbacks, plan: viewOf(plan, request.tags), ...decision }
}

const viewOf = ({ gates, guards, model, headers }: Plan, tags: ExplainRequest['tags']): Explained['plan'] => ({
  gates: gates.map(({ name }) => name),
  guards: guards?.guardsWith(tags).map(({ name }) => name) ?? [],
  cache: model.cache === undefined ? 'off' : 'on',
  headers: { ...headers },
})

/** Its tokens are not counted. */
const ONE_REQUEST = { expected: NO_UNITS, most: NO_UNITS }

type ExplainedCall = Pick<Call, 'caller' | 'plan' | 'options'>

/** The families whose APIs have the fields `models` and `provider`. */
const HAS_ROUTING_FIELDS: readonly EndpointFamily[] = ['chatcompat', 'chatcompat-response']
const REASONS = ['unavailable', 'context_length', 'content_policy', 'deprecated'] as const

function fallbacksFor(model: CatalogueModel, options: CallOptions | undefined): Explained['fallbacks'] {
  const fallbacks: Explained['fallbacks'] = {}
  for (const reason of REASONS) {
    const names = fallbacksOf(model, reason, options)
    if (names.length > 0) fallbacks[reason] = names
  }
  return fallbacks
}

/** Whoever operates the gateway sees every model. */
export const OPERATOR: Caller = { token_id: '', mayUseModel: () => true, mayUseFamily: () => true }
