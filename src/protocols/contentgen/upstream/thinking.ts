/** How much a model is to think: the house's words as the vendor's `thinkingConfig`. */

import type { JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../canonical.ts'
import type { ModelRule } from './model-rules.ts'

/** For models that count tokens, an effort in tokens: as the vendor's own OpenAI-shaped interface has them. */
const BUDGET_OF_EFFORT: Record<string, number> = { minimal: 1024, low: 1024, medium: 8192, high: 24_576 }
/** For models that have levels, up to how many tokens each of them is meant. */
const LEVEL_OF_BUDGET: [most: number, level: string][] = [
  [1024, 'minimal'],
  [4096, 'low'],
  [12_288, 'medium'],
]
const LEVELS = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']
/** As the model sees fit. */
const ADAPTIVE = -1

/** undefined where nothing is asked, or the model does not think. */
export function thinkingOf(request: ChatRequest, rule: ModelRule): JsonRecord | undefined {
  const { reasoning_effort: effort, reasoning_budget: budget, thinking_enabled, reasoning_summary } = request
  if (rule.thinking === 'none') return undefined
  const isOff = budget === 0 || effort === 'none' || (thinking_enabled === false && budget === undefined && !effort)
  if (isOff) {
    // Where thinking cannot be turned off, little comes nearest.
    if (rule.thinking === 'level') return { thinkingLevel: levelOf('minimal', rule) }
    return { thinkingBudget: rule.can_disable_thinking ? 0 : rule.budget[0] }
  }
  const isOn = effort !== undefined || budget !== undefined || thinking_enabled === true
  if (!isOn && reasoning_summary === undefined) return undefined
  const amount = isOn ? amountOf({ effort, budget }, rule) : {}
  // Without it the vendor thinks without a word.
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

/** The model's own level that is not below the wanted one, or its highest. */
function levelOf(requested: string, { levels }: ModelRule): string {
  const found = levels.find((level) => LEVELS.indexOf(level) >= LEVELS.indexOf(requested)) ?? levels.at(-1) ?? requested
  return found.toUpperCase()
}
