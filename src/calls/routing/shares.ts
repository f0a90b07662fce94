/** How the targets of each model share its calls by weight. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'

/** Shares the calls of a model among its targets by weight. */
export type Share = { credit: number }

/** The share of a target, by the id of its state. */
type Shares = (id: string) => Share

/** Shares are kept by the settings object of a model, and end with it: at most one for each of its targets. */
export function createShares(): (settings: RoutingConfig) => Shares {
  const models = new WeakMap<RoutingConfig, Map<string, Share>>()
  return (settings) => {
    const shares = models.getOrInsertComputed(settings, () => new Map())
    return (id) => shares.getOrInsertComputed(id, newShare)
  }
}

export const newShare = (): Share => ({ credit: 0 })

type Sharing = { share: Share; weight: number }

/**
 * Smooth weighted round robin, as nginx has it: exact shares, and no target twice in a row without need. Among the same
 * candidates no credit reaches their total weight; the bound is for targets that take part only in some calls.
 */
export function byWeight<Candidate extends Sharing>(candidates: readonly Candidate[]): Candidate | undefined {
  let total = 0
  let best: Candidate | undefined
  for (const candidate of candidates) {
    const { weight } = candidate
    candidate.share.credit += weight
    total += weight
    if (!best || candidate.share.credit > best.share.credit) best = candidate
  }
  if (best) best.share.credit -= total
  for (const { share } of candidates) share.credit = Math.min(total, Math.max(-total, share.credit))
  return best
}
