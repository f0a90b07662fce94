/** Maps the canonical fields for reasoning to `thinking`, `effort` and `max_tokens`. */
import type { ChatRequest } from '../../shared/canonical.ts'
import type { ModelRule } from './model-rules.ts'

type Thinking = {
  max_tokens: number
  thinking?: { type: 'enabled'; budget_tokens: number } | { type: 'adaptive' } | { type: 'disabled' }
  effort?: string
}

/** The vendor requires a limit. Every one of its models accepts this one. */
const DEFAULT_MAX_TOKENS = 4096
/** The vendor's minimum. */
const MIN_BUDGET = 1024
/** Efforts that are allowed with thinking turned off. */
const EFFORTS_WITHOUT_THINKING = new Set(['low', 'medium', 'high'])
/** An effort in tokens, for models that take a token budget. */
const BUDGET_OF_EFFORT: Record<string, number> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
  max: 49_152,
}

type Case = {
  rule: ModelRule
  /** The limit, if the caller or the model's row has one. */
  limit: number | undefined
  /** When the vendor refuses thinking: a call is forced, or an earlier call was made without signed thinking. */
  thinkingRefused: 'always' | 'budget' | undefined
}

export function thinkingOf(request: ChatRequest, { rule, limit, thinkingRefused }: Case): Thinking {
  const { reasoning_effort: effort, reasoning_budget: budget, thinking_enabled } = request
  const max_tokens = limit ?? DEFAULT_MAX_TOKENS
  const isOff = budget === 0 || effort === 'none' || (thinking_enabled === false && budget === undefined)
  const isOn = !isOff && (effort !== undefined || budget !== undefined || thinking_enabled === true)
  const vendorEffort = effortOf(request, rule, isOff)
  const base: Thinking = { max_tokens, ...(vendorEffort === undefined ? {} : { effort: vendorEffort }) }
  if (rule.thinking === 'none') return base
  if (isOff) return rule.can_disable_thinking ? { ...base, thinking: { type: 'disabled' } } : base
  if (!isOn || thinkingRefused === 'always') return base
  const byBudget = rule.thinking === 'budget' || (rule.thinking === 'either' && budget !== undefined && budget > 0)
  if (!byBudget) return { ...base, thinking: { type: 'adaptive' } }
  if (thinkingRefused) return base
  const tokens = budget !== undefined && budget > 0 ? budget : (BUDGET_OF_EFFORT[effort ?? 'medium'] ?? MIN_BUDGET)
  // Thinking counts as output. The caller's limit applies; the default limit is raised by the budget.
  const outputLimit = limit === undefined ? DEFAULT_MAX_TOKENS + tokens : limit
  const budget_tokens = Math.min(Math.max(tokens, MIN_BUDGET), outputLimit - 1)
  if (budget_tokens < MIN_BUDGET) return base
  return { ...base, max_tokens: outputLimit, thinking: { type: 'enabled', budget_tokens } }
}

function effortOf(
  { reasoning_effort: effort }: ChatRequest,
  { efforts, can_disable_thinking }: ModelRule,
  isOff: boolean,
) {
  if (efforts.length === 0) return undefined
  // If thinking cannot be turned off, low effort is the closest.
  if (effort === undefined || effort === 'none') return isOff && !can_disable_thinking ? 'low' : undefined
  if (effort === 'minimal') return 'low'
  // The vendor refuses the two highest efforts with thinking turned off.
  return efforts.includes(effort) && !(isOff && !EFFORTS_WITHOUT_THINKING.has(effort)) ? effort : 'high'
}
