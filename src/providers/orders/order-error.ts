/** Turns a provider's error response to an order, or to a poll of one, into an error that says whether the order was accepted. */
import type { ProviderKind } from '../../config/schema/provider-kinds.ts'
import type { Clock } from '../../kit/clock.ts'
import { asRecord, isRecord, type JsonRecord } from '../../kit/json.ts'
import { errorFromResponse } from '../../protocols/shared/provider-error.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import { neverSent } from '../upstream/transport-failure.ts'
import { acceptanceDetail } from './acceptance.ts'

/**
 * Classifies a response whose HTTP status alone would mislead: returns the status that fits, or `policy` for rejected
 * content. Undefined: the HTTP status is right, and a 2xx response is not an error.
 */
export type ErrorClassifier = (payload: unknown, status: number) => ErrorClass | undefined
export type ErrorClass = number | 'policy'

/** Of a vendor whose every response has a code of its own, where 0 is success. */
export const classifyByCode =
  (classes: Record<number, ErrorClass>): ErrorClassifier =>
  (payload, status) => {
    const code = isRecord(payload) ? Number(payload.code ?? 0) : 0
    if (code === 0 || Number.isNaN(code)) return undefined
    // An unknown code in a response that is otherwise successful: its meaning is unknown.
    return classes[code] ?? (status < 300 ? 502 : undefined)
  }

type OrderFailure = {
  provider: string
  /** The provider's own name of the ordered model; absent when a task was polled. */
  model: string | undefined
  status: number
  headers: Headers
  payload: unknown
  errorClass: ErrorClass | undefined
  /** The kind of provider that rejected the order; absent: this was a poll, or the order is accepted already. */
  order_kind?: ProviderKind | undefined
  /** The caller gets the error at once: with the code of a request, not that of a task. */
  isSynchronous?: true
  clock: Clock
}

export function orderError({ errorClass, order_kind, isSynchronous, ...response }: OrderFailure): GatewayError {
  const { provider, model, status, payload } = response
  if (status === 404 && model === undefined) {
    return new GatewayError('bad_upstream_response', `The upstream "${provider}" does not know the task (404).`, {
      upstream_status: 404,
    })
  }
  const error = errorFromResponse({
    ...response,
    status: errorClass === 'policy' ? 400 : (errorClass ?? status),
    payload: errorClass === 'policy' ? asPolicyError(payload) : payload,
  })
  const code = model === undefined || isSynchronous ? error.code : orderErrorCode(error.code, errorClass ?? status)
  const acceptance = order_kind === undefined ? {} : acceptanceDetail({ kind: order_kind, status, payload })
  return new GatewayError(code, error.message, { ...error.detail, upstream_status: status, ...acceptance })
}

/** The same error with the code of an order, by the status that the provider returned. */
export function asOrderError(error: GatewayError): GatewayError {
  const { upstream_status } = error.detail
  if (upstream_status === undefined || error.detail.accepted !== 'no') return error
  return new GatewayError(orderErrorCode(error.code, upstream_status), error.message, error.detail)
}

/** For a failure of what precedes an order. */
export const throwNeverSent = (thrown: unknown): never => {
  throw thrown instanceof GatewayError ? neverSent(thrown) : thrown
}

/** An order distinguishes two more cases: the account has no credit, and the provider does not know the model. */
function orderErrorCode(code: ErrorCode, errorClass: ErrorClass): ErrorCode {
  if (code === 'no_available_channel') return 'insufficient_quota'
  return errorClass === 404 ? 'model_not_found' : code
}

/** The same error body with the code that `errorFromResponse` recognises as rejected content. */
function asPolicyError(payload: unknown): JsonRecord {
  const body = asRecord(payload)
  const inner = isRecord(body.error) ? body.error : body
  const message = typeof body.error === 'string' ? { message: body.error } : {}
  return { error: { ...inner, ...message, code: 'content_policy_violation' } }
}
