/** What a vendor's answer means in our words: a refusal, a failed task, a cleaned reason. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { FailCode } from '../../spec/task.ts'
import { refusalToError, scrub } from '../chatcompat/error.ts'
import { isRecord, type JsonRecord } from '../chatcompat/json.ts'
import type { TaskProgress } from '../provider.ts'
import { refusalTaken } from '../transport-failure.ts'
import type { Account } from './account.ts'
import type { Meaning } from './vendor.ts'

export type Refused = {
  account: Account
  clock: Clock
  log: Log
  answer: { status: number; headers: Headers; payload: unknown }
  meaning: Meaning
  /** The model that was ordered; absent when only a task was asked for. */
  model?: string
}

/** A refusal as an error. Of an order it says whether it was certainly not taken. */
export function refused({ account, clock, log, answer, meaning, model }: Refused): GatewayError {
  const { status, headers } = answer
  if (status === 404 && model === undefined) return lost(account)
  const isPolicy = meaning === 'policy'
  const error = refusalToError({
    provider: account.id,
    model,
    status: isPolicy ? 400 : (meaning ?? status),
    headers,
    payload: isPolicy ? asPolicy(answer.payload) : answer.payload,
    secrets: account.secrets,
    clock,
  })
  // An account without money is the operator's matter, and no reason to ask the same target again.
  const code = error.code === 'no_available_channel' ? 'insufficient_quota' : error.code
  if (error.status >= 500) log.warn('upstream refused', { provider: account.id, upstream_status: status, error: code })
  const judged = status < 300 && typeof meaning === 'number' ? meaning : status
  const taken = model === undefined ? {} : isPolicy ? { taken: 'no' as const } : refusalTaken(judged)
  return new GatewayError(code, error.message, { ...error.detail, upstream_status: status, ...taken })
}

export const lost = ({ id }: Account) =>
  new GatewayError('bad_upstream_response', `The upstream "${id}" does not know the task (404).`, {
    upstream_status: 404,
  })

/** The same refusal with the code by which our sheet knows refused content. */
function asPolicy(payload: unknown): JsonRecord {
  return { error: { message: wordsOf(payload), code: 'content_policy_violation' } }
}

/** What a vendor says, wherever it puts it. */
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

/** Wordings for refused content in the reasons of failed tasks. */
export const AGAINST_POLICY =
  /moderat|content[ _-]?(polic|filter)|safety|sensitive|inappropriate|nsfw|prohibited|responsible ai|usage guidelines|copyright|public figure|data_?inspection/i

type FailedParts = { account: Account; fail_code?: FailCode | undefined; reason: string }

/** A task's failure; the vendor's words are cleaned, and looked through for a refusal of the content. */
export function failed({ account, fail_code, reason }: FailedParts): TaskProgress {
  const said = scrub(reason, account.secrets)
  return {
    status: 'FAILURE',
    fail_code: fail_code ?? (AGAINST_POLICY.test(said) ? 'content_policy_violation' : 'generation_failed'),
    fail_reason: said || `The upstream "${account.id}" failed without saying why.`,
  }
}
