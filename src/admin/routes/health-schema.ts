/** How the admin API shows targets: their weight and state, and what the router knows of their health. */
import Type from 'typebox'
import type { LiveOverrides } from '../../calls/routing/live-overrides.ts'
import type { Router } from '../../calls/routing/router.ts'
import { TargetHealth, targetHealth } from '../../calls/routing/target-health.ts'
import { stateId, targetName } from '../../calls/routing/target-state.ts'
import type { Clock } from '../../kit/clock.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { Target } from '../../providers/provider.ts'
import { orNull, titled } from '../../spec/fields.ts'

export const TargetSchema = titled('Target', {
  id: Type.String({ description: '`provider/model`, with `#key` where the provider has several keys.' }),
  provider: Type.String(),
  model: Type.String({ description: 'The name of the model at the provider.' }),
  key: orNull(Type.String({ description: 'The name of the key.' })),
  priority: Type.Integer(),
  weight: Type.Number(),
  weight_from: Type.String({ description: '`configuration` or `override`.' }),
  is_full: Type.Boolean({ description: 'Its provider has as many open calls as it may.' }),
  health: TargetHealth,
})
type TargetView = Type.Static<typeof TargetSchema>

export type TargetViewParts = { router: Pick<Router, 'candidates'>; overrides: LiveOverrides; clock: Clock }

/** The targets of a model. They are only looked at: nothing is counted. */
export function targetViews(model: CatalogueModel, { router, overrides, clock }: TargetViewParts): TargetView[] {
  return router.candidates(model.targets, model.routing).map(({ target, state, weight, limiter }) => {
    const { provider, priority = 0, key = null } = target
    return {
      id: targetId(target),
      provider: provider.id,
      model: target.model,
      key,
      priority,
      weight,
      weight_from: weight === (target.weight ?? 1) ? 'configuration' : 'override',
      is_full: !(limiter?.isFree() ?? true),
      health: targetHealth({ ...state, blocked: overrides.current().stateOf(target) }, clock),
    }
  })
}

export const targetId = (target: Target): string => (target.key === undefined ? targetName(target) : stateId(target))
