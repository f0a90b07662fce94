/** What a vendor says when it refuses an order or a question about one: in our words, and whether the order was taken. */
import type { ProviderKind } from '../../config/provider-kinds.ts'
import type { Clock } from '../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { errorFromResponse } from '../../protocols/provider-error.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import { acceptanceDetail } from './acceptance.ts'

/**
 * What a vendor means by an answer whose status alone would mislead: the status that fits, or that the content was
 * refused. Undefined: the status tells, and in an answer of status 2xx there is no refusal.
 */
export type ErrorClassifier = (payload: unknown, status: number) => ErrorClass | undefined
export type ErrorClass = number | 'policy'

type OrderFailure = {
  provider: string
  /** The vendor's own name of the model that was ordered; absent when only a task was asked for. */
  model: string | undefined
  status: number
  headers: Headers
  payload: unknown
  errorClass: ErrorClass | undefined
  /** The kind of provider that an order was refused by; absent: it was a question, or the order is accepted already. */
  order_kind?: ProviderKind | undefined
  /** Whoever asked hears of it at once: in the words for that, not in those for a task. */
  isSynchronous?: true
  clock: Clock
}

export function orderError({
  errorClass: meaning,
  order_kind: kind,
  isSynchronous: isAnsweredAtOnce,
  ...said
}: OrderFailure): GatewayError {
  const { provider, model, status, payload } = said
  if (status === 404 && model === undefined) {
    return new GatewayError('bad_upstream_response', `The upstream "${provider}" does not know the task (404).`, {
      upstream_status: 404,
    })
  }
  const error = errorFromResponse({
    ...said,
    status: meaning === 'policy' ? 400 : (meaning ?? status),
    payload: meaning === 'policy' ? asPolicy(payload) : payload,
  })
  const code = model === undefined || isAnsweredAtOnce ? error.code : codeOfOrder(error.code, meaning ?? status)
  const taken = kind === undefined ? {} : acceptanceDetail({ kind, status, payload })
  return new GatewayError(code, error.message, { ...error.detail, upstream_status: status, ...taken })
}

/** The same refusal, of what was ordered instead: by the status that the vendor gave. */
export function asOrderError(error: GatewayError): GatewayError {
  const { upstream_status } = error.detail
  if (upstream_status === undefined || error.detail.accepted !== 'no') return error
  return new GatewayError(codeOfOrder(error.code, upstream_status), error.message, error.detail)
}

/** What of a refusal matters to an order: that the account there has no money, or that the model is not known there. */
function codeOfOrder(code: ErrorCode, meaning: ErrorClass): ErrorCode {
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
