/** How much a model is to reason: the house's words as the vendor's effort and summary. */

import type { JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../canonical.ts'
import { EFFORTS, type Effort, type ModelRule } from './model-rules.ts'

/** The vendor knows efforts only: budgets up to so many tokens. */
const EFFORT_OF_BUDGET: [tokens: number, effort: Effort][] = [
  [0, 'none'],
  [4096, 'low'],
  [16_384, 'medium'],
]

export function effortOf(request: ChatRequest, { reasons, efforts }: ModelRule): Effort | undefined {
  const { reasoning_effort: effort, reasoning_budget: budget, thinking_enabled } = request
  if (reasons === false) return undefined
  if (effort !== undefined) return nearest(effort, efforts)
  // A wish that was made for other vendors' models is none for a model that may not reason at all.
  if (reasons === 'unknown' || !efforts) return undefined
  if (budget !== undefined && budget >= 0) {
    return nearest(EFFORT_OF_BUDGET.find(([tokens]) => budget <= tokens)?.[1] ?? 'high', efforts)
  }
  if (budget === undefined && thinking_enabled === false) return efforts[0]
  // Models that may rest do, unless they are told to reason.
  return (thinking_enabled || budget !== undefined) && efforts[0] === 'none' ? 'medium' : undefined
}

/** The greatest effort that the model takes and that is not above the wish; where there is none, its least. */
function nearest(requested: Effort, efforts: readonly Effort[] = EFFORTS): Effort | undefined {
  const most = EFFORTS.indexOf(requested)
  const below = efforts.findLast((one) => EFFORTS.indexOf(one) <= most)
  // No reasoning is none in place of some.
  const some = below === 'none' && requested !== 'none' ? efforts[1] : below
  return some ?? efforts[0]
}

export function reasoningOf({ reasoning_summary: summary }: ChatRequest, rule: ModelRule, effort: Effort | undefined) {
  const reasoning: JsonRecord = {}
  if (effort !== undefined) reasoning.effort = effort
  if (summary !== undefined && rule.reasons !== false && effort !== 'none') reasoning.summary = summary
  return Object.keys(reasoning).length === 0 ? undefined : reasoning
}

/** The vendor refuses sampling for models that reason, some only while they do. */
export const acceptsSampling = ({ sampling }: ModelRule, effort: Effort | undefined): boolean =>
  sampling === 'always' || (sampling === 'at-rest' && effort === 'none')
