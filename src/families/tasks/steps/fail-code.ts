/** Maps an error to the `fail_code` of a task, and decides what may be tried next. */
import { ERRORS, type ErrorCode, type GatewayError } from '../../../spec/error.ts'
import type { FailCode } from '../../../spec/task.ts'

type Classification = {
  fail_code: FailCode
  /** `every`: each target would refuse it; `target`: another target may accept it; `passing`: this one may too, later. */
  refusal: 'every' | 'target' | 'passing'
}

const invalid: Classification = { fail_code: 'invalid_input', refusal: 'every' }
const unavailable: Classification = { fail_code: 'model_unavailable', refusal: 'target' }
const broken: Classification = { fail_code: 'upstream_error', refusal: 'passing' }

const CLASSIFICATIONS: Partial<Record<ErrorCode, Classification>> = {
  content_policy_violation: { fail_code: 'content_policy_violation', refusal: 'every' },
  input_media_invalid: { fail_code: 'input_media_invalid', refusal: 'every' },
  upstream_invalid_request: invalid,
  missing_required_parameter: invalid,
  invalid_type: invalid,
  invalid_value: invalid,
  unsupported_parameter: invalid,
  unsupported_value: invalid,
  context_length_exceeded: invalid,
  request_too_large: invalid,
  unsupported_media_type: invalid,
  upstream_auth: { fail_code: 'upstream_auth', refusal: 'target' },
  insufficient_quota: { fail_code: 'insufficient_quota', refusal: 'target' },
  model_not_found: unavailable,
  model_not_allowed: unavailable,
  model_retired: unavailable,
  unsupported_endpoint: unavailable,
  unknown_url: unavailable,
  method_not_allowed: unavailable,
  no_available_channel: { fail_code: 'model_unavailable', refusal: 'passing' },
  rate_limit_exceeded: { fail_code: 'upstream_rate_limited', refusal: 'passing' },
  output_gone: { fail_code: 'output_expired', refusal: 'target' },
  output_refused: { fail_code: 'output_expired', refusal: 'target' },
  internal_error: { fail_code: 'internal_error', refusal: 'target' },
  storage_unavailable: { fail_code: 'internal_error', refusal: 'passing' },
}

export const classifyError = ({ code }: GatewayError): Classification => CLASSIFICATIONS[code] ?? broken

/** Whether media that could not be fetched now may be fetched later: the code implies it, or a retry time is given. */
export const mayPass = ({ code, detail }: GatewayError): boolean =>
  detail.retry_after !== undefined ||
  (ERRORS[code].status >= 500 && code !== 'output_gone' && code !== 'output_refused')

/** Longer reasons add nothing useful. */
const MAX_REASON_LENGTH = 500

/**
 * A provider's message as a client may read it. URLs are removed, since they may hold keys and do not help; so is what
 * follows `Bearer`. Line breaks and other control characters would break a log or a table.
 */
export function reasonFrom(text: string | undefined): string {
  const clean = String(text ?? '')
    .replace(/\b(https?|wss?|gs|s3):\/\/[^\s"'<>)\]}]+/gi, '(address)')
    .replace(/\bBearer\s+\S+/gi, 'Bearer (secret)')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches them
    .replace(/[\u0000-\u001f\u007f]+/g, ' ')
    .trim()
  return clean.length <= MAX_REASON_LENGTH ? clean : `${clean.slice(0, MAX_REASON_LENGTH - 3)}...`
}
