/** Rules of what each model of this API accepts, by name. The first matching row applies. */
import { matchesGlob } from '../../../kit/glob.ts'
import type { ChatRequest } from '../../shared/canonical.ts'

export type Effort = NonNullable<ChatRequest['reasoning_effort']>

export type ModelRule = {
  /** Whether it reasons and accepts an effort; `unknown`: the effort is sent only if the caller sets one. */
  reasons: boolean | 'unknown'
  /** Returns encrypted reasoning, which it needs again. Requesting it from other models is an error. */
  encrypts: boolean
  /** Accepts temperature and top_p: always, only with the effort `none`, or never. */
  sampling: 'always' | 'without-reasoning' | 'never'
  /** The accepted efforts in ascending order; absent if they are not known. */
  efforts?: readonly Effort[]
}

/** In ascending order. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const satisfies Effort[]
const THREE = ['low', 'medium', 'high'] as const
/** For models that reason and have no row here. */
export const COMMON_EFFORTS = THREE
const FOUR = [...THREE, 'xhigh'] as const
const FIVE = [...FOUR, 'max'] as const

const PLAIN: ModelRule = { reasons: false, encrypts: false, sampling: 'always' }
const reasoning = (...efforts: Effort[]): ModelRule => ({ reasons: true, encrypts: true, sampling: 'never', efforts })
const optionalReasoning = (...efforts: Effort[]): ModelRule => ({
  ...reasoning('none', ...efforts),
  sampling: 'without-reasoning',
})

/** Source: the documentation, the client libraries and the error messages of the API, November 2026. */
const ROWS: [globs: string[], rule: ModelRule][] = [
  [['gpt-5-chat*', '*non-reasoning*', 'gpt-3*', 'gpt-4*', 'chatgpt-*', 'ft:gpt-4*', 'ft:gpt-3*'], PLAIN],
  [['gpt-5.*-chat*', '*deep-research*'], reasoning('medium')],
  [['gpt-5-pro*'], reasoning('high')],
  [['gpt-5.*-pro*'], reasoning('medium', 'high', 'xhigh')],
  [['gpt-5.1-codex-max*'], reasoning(...FOUR)],
  [['gpt-5-codex*', 'gpt-5.1-codex*', 'codex-*', 'computer-use-*', 'o1*', 'o3*', 'o4*'], reasoning(...THREE)],
  [['gpt-5.*-codex*'], reasoning(...FOUR)],
  [['gpt-5', 'gpt-5-*'], reasoning('minimal', ...THREE)],
  [['gpt-5.1', 'gpt-5.1-*'], optionalReasoning(...THREE)],
  [['gpt-5.2*', 'gpt-5.3*', 'gpt-5.4*', 'gpt-5.5*'], optionalReasoning(...FOUR)],
  [['gpt-5.*'], optionalReasoning(...FIVE)],
  [['gpt-6-sol*', 'gpt-6-luna*', 'gpt-6.1-terra*'], reasoning('none', ...FIVE)],
  // An unknown name is most likely a new model.
  [['gpt-6*', 'gpt-7*', 'gpt-8*', 'gpt-9*'], reasoning(...FIVE)],
  // The first of these accept no effort, the later ones do.
  [['grok-4*', 'grok-5*'], { reasons: 'unknown', encrypts: true, sampling: 'always' }],
  [['gpt-oss*'], { reasons: true, encrypts: false, sampling: 'always', efforts: THREE }],
]
const OTHERS: ModelRule = { reasons: 'unknown', encrypts: false, sampling: 'always' }

/** For `vendor/model`, as routers write it, only the part after the last slash is matched. */
export function ruleOf(model: string): ModelRule {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return ROWS.find(([globs]) => globs.some((glob) => matchesGlob(glob, name)))?.[1] ?? OTHERS
}
