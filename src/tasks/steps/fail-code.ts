/** From an error to the `fail_code` that it is for a task, and to what may still be tried. */
import { ERRORS, type ErrorCode, type GatewayError } from '../../spec/error.ts'
import type { FailCode } from '../../spec/task.ts'

type Verdict = {
  fail_code: FailCode
  /** `every`: each target would refuse it; `target`: another may take it; `passing`: so may this one, later. */
  refusal: 'every' | 'target' | 'passing'
}

const invalid: Verdict = { fail_code: 'invalid_input', refusal: 'every' }
const unavailable: Verdict = { fail_code: 'model_unavailable', refusal: 'target' }
const broken: Verdict = { fail_code: 'upstream_error', refusal: 'passing' }

const VERDICTS: Partial<Record<ErrorCode, Verdict>> = {
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
}

export const verdictOf = ({ code }: GatewayError): Verdict => VERDICTS[code] ?? broken

/** Whether media that could not be had now may be had later: the error's kind says so, or it says when. */
export const mayPass = ({ code, detail }: GatewayError): boolean =>
  detail.retry_after !== undefined ||
  (ERRORS[code].status >= 500 && code !== 'output_gone' && code !== 'output_refused')

/** Longer reasons than this say nothing more. */
const LONGEST_REASON = 500

/**
 * A vendor's words as a client may read them. Its addresses may hold keys, and are no help; so may what follows
 * `Bearer`. Line breaks and other control characters would break a log or a table.
 */
export function reasonFrom(text: string | undefined): string {
  const clean = String(text ?? '')
    .replace(/\b(https?|wss?|gs|s3):\/\/[^\s"'<>)\]}]+/gi, '(address)')
    .replace(/\bBearer\s+\S+/gi, 'Bearer (secret)')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    .replace(/[\u0000-\u001f\u007f]+/g, ' ')
    .trim()
  return clean.length <= LONGEST_REASON ? clean : `${clean.slice(0, LONGEST_REASON - 3)}...`
}
