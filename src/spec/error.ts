/** Every error that the gateway returns, in one table, and the error format for clients. */
import Type from 'typebox'
import { ADMIN_ERRORS } from './admin-errors.ts'
import type { FailCode } from './task.ts'

export type ErrorRow = { status: number; type: string; retry?: boolean; when: string }

/**
 * code -> HTTP status, wire type, and when it is thrown. `retry` is sent as `x-should-retry` where it differs from
 * the result of `shouldRetry` for the status.
 */
export const ERRORS = {
  invalid_json: { status: 400, type: 'invalid_request_error', when: 'The body is not JSON.' },
  missing_required_parameter: { status: 400, type: 'invalid_request_error', when: 'A required field is absent.' },
  invalid_type: { status: 400, type: 'invalid_request_error', when: 'A field has the wrong JSON type.' },
  invalid_value: { status: 400, type: 'invalid_request_error', when: 'A field is outside its range or set.' },
  unsupported_parameter: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The model does not support a field that changes the result.',
  },
  unsupported_value: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The model does not support this modality or value.',
  },
  unsupported_endpoint: { status: 400, type: 'invalid_request_error', when: 'The model is of another family.' },
  ambiguous_model: { status: 400, type: 'invalid_request_error', when: 'A short model name matches several models.' },
  context_length_exceeded: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The upstream reports that the input is too long.',
  },
  input_media_invalid: {
    status: 400,
    type: 'invalid_request_error',
    when: 'An image or video of the request could not be fetched or read.',
  },
  content_policy_violation: { status: 400, type: 'invalid_request_error', when: 'The upstream rejected the content.' },
  upstream_invalid_request: { status: 400, type: 'invalid_request_error', when: 'The upstream rejected the request.' },
  thread_unsupported_request: {
    status: 400,
    type: 'invalid_request_error',
    when: 'No target of the model stores threads; send the whole conversation without `thread`.',
  },
  previous_response_not_found: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The token has no such response to continue from: it was never stored, or it was deleted, or it has expired.',
  },
  invalid_stream_id: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The `stream_id` of a WebSocket message is not 1 to 256 letters, digits, `_`, `-` or `.`.',
  },
  websocket_stream_limit_reached: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The WebSocket connection has 32 names of streams: reuse one, or open another connection.',
  },
  websocket_connection_limit_reached: {
    status: 400,
    type: 'invalid_request_error',
    when: 'The WebSocket connection is 60 minutes old: open another one.',
  },
  invalid_api_key: { status: 401, type: 'authentication_error', when: 'The token is missing or not valid.' },
  address_not_allowed: { status: 403, type: 'permission_error', when: 'The token may not be used from this address.' },
  project_disabled: { status: 403, type: 'permission_error', when: 'Its project is disabled, deleted or expired.' },
  model_not_allowed: { status: 403, type: 'permission_error', when: 'The token may not use this model or family.' },
  model_not_found: { status: 404, type: 'invalid_request_error', when: 'The token has no such model.' },
  unknown_url: { status: 404, type: 'invalid_request_error', when: 'There is no such path.' },
  response_not_found: { status: 404, type: 'invalid_request_error', when: 'The token has no such response.' },
  conversation_not_found: {
    status: 404,
    type: 'invalid_request_error',
    when: 'The token has no such conversation: it was deleted, or it has expired.',
  },
  conversation_item_not_found: {
    status: 404,
    type: 'invalid_request_error',
    when: 'The conversation has no such item.',
  },
  task_not_exist: { status: 404, type: 'invalid_request_error', when: 'The token has no such task.' },
  output_not_found: {
    status: 404,
    type: 'invalid_request_error',
    when: 'The task has no such file, not yet, or no longer.',
  },
  link_expired: { status: 403, type: 'permission_error', when: 'The signed link has expired or was changed.' },
  method_not_allowed: { status: 405, type: 'invalid_request_error', when: 'The path does not support this method.' },
  request_timeout: { status: 408, type: 'timeout_error', when: 'The body did not arrive in time.' },
  model_retired: {
    status: 410,
    type: 'invalid_request_error',
    when: 'The model is retired; `replaced_by` names its successor.',
  },
  // 409 where OpenAI has 400: its libraries repeat a request after 409, since it stands for a lock.
  conversation_locked: {
    status: 409,
    type: 'invalid_request_error',
    when: 'Another response continues the conversation, or its items were changed meanwhile.',
  },
  task_not_ended: {
    status: 409,
    type: 'invalid_request_error',
    retry: false,
    when: 'The task has not ended; only ended tasks can be deleted.',
  },
  request_too_large: {
    status: 413,
    type: 'invalid_request_error',
    when: 'The body exceeds the size limit or has too many values.',
  },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', when: 'The body is not application/json.' },
  range_not_satisfiable: {
    status: 416,
    type: 'invalid_request_error',
    when: 'The range begins after the end of the file.',
  },
  upgrade_required: {
    status: 426,
    type: 'invalid_request_error',
    when: 'The request asks for a WebSocket; only `/v1/responses` supports it.',
  },
  idempotency_key_reused: {
    status: 422,
    type: 'invalid_request_error',
    when: 'The Idempotency-Key was used for another body within 24 hours.',
  },
  rate_limit_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    when: 'Too many requests, at the gateway or at the upstream.',
  },
  insufficient_quota: {
    status: 429,
    type: 'insufficient_quota',
    retry: false,
    when: "The token's budget is used up.",
  },
  // Not 507, which would count as a failure of the gateway.
  storage_quota_exceeded: { status: 429, type: 'rate_limit_error', retry: false, when: 'The token stores too much.' },
  client_closed_request: {
    status: 499,
    type: 'invalid_request_error',
    when: 'The client closed the connection first (in logs only).',
  },
  internal_error: { status: 500, type: 'server_error', when: 'A fault of the gateway.' },
  bad_upstream_response: {
    status: 502,
    type: 'upstream_error',
    when: 'The upstream failed, or its response could not be read.',
  },
  upstream_auth: {
    status: 502,
    type: 'upstream_error',
    retry: false,
    when: 'The upstream rejected the credentials of the gateway.',
  },
  upstream_unreachable: { status: 502, type: 'upstream_error', when: 'The gateway could not connect to the upstream.' },
  upstream_cut: {
    status: 502,
    type: 'upstream_error',
    when: 'The upstream closed the connection in the middle of its response.',
  },
  server_is_overloaded: {
    status: 503,
    type: 'service_unavailable_error',
    when: 'The gateway or the upstream is overloaded.',
  },
  output_gone: { status: 502, type: 'upstream_error', when: 'A file at the upstream no longer exists.' },
  output_refused: {
    status: 502,
    type: 'upstream_error',
    retry: false,
    when: 'A file at the upstream is too large, or its address may not be fetched.',
  },
  shutting_down: { status: 503, type: 'service_unavailable_error', when: 'The gateway is being stopped.' },
  storage_unavailable: {
    status: 503,
    type: 'service_unavailable_error',
    when: "The gateway's database cannot be reached or written now; `retry-after` is set.",
  },
  no_available_channel: {
    status: 503,
    type: 'service_unavailable_error',
    when: 'No target is available for the model now.',
  },
  ...ADMIN_ERRORS,
  upstream_timeout: { status: 504, type: 'timeout_error', when: 'The upstream did not respond in time.' },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS

/** Client errors that may succeed later with the same request. Every other 4xx is permanent. */
const TRANSIENT_CLIENT_ERRORS = new Set([408, 409, 429])

/**
 * The value of `x-should-retry`; undefined: the header is not sent, and the client's own rule applies. The openai and
 * @anthropic-ai libraries retry 408, 409, 429 and 5xx by themselves and obey the header before that; programs built on
 * them (Claude Code) retry other statuses too, 401 among them, unless the header forbids it.
 */
export function shouldRetry(code: ErrorCode): boolean | undefined {
  const { status, retry }: ErrorRow = ERRORS[code]
  if (retry !== undefined) return retry
  return status < 500 && !TRANSIENT_CLIENT_ERRORS.has(status) ? false : undefined
}

export type ErrorDetail = {
  /** The field that caused the error, as a path: `messages[0].content`. */
  param?: string
  /** The time in seconds after which a retry is useful. */
  retry_after?: number
  /** For `model_retired`: the model to use. */
  replaced_by?: string
  /** The methods that the path supports, for `allow`. */
  allow?: string[]
  /** For `range_not_satisfiable`: the size of the file. */
  bytes?: number
  /** The HTTP status of the upstream, for the log. */
  upstream_status?: number
  /**
   * For a request that may cost money: whether the upstream may have accepted it. `no`: it was not sent, or the
   * upstream definitely refused it. Absent: unknown, so it must not be sent again.
   */
  accepted?: 'no'
  /** Whether a client should retry the same request, where the code alone does not decide it. */
  retry?: boolean
  /** The client has left: what it has asked for may still be finished. */
  has_left?: true
  /** The `fail_code` of a task that fails for the same reason, where the code alone does not decide it. */
  fail_code?: FailCode
  cause?: unknown
}

/** An expected error. Its message is for the client and contains no secret. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly detail: ErrorDetail
  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = 'GatewayError'
    this.code = code
    this.detail = detail
  }
  get status(): number {
    return ERRORS[this.code].status
  }
  get type(): string {
    return ERRORS[this.code].type
  }
}

export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()]),
      code: Type.Union([Type.String(), Type.Null()]),
      replaced_by: Type.Optional(Type.String()),
    }),
  },
  { title: 'Error' },
)
export type ErrorBody = Type.Static<typeof ErrorBody>

export function errorBody(error: GatewayError): ErrorBody {
  const body: ErrorBody = {
    error: { message: error.message, type: error.type, param: error.detail.param ?? null, code: error.code },
  }
  if (error.detail.replaced_by) body.error.replaced_by = error.detail.replaced_by
  return body
}

/** Receives unexpected errors, with their cause. */
type ErrorLog = { error(message: string, fields: { request_id: string }, cause: unknown): void }

/**
 * Returns a GatewayError unchanged. Anything else is a fault of the gateway: it is logged with its cause, and
 * returned without it. The cause of `storage_unavailable` is logged too.
 */
export function asGatewayError(
  thrown: unknown,
  { log, request_id }: { log: ErrorLog; request_id: string },
): GatewayError {
  if (thrown instanceof GatewayError) {
    if (thrown.code === 'storage_unavailable') log.error('storage unavailable', { request_id }, thrown.cause)
    return thrown
  }
  log.error('internal error', { request_id }, thrown)
  return new GatewayError('internal_error', `Something went wrong in the gateway; the log has it as ${request_id}.`)
}
