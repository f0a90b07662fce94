/** The errors that many operations have in common, for the OpenAPI document. */
import type { ErrorCode } from './error.ts'

/** The errors of any request that names a model. */
export const MODEL_REQUEST_ERRORS: ErrorCode[] = [
  'invalid_json',
  'missing_required_parameter',
  'invalid_type',
  'invalid_value',
  'unsupported_parameter',
  'unsupported_endpoint',
  'content_blocked',
  'ambiguous_model',
  'model_not_allowed',
  'model_not_found',
  'model_retired',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
]

/** The errors of any request that waits for an upstream. */
export const UPSTREAM_ERRORS: ErrorCode[] = [
  'upstream_invalid_request',
  'rate_limit_exceeded',
  'bad_upstream_response',
  'upstream_auth',
  'upstream_unreachable',
  'upstream_cut',
  'server_is_overloaded',
  'no_available_channel',
  'upstream_timeout',
]
