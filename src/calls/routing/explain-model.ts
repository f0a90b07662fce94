/** How a request would be routed at one model: its targets chosen, priced and ordered as they are for a call. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Target } from '../../providers/provider.ts'
import type { boundsOf } from './bounds.ts'
import { eligibleTargets, expectedCost, type SizedRequest } from './conditions.ts'
import { type Decision, explain } from './explain.ts'
import type { Strategy } from './preferences.ts'
import type { Router } from './router.ts'

type ModelRequest = {
  targets: readonly Target[]
  routing: RoutingConfig
  conditional: SizedRequest
  options: Parameters<typeof boundsOf>[2]
  /** By the steady clock. */
  now: number
  is_stream: boolean
  has_fallback: boolean
  /** The number that calls of one conversation share; absent: not known. */
  affinity?(sticky: NonNullable<RoutingConfig['sticky']>): number | undefined
  /** Whether a target serves the kind of request; absent: all do. */
  serves?(target: Target): boolean
  /** The rate limit that its provider has reached; absent: there is none. */
  limitOf?: ((target: Target) => string | undefined) | undefined
}

export function explainModel(
  { targets: all, routing, conditional, affinity, limitOf, ...request }: ModelRequest,
  router: Pick<Router, 'candidates'>,
): Decision {
  const { targets, excluded } = withoutLimited(eligibleTargets(all, conditional), limitOf)
  const { sort, allow_fallbacks, order } = conditional.preferences ?? {}
  const settings = withSort(routing, sort)
  const candidates = router.candidates(targets, routing)
  const left = router.candidates(
    excluded.map(({ target }) => target),
    routing,
  )
  return explain({
    ...request,
    candidates,
    settings,
    costOf: (target) => expectedCost(target, conditional.facts(), conditional.now()),
    excluded: left.map((candidate, index) => ({ candidate, reason: excluded[index]?.reason ?? '' })),
    is_one_provider: allow_fallbacks === false && order === undefined,
    affinity: settings.sticky && targets.length > 1 ? affinity?.(settings.sticky) : undefined,
  })
}

/** Those at their rate limits are left out like those that do not take the request. */
function withoutLimited(
  { targets, excluded }: ReturnType<typeof eligibleTargets>,
  limitOf: ModelRequest['limitOf'],
): ReturnType<typeof eligibleTargets> {
  if (!limitOf) return { targets, excluded }
  const limited = targets.flatMap((target) => {
    const reason = limitOf(target)
    return reason === undefined ? [] : [{ target, reason }]
  })
  const left = targets.filter((target) => !limited.some((one) => one.target === target))
  return { targets: left, excluded: [...excluded, ...limited] }
}

/** A caller that asks for an order by price or latency gets it, also within a conversation. */
function withSort({ sticky, ...routing }: RoutingConfig, strategy: Strategy | undefined): RoutingConfig {
  if (strategy !== undefined) return { ...routing, strategy }
  return sticky === undefined ? routing : { ...routing, sticky }
}
