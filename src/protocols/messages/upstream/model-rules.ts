/** What the vendor's models take and refuse, by their names: rows of data, the first that fits. */
import { matchesGlob } from '../../../kit/glob.ts'

export type ModelRule = {
  /** Takes temperature, top_p and top_k. */
  sampling: boolean
  /** How it is asked to think: not at all, by a number of tokens, as it sees fit, or either way. */
  thinking: 'none' | 'budget' | 'adaptive' | 'either'
  /** Thinking can be turned off. */
  can_disable_thinking: boolean
  /** What `output_config.effort` may be. */
  efforts: readonly string[]
  /** Takes a tool_choice that demands a call. */
  forced_tools: boolean
  /** Takes system messages within the conversation. */
  inner_system: boolean
  /** Takes a schema for its answer, and strict tools. */
  json_schema: boolean
}

const THREE = ['low', 'medium', 'high'] as const
const FOUR = [...THREE, 'max'] as const
const FIVE = [...THREE, 'xhigh', 'max'] as const

const FIRST: ModelRule = {
  sampling: true,
  thinking: 'none',
  can_disable_thinking: true,
  efforts: [],
  forced_tools: true,
  inner_system: false,
  json_schema: false,
}
const BUDGET: ModelRule = { ...FIRST, thinking: 'budget' }
const SCHEMA: ModelRule = { ...BUDGET, json_schema: true }
const ADAPTIVE: ModelRule = { ...SCHEMA, sampling: false, thinking: 'adaptive', efforts: FIVE }
const NEWEST: ModelRule = { ...ADAPTIVE, inner_system: true }
const ALWAYS_THINKING: ModelRule = { ...NEWEST, can_disable_thinking: false }

/** Read from the vendor's documentation and its client libraries in November 2026. */
const ROWS: [globs: string[], rule: ModelRule][] = [
  [
    ['*claude-sonnet-5-5*', '*claude-opus-5-5*', '*claude-fable-5-1*', '*claude-fable-5-2*'],
    { ...ALWAYS_THINKING, forced_tools: false },
  ],
  [['*claude-fable-5*', '*claude-mythos-5*'], ALWAYS_THINKING],
  [['*claude-opus-4-8*', '*claude-opus-5*', '*claude-sonnet-5*', '*claude-haiku-5*'], NEWEST],
  [['*claude-opus-4-7*'], ADAPTIVE],
  [['*claude-opus-4-6*', '*claude-sonnet-4-6*'], { ...SCHEMA, thinking: 'either', efforts: FOUR }],
  [['*claude-opus-4-5*'], { ...SCHEMA, efforts: THREE }],
  [['*claude-sonnet-4-5*', '*claude-haiku-4-5*', '*claude-opus-4-1*'], SCHEMA],
  [['*claude-sonnet-4*', '*claude-opus-4*', '*claude-3-7*'], BUDGET],
  [['*claude-3*', '*claude-2*', '*claude-instant*'], FIRST],
  // A name that is new to us is most likely a new model.
  [['*claude-*'], NEWEST],
]
/** Other vendors that speak this shape: what they have in common. */
const OTHERS: ModelRule = SCHEMA

export const ruleOf = (model: string): ModelRule =>
  ROWS.find(([globs]) => globs.some((glob) => matchesGlob(glob, model.toLowerCase())))?.[1] ?? OTHERS
