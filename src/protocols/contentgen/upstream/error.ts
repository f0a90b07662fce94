/** Maps errors of the contentgen API to the gateway's codes. */
import { byName } from '../../../kit/by-name.ts'
import { asRecord, type JsonRecord, memberOf, recordsIn } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { type ErrorResponse, errorFromResponse } from '../../shared/provider-error.ts'

/** The vendor's status names -> HTTP status. */
const STATUS_OF_NAME = byName(
  [400, 'INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [409, 'ABORTED ALREADY_EXISTS'],
  [429, 'RESOURCE_EXHAUSTED'],
  [499, 'CANCELLED'],
  [500, 'UNKNOWN INTERNAL DATA_LOSS'],
  [501, 'UNIMPLEMENTED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
)
/** Reasons that concern the key, whatever the status. */
const KEY_REASON = /^(API_KEY_|ACCESS_TOKEN_|CREDENTIALS_MISSING|SERVICE_DISABLED|CONSUMER_)/
/** A condition that the gateway's account does not meet: its location or its billing. */
const ACCOUNT = /location is not supported|free tier|billing|region|country/i
/** A file of the vendor that the request names and the key may not read. */
const STRANGE_FILE = /access the File /

/** An error response with a status. */
export function refusalOf(refusal: ErrorResponse): GatewayError {
  const reported = errorIn(refusal.payload)
  const reasons = recordsIn(reported.details).map(({ reason }) => reason)
  const message = typeof reported.message === 'string' ? reported.message : ''
  const { status, provider } = refusal
  if (reasons.some((reason) => typeof reason === 'string' && KEY_REASON.test(reason))) {
    return errorFromResponse({ ...refusal, status: 401 })
  }
  if (reported.status === 'FAILED_PRECONDITION' && ACCOUNT.test(message)) {
    return new GatewayError(
      'no_available_channel',
      `The upstream "${provider}" is unavailable: the gateway's account or location does not meet its conditions. Tell the operator.`,
      { upstream_status: status },
    )
  }
  if (status === 403 && STRANGE_FILE.test(message)) return errorFromResponse({ ...refusal, status: 400 })
  return errorFromResponse(refusal)
}

/** An error in place of a response: in a stream, or in a body with status 200. */
export function failureOf(refusal: Omit<ErrorResponse, 'status' | 'headers'>): GatewayError {
  const { code, status: reason } = errorIn(refusal.payload)
  const numeric = typeof code === 'number' && code >= 400 && code < 600 ? code : undefined
  const status = numeric ?? (typeof reason === 'string' ? STATUS_OF_NAME[reason] : undefined) ?? 502
  return refusalOf({ ...refusal, status, headers: undefined })
}

/** `{error: {..}}`, also inside a list. */
function errorIn(payload: unknown): JsonRecord {
  const body: unknown = Array.isArray(payload) ? payload[0] : payload
  return asRecord(memberOf(body, 'error'))
}
