/** Rules of what each model of the vendor accepts, by name. The first matching row applies. */
import { matchesGlob } from '../../../kit/glob.ts'

export type ModelRule = {
  /** How the amount of thinking is set: not at all, by a number of tokens, or by a level. */
  thinking: 'none' | 'budget' | 'level'
  /** The smallest and the largest token budget. */
  budget: readonly [least: number, most: number]
  /** Thinking can be turned off. */
  can_disable_thinking: boolean
  /** The values of `thinkingLevel`, in ascending order. */
  levels: readonly string[]
  /** Accepts a `systemInstruction`. */
  instructions: boolean
  /** Accepts frequency and presence penalties. */
  penalties: boolean
  /** Accepts functions together with a search, and together with JSON as the response format. */
  mixes: boolean
  /** Accepts images and files in the result of a function. */
  result_media: boolean
  /** Refuses a call in the history without a signature. */
  requires_signatures: boolean
}

const THREE = ['low', 'medium', 'high'] as const
const FOUR = ['minimal', ...THREE] as const

const FIRST: ModelRule = {
  thinking: 'none',
  budget: [0, 24_576],
  can_disable_thinking: true,
  levels: FOUR,
  instructions: true,
  penalties: true,
  mixes: false,
  result_media: false,
  requires_signatures: false,
}
const BUDGET: ModelRule = { ...FIRST, thinking: 'budget', penalties: false }
const NEWEST: ModelRule = {
  ...FIRST,
  thinking: 'level',
  can_disable_thinking: false,
  mixes: true,
  result_media: true,
  requires_signatures: true,
}

/** Source: the vendor's documentation and client libraries, November 2026. */
const ROWS: [globs: string[], rule: ModelRule][] = [
  [['*gemma-*'], { ...FIRST, instructions: false }],
  [['*gemini-1*', '*gemini-2.0*', '*gemini-pro', '*gemini-pro-vision', '*learnlm*'], FIRST],
  [['*gemini-2.5*image*', '*gemini-2.5*tts*', '*gemini-2.5*audio*'], { ...BUDGET, thinking: 'none' }],
  [
    ['*gemini-2.5-pro*', '*gemini-2.5-computer-use*'],
    { ...BUDGET, budget: [128, 32_768], can_disable_thinking: false },
  ],
  [['*gemini-2.5-flash-lite*'], { ...BUDGET, budget: [512, 24_576] }],
  [['*gemini-2*', '*gemini-robotics-er-1.5*'], BUDGET],
  [['*gemini-3-pro-image*'], { ...NEWEST, thinking: 'budget', budget: [128, 32_768] }],
  [['*gemini-3-pro*'], { ...NEWEST, levels: ['low', 'high'] }],
  [['*gemini-4-hydrogen*'], { ...NEWEST, levels: [...THREE, 'xhigh'] }],
  [['*gemini-*flash-lite*'], NEWEST],
  [
    ['*gemini-*-pro*', '*gemini-pro-*', '*gemini-3.7-flash*', '*gemini-3.8-flash*', '*gemini-flash-latest*'],
    { ...NEWEST, levels: THREE },
  ],
  // An unknown name is most likely a new model.
  [['*gemini-*'], NEWEST],
]
/** The common features of other vendors' models that offer this API. */
const OTHERS: ModelRule = { ...FIRST, thinking: 'budget', mixes: true }

export const ruleOf = (model: string): ModelRule =>
  ROWS.find(([globs]) => globs.some((glob) => matchesGlob(glob, model.toLowerCase())))?.[1] ?? OTHERS
