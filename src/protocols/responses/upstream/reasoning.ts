/** Maps the canonical fields for reasoning to the vendor's effort and summary. */
import type { JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { EFFORTS, type Effort, type ModelRule } from './model-rules.ts'

/** The vendor knows only efforts. Each row: the largest token budget for an effort. */
const EFFORT_OF_BUDGET: [tokens: number, effort: Effort][] = [
  [0, 'none'],
  [4096, 'low'],
  [16_384, 'medium'],
]

export function effortOf(request: ChatRequest, { reasons, efforts }: ModelRule): Effort | undefined {
  const { reasoning_effort: effort, reasoning_budget: budget, thinking_enabled } = request
  if (reasons === false) return undefined
  if (effort !== undefined) return nearest(effort, efforts)
  // A setting made for other vendors' models is not applied to a model that may not reason at all.
  if (reasons === 'unknown' || !efforts) return undefined
  if (budget !== undefined && budget >= 0) {
    return nearest(EFFORT_OF_BUDGET.find(([tokens]) => budget <= tokens)?.[1] ?? 'high', efforts)
  }
  if (budget === undefined && thinking_enabled === false) return efforts[0]
  // Models with optional reasoning do not reason unless it is requested.
  return (thinking_enabled || budget !== undefined) && efforts[0] === 'none' ? 'medium' : undefined
}

/** The highest accepted effort that does not exceed the requested one, or else the lowest. */
function nearest(requested: Effort, efforts: readonly Effort[] = EFFORTS): Effort | undefined {
  const most = EFFORTS.indexOf(requested)
  const below = efforts.findLast((one) => EFFORTS.indexOf(one) <= most)
  // `none` is no substitute for some effort.
  const some = below === 'none' && requested !== 'none' ? efforts[1] : below
  return some ?? efforts[0]
}

export function reasoningOf({ reasoning_summary: summary }: ChatRequest, rule: ModelRule, effort: Effort | undefined) {
  const reasoning: JsonRecord = {}
  if (effort !== undefined) reasoning.effort = effort
  if (summary !== undefined && rule.reasons !== false && effort !== 'none') reasoning.summary = summary
  return Object.keys(reasoning).length === 0 ? undefined : reasoning
}

/** The vendor refuses sampling parameters for models that reason, for some only while they reason. */
export const acceptsSampling = ({ sampling }: ModelRule, effort: Effort | undefined): boolean =>
  sampling === 'always' || (sampling === 'without-reasoning' && effort === 'none')
