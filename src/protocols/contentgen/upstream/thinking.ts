/** Maps the canonical fields for reasoning to `thinkingConfig`. */
import type { JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import type { ModelRule } from './model-rules.ts'

/** An effort in tokens, for models with a token budget: the values of the vendor's own OpenAI-shaped API. */
const BUDGET_OF_EFFORT: Record<string, number> = { minimal: 1024, low: 1024, medium: 8192, high: 24_576 }
/** The largest token budget for each level, for models with levels. */
const LEVEL_OF_BUDGET: [most: number, level: string][] = [
  [1024, 'minimal'],
  [4096, 'low'],
  [12_288, 'medium'],
]
const LEVELS = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']
/** The model decides. */
const ADAPTIVE = -1

/** Returns undefined if the request sets nothing, or the model does not think. */
export function thinkingOf(request: ChatRequest, rule: ModelRule): JsonRecord | undefined {
  const { reasoning_effort: effort, reasoning_budget: budget, thinking_enabled, reasoning_summary } = request
  if (rule.thinking === 'none') return undefined
  const isOff = budget === 0 || effort === 'none' || (thinking_enabled === false && budget === undefined && !effort)
  if (isOff) {
    // If thinking cannot be turned off, the lowest level is the closest.
    if (rule.thinking === 'level') return { thinkingLevel: levelOf('minimal', rule) }
    return { thinkingBudget: rule.can_disable_thinking ? 0 : rule.budget[0] }
  }
  const isOn = effort !== undefined || budget !== undefined || thinking_enabled === true
  if (!isOn && reasoning_summary === undefined) return undefined
  const amount = isOn ? amountOf({ effort, budget }, rule) : {}
  // Without this the provider returns no thoughts.
  return { ...amount, includeThoughts: true }
}

type RequestedThinking = { effort: ChatRequest['reasoning_effort']; budget: number | undefined }

function amountOf({ effort, budget }: RequestedThinking, rule: ModelRule): JsonRecord {
  const isCounted = budget !== undefined && budget !== ADAPTIVE
  if (rule.thinking === 'level') {
    const requested = isCounted ? (LEVEL_OF_BUDGET.find(([most]) => budget <= most)?.[1] ?? 'high') : effort
    return requested === undefined ? {} : { thinkingLevel: levelOf(requested, rule) }
  }
  const [least, most] = rule.budget
  const tokens = isCounted ? budget : effort === undefined ? ADAPTIVE : (BUDGET_OF_EFFORT[effort] ?? most)
  return { thinkingBudget: tokens === ADAPTIVE ? ADAPTIVE : Math.min(most, Math.max(least, tokens)) }
}

/** The lowest of the model's levels that is not below the requested one, or its highest. */
function levelOf(requested: string, { levels }: ModelRule): string {
  const found = levels.find((level) => LEVELS.indexOf(level) >= LEVELS.indexOf(requested)) ?? levels.at(-1) ?? requested
  return found.toUpperCase()
}
