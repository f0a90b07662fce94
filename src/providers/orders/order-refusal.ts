/** What a vendor says when it refuses an order or a question about one: in our words, and whether the order was taken. */
import type { ProviderKind } from '../../config/provider-kinds.ts'
import type { Clock } from '../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { refusalToError } from '../../protocols/provider-error.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import { takenBy } from './acceptance.ts'

/**
 * What a vendor means by an answer whose status alone would mislead: the status that fits, or that the content was
 * refused. Undefined: the status tells, and in an answer of status 2xx there is no refusal.
 */
export type Judge = (payload: unknown, status: number) => Meaning | undefined
export type Meaning = number | 'policy'

type Refused = {
  provider: string
  /** The vendor's own name of the model that was ordered; absent when only a task was asked for. */
  model: string | undefined
  status: number
  headers: Headers
  payload: unknown
  meaning: Meaning | undefined
  /** The kind of provider that an order was refused by; absent: it was a question, or the order is accepted already. */
  order_kind?: ProviderKind | undefined
  /** Whoever asked hears of it at once: in the words for that, not in those for a task. */
  isAnsweredAtOnce?: true
  clock: Clock
}

export function refused({ meaning, order_kind: kind, isAnsweredAtOnce, ...said }: Refused): GatewayError {
  const { provider, model, status, payload } = said
  if (status === 404 && model === undefined) {
    return new GatewayError('bad_upstream_response', `The upstream "${provider}" does not know the task (404).`, {
      upstream_status: 404,
    })
  }
  const error = refusalToError({
    ...said,
    status: meaning === 'policy' ? 400 : (meaning ?? status),
    payload: meaning === 'policy' ? asPolicy(payload) : payload,
  })
  const code = model === undefined || isAnsweredAtOnce ? error.code : codeOfOrder(error.code, meaning ?? status)
  const taken = kind === undefined ? {} : takenBy({ kind, status, payload })
  return new GatewayError(code, error.message, { ...error.detail, upstream_status: status, ...taken })
}

/** The same refusal, of what was ordered instead: by the status that the vendor gave. */
export function asOrderRefusal(error: GatewayError): GatewayError {
  const { upstream_status } = error.detail
  if (upstream_status === undefined || error.detail.taken !== 'no') return error
  return new GatewayError(codeOfOrder(error.code, upstream_status), error.message, error.detail)
}

/** What of a refusal matters to an order: that the account there has no money, or that the model is not known there. */
function codeOfOrder(code: ErrorCode, meaning: Meaning): ErrorCode {
  if (code === 'no_available_channel') return 'insufficient_quota'
  return meaning === 404 ? 'model_not_found' : code
}

/** The same refusal with the code by which our sheet knows refused content. */
function asPolicy(payload: unknown): JsonRecord {
  const body = isRecord(payload) ? payload : {}
  const inner = isRecord(body.error) ? body.error : body
  const message = typeof body.error === 'string' ? { message: body.error } : {}
  return { error: { ...inner, ...message, code: 'content_policy_violation' } }
}
