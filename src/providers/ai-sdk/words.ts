/** What a vendor says in words: found wherever it puts them, cleaned, and looked through for refused content. */

import { isRecord } from '../../kit/json.ts'
import { scrub } from '../../protocols/provider-error.ts'
import type { FailCode } from '../../spec/task.ts'
import type { TaskProgress } from '../provider.ts'
import type { Account } from './account.ts'

export function wordsOf(payload: unknown): string {
  if (typeof payload === 'string') return payload
  if (Array.isArray(payload)) return payload.map(wordsOf).filter(Boolean).join('; ')
  if (!isRecord(payload)) return ''
  for (const name of ['error', 'detail', 'message', 'msg', 'details']) {
    const said = wordsOf(payload[name])
    if (said) return said
  }
  return ''
}

/** Wordings for refused content, in refusals and in the reasons of failed tasks. */
export const AGAINST_POLICY =
  /moderat|content[ _-]?(polic|filter)|safety|sensitive|inappropriate|nsfw|prohibited|responsible ai|usage guidelines|copyright|public figure|data_?inspection/i

type FailedParts = { account: Account; fail_code?: FailCode | undefined; reason: string }

/** A task's failure. */
export function failed({ account, fail_code, reason }: FailedParts): TaskProgress {
  const said = scrub(reason)
  return {
    status: 'FAILURE',
    fail_code: fail_code ?? (AGAINST_POLICY.test(said) ? 'content_policy_violation' : 'generation_failed'),
    fail_reason: said || `The upstream "${account.id}" failed without saying why.`,
  }
}
