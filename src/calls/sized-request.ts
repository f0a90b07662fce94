/** Computes the size of a request for conditions, prices and explanations: most calls are routed without it. */
import type { RoutingConfig } from '../config/schema/routing-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import type { AttemptAdmission } from './admission.ts'
import type { Call, CallRecord } from './call.ts'
import type { AnyMeter, Family } from './family.ts'
import type { RequestFacts, SizedRequest } from './routing/conditions.ts'
import { explainModel } from './routing/explain-model.ts'
import type { ProviderPreferences } from './routing/preferences.ts'
import type { Router } from './routing/router.ts'

/** Of the model that serves the call now. */
export function sizedRequest<Work>(
  { call, record, descriptor, work, preferences }: Sized<Work>,
  clock: Clock,
): SizedRequest {
  let facts: RequestFacts | undefined
  return {
    family: record.family,
    tags: call.options?.tags,
    project_id: call.caller.project_id,
    preferences,
    now: () => unixSeconds(clock),
    facts() {
      facts ??= descriptor.facts?.(work)
      return facts
    },
  }
}

type Sized<Work> = {
  call: Call
  record: CallRecord
  descriptor: Pick<Family<never, Work, unknown, AnyMeter>, 'facts' | 'affinity'>
  work: Work
  preferences: ProviderPreferences | undefined
}

type Explained<Work> = Sized<Work> & { model: CatalogueModel; has_fallback: boolean }

type Explaining = { attempts: AttemptAdmission | undefined; router: Pick<Router, 'candidates'>; clock: Clock }

/** Adds how the call is routed at this model, before it is sent. */
export function explainCall<Work>(
  prepared: Explained<Work>,
  targets: readonly Target[],
  { attempts, router, clock }: Explaining,
): void {
  const { call, record, model, has_fallback, descriptor, work } = prepared
  const request = {
    targets,
    routing: model.routing,
    conditional: sizedRequest(prepared, clock),
    options: call.options,
    now: clock.steady(),
    is_stream: record.is_stream,
    has_fallback,
    affinity: (sticky: NonNullable<RoutingConfig['sticky']>) => descriptor.affinity?.(work, call, sticky),
    limitOf: attempts && ((target: Target) => attempts.limitOf(record, target)),
  }
  record.decisions ??= []
  record.decisions.push({ model: model.id, ...explainModel(request, router) })
}
