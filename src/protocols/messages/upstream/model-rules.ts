/** Rules of what each model of the vendor accepts, by name. The first matching row applies. */
import { matchesGlob } from '../../../kit/glob.ts'

export type ModelRule = {
  /** Accepts temperature, top_p and top_k. */
  sampling: boolean
  /** How thinking is requested: not at all, by a number of tokens, adaptively, or in either way. */
  thinking: 'none' | 'budget' | 'adaptive' | 'either'
  /** Thinking can be turned off. */
  can_disable_thinking: boolean
  /** The values of `output_config.effort`. */
  efforts: readonly string[]
  /** Accepts a tool_choice that forces a call. */
  forced_tools: boolean
  /** Accepts system messages within the conversation. */
  inner_system: boolean
  /** Accepts a schema for the response, and strict tools. */
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

/** Source: the vendor's documentation and client libraries, November 2026. */
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
  // An unknown name is most likely a new model.
  [['*claude-*'], NEWEST],
]
/** The common features of other vendors that offer this API. */
const OTHERS: ModelRule = SCHEMA

export const ruleOf = (model: string): ModelRule =>
  ROWS.find(([globs]) => globs.some((glob) => matchesGlob(glob, model.toLowerCase())))?.[1] ?? OTHERS
