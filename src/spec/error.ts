/** Every error that the gateway returns, in one table, and the error format for clients. */
import Type from 'typebox'
import { orNull, titled } from './fields.ts'
import type { FailCode } from './task.ts'

type ErrorRow = { status: number; type: string; when: string }

/** Codes of one status and type, each with when it is thrown. */
const rows = <Code extends string>(status: number, type: string, codes: Record<Code, string>) => {
  const entries = Object.entries(codes).map(([code, when]) => [code, { status, type, when }])
  return Object.fromEntries(entries) as Record<Code, ErrorRow>
}

/** code -> HTTP status, wire type, and when it is thrown. */
export const ERRORS = {
  ...rows(400, 'invalid_request_error', {
    invalid_json: 'The body is not JSON.',
    missing_required_parameter: 'A required field is absent.',
    invalid_type: 'A field has the wrong JSON type.',
    invalid_value: 'A field is outside its range or set.',
    unsupported_parameter: 'The model does not support a field that changes the result.',
    unsupported_value: 'The model does not support this modality or value.',
    unsupported_endpoint: 'The model is of another family.',
    ambiguous_model: 'A short model name matches several models.',
    context_length_exceeded: 'The upstream reports that the input is too long.',
    input_media_invalid: 'An image or video of the request could not be fetched or read.',
    content_policy_violation: 'The upstream rejected the content.',
    content_blocked: 'A guard of the gateway blocked the content.',
    upstream_invalid_request: 'The upstream rejected the request.',
    thread_unsupported_request: 'No target stores threads; send the whole conversation.',
    previous_response_not_found: 'The token has no such response to continue from: not stored, deleted or expired.',
    invalid_stream_id: 'The `stream_id` is not 1 to 256 letters, digits, `_`, `-` or `.`.',
    websocket_stream_limit_reached:
      'The WebSocket connection has 32 names of streams: reuse one, or open another connection.',
    websocket_connection_limit_reached: 'The WebSocket connection is 60 minutes old: open another one.',
  }),
  ...rows(401, 'authentication_error', { invalid_api_key: 'The token is missing or not valid.' }),
  ...rows(403, 'permission_error', {
    address_not_allowed: 'The token may not be used from this address.',
    project_disabled: 'Its project is disabled, deleted or expired.',
    model_not_allowed: 'The token may not use this model or family.',
    origin_not_allowed: 'A page of this origin may not use MCP.',
  }),
  ...rows(404, 'invalid_request_error', {
    model_not_found: 'The token has no such model.',
    unknown_url: 'There is no such path.',
    response_not_found: 'The token has no such response.',
    conversation_not_found: 'The token has no such conversation, or no longer.',
    conversation_item_not_found: 'The conversation has no such item.',
    task_not_exist: 'The token has no such task.',
    file_not_found: 'The token has no such file, or no longer.',
    batch_not_found: 'The token has no such batch.',
    output_not_found: 'The task has no such file, not yet, or no longer.',
  }),
  ...rows(403, 'permission_error', { link_expired: 'The signed link has expired or was changed.' }),
  ...rows(405, 'invalid_request_error', { method_not_allowed: 'The path does not support this method.' }),
  ...rows(408, 'timeout_error', { request_timeout: 'The body did not arrive in time.' }),
  ...rows(410, 'invalid_request_error', { model_retired: 'The model is retired; `replaced_by` names its successor.' }),
  ...rows(409, 'invalid_request_error', {
    // 409 where OpenAI has 400: its libraries repeat a request after 409, since it stands for a lock.
    conversation_locked: 'Another response continues the conversation, or its items changed.',
    task_not_ended: 'The task has not ended; only ended tasks can be deleted.',
    batch_not_ended: 'The batch has not ended: it has no results and cannot be deleted.',
  }),
  ...rows(413, 'invalid_request_error', {
    request_too_large: 'The body exceeds the size limit or has too many values.',
  }),
  ...rows(415, 'invalid_request_error', {
    unsupported_media_type: 'The body has another type than the path takes (JSON, or a form), or is compressed.',
  }),
  ...rows(416, 'invalid_request_error', { range_not_satisfiable: 'The range begins after the end of the file.' }),
  ...rows(426, 'invalid_request_error', {
    upgrade_required: 'Only `/v1/responses`, `/v1/realtime` and the Live API take a WebSocket; or the path needs one.',
  }),
  ...rows(422, 'invalid_request_error', {
    idempotency_key_reused: 'The Idempotency-Key was used for another body within 24 hours.',
  }),
  ...rows(429, 'rate_limit_error', { rate_limit_exceeded: 'Too many requests, at the gateway or at the upstream.' }),
  ...rows(429, 'insufficient_quota', { insufficient_quota: "The token's budget is used up." }),
  ...rows(429, 'rate_limit_error', {
    // Not 507, which would count as a failure of the gateway.
    storage_quota_exceeded: 'The token stores too much.',
  }),
  ...rows(499, 'invalid_request_error', {
    client_closed_request: 'The client closed the connection first (in logs only).',
  }),
  ...rows(500, 'server_error', { internal_error: 'A fault of the gateway.' }),
  ...rows(502, 'upstream_error', {
    bad_upstream_response: 'The upstream failed, or its response could not be read.',
    upstream_auth: 'The upstream rejected the credentials of the gateway.',
    upstream_unreachable: 'The gateway could not connect to the upstream.',
    upstream_cut: 'The upstream closed the connection in the middle of its response.',
  }),
  ...rows(503, 'service_unavailable_error', { server_is_overloaded: 'The gateway or the upstream is overloaded.' }),
  ...rows(502, 'upstream_error', {
    output_gone: 'A file at the upstream no longer exists.',
    output_refused: 'A file at the upstream is too large, or at a forbidden address.',
  }),
  ...rows(503, 'service_unavailable_error', {
    shutting_down: 'The gateway is being stopped.',
    storage_unavailable: "The gateway's database cannot be reached or written now; `retry-after` is set.",
    no_available_channel: 'No target is available for the model now.',
  }),
  // Of the admin API.
  ...rows(403, 'permission_error', {
    permission_denied: 'The role of the administrator lacks the right.',
  }),
  ...rows(404, 'invalid_request_error', {
    object_not_found: 'There is no such object, or the administrator may not see it.',
  }),
  ...rows(409, 'invalid_request_error', {
    contents_unreadable: 'The contents are encrypted with a key that the gateway lacks, or were changed.',
    idempotency_key_in_use:
      'A request with this Idempotency-Key has no answer: it runs, or the gateway has stopped; look up whether it was carried out.',
  }),
  ...rows(412, 'invalid_request_error', {
    precondition_failed: 'The object was changed since the ETag in If-Match was read.',
  }),
  ...rows(504, 'timeout_error', { upstream_timeout: 'The upstream did not respond in time.' }),
} as const

export type ErrorCode = keyof typeof ERRORS

/** Codes that nothing but a change of the request or of a setting mends, though their status says otherwise. */
const PERMANENT: readonly ErrorCode[] = [
  'task_not_ended',
  'batch_not_ended',
  'insufficient_quota',
  'storage_quota_exceeded',
  'upstream_auth',
  'output_refused',
]

/** Client errors that may succeed later with the same request. Every other 4xx is permanent. */
const TRANSIENT_CLIENT_ERRORS = new Set([408, 409, 429])

/**
 * The value of `x-should-retry`; undefined: the header is not sent, and the client's own rule applies. The openai and
 * @anthropic-ai libraries retry 408, 409, 429 and 5xx by themselves and obey the header before that; programs built on
 * them (Claude Code) retry other statuses too, 401 among them, unless the header forbids it.
 */
export function shouldRetry(code: ErrorCode): boolean | undefined {
  const { status } = ERRORS[code]
  if (PERMANENT.includes(code)) return false
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

export const missingField = (param: string) =>
  new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })

/** `param`: the parameter of the request that has this value. */
export const invalidValue = (param: string, message: string) => new GatewayError('invalid_value', message, { param })

export const ErrorBody = titled('Error', {
  error: Type.Object({
    message: Type.String(),
    type: Type.String(),
    param: orNull(Type.String()),
    code: orNull(Type.String()),
    replaced_by: Type.Optional(Type.String()),
  }),
})
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
