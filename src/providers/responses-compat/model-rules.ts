/** What the models of this API take and refuse, by their names: rows of data, the first that fits. */
import { matchesGlob } from '../../kit/glob.ts'
import type { ChatRequest } from '../../spec/chat-request.ts'

export type Effort = NonNullable<ChatRequest['reasoning_effort']>

export type ModelRule = {
  /** Whether it reasons and takes an effort; `unknown`: only where the caller names one. */
  reasons: boolean | 'unknown'
  /** Gives its reasoning in an encrypted form, which it wants back; asked of any other model, that is an error. */
  encrypts: boolean
  /** Takes temperature and top_p: always, only with the effort `none`, or never. */
  sampling: 'always' | 'at-rest' | 'never'
  /** The least effort that it takes, for callers who want no reasoning. */
  least?: Effort
}

const PLAIN: ModelRule = { reasons: false, encrypts: false, sampling: 'always' }
const REASONING: ModelRule = { reasons: true, encrypts: true, sampling: 'never', least: 'low' }
const MINIMAL: ModelRule = { ...REASONING, least: 'minimal' }
const RESTING: ModelRule = { ...REASONING, sampling: 'at-rest', least: 'none' }
const HIGH: ModelRule = { ...REASONING, least: 'high' }

/** Read from the documentation and the client libraries of the API in November 2026. */
const ROWS: [globs: string[], rule: ModelRule][] = [
  [['gpt-5-chat*', '*non-reasoning*', 'gpt-3*', 'gpt-4*', 'chatgpt-*', 'ft:gpt-4*', 'ft:gpt-3*'], PLAIN],
  [['gpt-5-pro*'], HIGH],
  [['gpt-5-codex*', 'codex-*', 'computer-use-*', 'o1*', 'o3*', 'o4*', '*deep-research*'], REASONING],
  [['gpt-5.*-pro*'], { ...REASONING, least: 'medium' }],
  [['gpt-5', 'gpt-5-*'], MINIMAL],
  // A name that is new to us is most likely a new model.
  [['gpt-5.*', 'gpt-6*', 'gpt-7*', 'gpt-8*', 'gpt-9*'], RESTING],
  [['grok-4*', 'grok-5*'], { reasons: true, encrypts: true, sampling: 'always' }],
  [['gpt-oss*', 'grok-3-mini*'], { reasons: true, encrypts: false, sampling: 'always', least: 'low' }],
]
/** Models that are not known here. */
const OTHERS: ModelRule = { reasons: 'unknown', encrypts: false, sampling: 'always' }

/** `vendor/model`, as routers write it, is looked at from its last slash on. */
export function ruleOf(model: string): ModelRule {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return ROWS.find(([globs]) => globs.some((glob) => matchesGlob(glob, name)))?.[1] ?? OTHERS
}
