/** Maps a provider's error to the gateway's codes: by status, by code, and, where vendors differ, by message. */
import { byName } from '../../kit/by-name.ts'
import type { Clock } from '../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { type ErrorCode, type ErrorDetail, GatewayError } from '../../spec/error.ts'

export type ErrorResponse = {
  provider: string
  /** The provider's name of the model; absent if the request named none. */
  model: string | undefined
  status: number
  headers: Headers | undefined
  /** The parsed body, or the data of an event. */
  payload: unknown
  clock: Clock
}

/** The members of an error that vendors have in common, wherever they put them. */
type ReportedError = { message: string; code: string; type: string; param: string; details: JsonRecord }

/** A provider's message is passed on for the caller's own mistakes. Longer ones quote the request. */
const MAX_MESSAGE_CHARACTERS = 1000
/** One day. No vendor's limit lasts longer, and clients give up much sooner. */
const MAX_RETRY_SECONDS = 86_400

/** Phrases for an input that is too long, of OpenAI, Anthropic, Gemini, Mistral, Groq, vLLM, llama.cpp, OpenRouter. */
const TOO_LONG =
  /context[ _-]?(length|window|size)|maximum context|prompt is too long|input is too long|too many (input )?tokens|reduce the length|input token count/i
/** Phrases for refused content, of OpenAI, Azure, OpenRouter, DashScope, Zhipu. */
const AGAINST_POLICY =
  /content[ _](management )?policy|content[ _]filter|safety (system|polic)|data_inspection_failed|inappropriate content|sensitive content|moderation_blocked|flagged (as|by|for)/i
/** Phrases for a bad key with a status other than 401 (Gemini and xAI return 400). */
const BAD_KEY = /(incorrect|invalid|missing|no) api[ _]key|api[ _]key (not valid|is invalid|not found|expired)/i
/** Phrases for an account without credit: a matter for the operator, not a limit on the caller's rate. */
const NO_CREDIT =
  /insufficient_quota|insufficient[ _](balance|credits?|funds)|exceeded your current quota|billing_hard_limit|credit balance|credits? (are )?exhausted|arrearage/i

/** An error that arrived as an HTTP response. */
export function errorFromResponse(refusal: ErrorResponse): GatewayError {
  const reported = readError(refusal.payload)
  const { status } = refusal
  const text = `${reported.code} ${reported.type} ${reported.message}`
  const error = (code: ErrorCode, message: string, more: ErrorDetail = {}) =>
    new GatewayError(code, message, { ...more, upstream_status: status })
  const upstream = `The upstream "${refusal.provider}"`
  const cleaned = scrub(reported.message)
  const param = /^[\w.[\]-]{1,100}$/.test(reported.param) ? { param: reported.param } : {} // a path only, which cannot quote the request
  const isCallerError = status === 400 || status === 422 || status === 403 || status === 413

  if (isCallerError && status !== 403 && TOO_LONG.test(text)) {
    return error(
      'context_length_exceeded',
      withKnownPhrase(cleaned || `${upstream} reports that the input is too long.`),
      param,
    )
  }
  if (isCallerError && (status === 403 ? isFlagged(reported) : AGAINST_POLICY.test(text))) {
    return error('content_policy_violation', cleaned || `${upstream} refused the content.`, param)
  }
  const retry_after = retryAfter(refusal, reported)
  const again = retry_after === undefined ? {} : { retry_after }
  // Gemini also calls a limit per minute a quota, but then says when to retry.
  if (status === 402 || (status < 500 && NO_CREDIT.test(text) && retry_after === undefined)) {
    // Not `insufficient_quota`, which would mean the caller's own budget, and not a rate limit, because waiting does
    // not help.
    return error(
      'no_available_channel',
      `${upstream} is unavailable: the gateway's account there is out of credit. Tell the operator.`,
    )
  }
  if (status === 401 || status === 403 || (status === 400 && BAD_KEY.test(text))) {
    return error(
      'upstream_auth',
      `${upstream} refused the gateway's credentials (${status}). This is not about your own token: tell the operator.`,
    )
  }
  if (status === 404 || (status === 400 && reported.code === 'model_not_found')) {
    const what = refusal.model === undefined ? 'the path' : `the model "${refusal.model}"`
    return error('bad_upstream_response', `${upstream} does not know ${what} (${status}). Tell the operator.`)
  }
  if (status === 400 || status === 422) {
    return error('upstream_invalid_request', cleaned || `${upstream} refused the request without a reason.`, param)
  }
  if (status === 413) return error('request_too_large', `${upstream} refused the request as too large.`)
  if (status === 429) return error('rate_limit_exceeded', `${upstream} is limiting requests now.`, again)
  // 524: the timeout of a proxy that many vendors use.
  if (status === 408 || status === 504 || status === 524)
    return error('upstream_timeout', `${upstream} timed out (${status}).`)
  // Anthropic returns 529 when it is overloaded, Groq 498.
  if (status === 503 || status === 529 || status === 498) {
    return error('server_is_overloaded', `${upstream} is overloaded (${status}).`, again)
  }
  if (status >= 300 && status < 400) {
    return error(
      'bad_upstream_response',
      `${upstream} redirects elsewhere (${status}), which is not followed: its key is for this address only. ` +
        'The operator should set base_url to the final address.',
    )
  }
  return error('bad_upstream_response', `${upstream} failed (${status}).`)
}

/** The status for each error type, for errors inside a response with status 200. */
const STATUS_OF_ERROR_TYPE = byName(
  [400, 'invalid_request_error context_length_exceeded content_filter content_policy_violation'],
  [401, 'authentication_error invalid_api_key'],
  [403, 'permission_error permission_denied'],
  [404, 'model_not_found not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error rate_limit_exceeded resource_exhausted insufficient_quota'],
  [503, 'server_is_overloaded service_unavailable unavailable'],
  [504, 'timeout_error upstream_timeout'],
  [529, 'overloaded_error'],
)

/** An error in place of a response: as an event of a stream, or with status 200. */
export function errorFromBody(refusal: Omit<ErrorResponse, 'status' | 'headers'>): GatewayError {
  const reported = readError(refusal.payload)
  const numeric = Number(reported.code) || Number(reported.details.status) || Number(reported.details.status_code)
  const status =
    numeric >= 400 && numeric < 600
      ? numeric
      : (STATUS_OF_ERROR_TYPE[reported.code.toLowerCase()] ?? STATUS_OF_ERROR_TYPE[reported.type.toLowerCase()] ?? 502)
  return errorFromResponse({ ...refusal, status, headers: undefined })
}

/** LangChain recognises an input that is too long by this phrase in the message; it does not read the code. */
const withKnownPhrase = (message: string): string =>
  message.includes('maximum context length') ? message : `The input exceeds the maximum context length: ${message}`

/**
 * Reads `{error:{..}}`, `{error:"text"}`, `{message,code}`, `{detail:".."}`, `{detail:[{msg,loc}]}`, and a list
 * around any of them.
 */
function readError(payload: unknown): ReportedError {
  const body = Array.isArray(payload) ? payload[0] : payload
  if (typeof body === 'string') return { message: body, code: '', type: '', param: '', details: {} }
  if (!isRecord(body)) return { message: '', code: '', type: '', param: '', details: {} }
  const inner: JsonRecord = isRecord(body.error) ? body.error : body
  const message =
    textOf(inner.message) || textOf(body.error) || textOf(body.message) || textOf(inner.detail) || textOf(inner.msg)
  return {
    message,
    code: scalarText(inner.code) || scalarText(inner.status),
    type: scalarText(inner.type) || scalarText(inner.status),
    param: scalarText(inner.param),
    details: inner,
  }
}

const scalarText = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return isRecord(value) && value.detail !== undefined ? textOf(value.detail) : ''
  return value
    .filter(isRecord)
    .map((item) => [Array.isArray(item.loc) ? item.loc.join('.') : '', scalarText(item.msg)].filter(Boolean).join(': '))
    .join('; ')
}

/** OpenRouter returns 403 both for a bad key and for flagged content. Only the latter has reasons. */
function isFlagged(reported: ReportedError): boolean {
  const metadata = reported.details.metadata
  return (
    ['content_filter', 'content_policy_violation'].includes(reported.code) ||
    (isRecord(metadata) && (metadata.flagged_input !== undefined || Array.isArray(metadata.reasons)))
  )
}

/**
 * A provider's message without anything that looks like a key, truncated. The provider's own secrets are already
 * removed (`scrubbing-transport.ts`), but vendors also quote them partly masked, and keys of others.
 */
export function scrub(text: string): string {
  return (
    text
      .replace(/(:\/\/)[^/@\s]+@/g, '$1[redacted]@') // credentials in a URL
      .replace(/([?&](?:key|api[-_]?key|token|access_token)=)[^&\s"']+/gi, '$1[redacted]')
      .replace(/\b(Bearer|Basic)\s+[\w.~+/=*-]{6,}/gi, '$1 [redacted]')
      // Keys with a known prefix, also partly masked as vendors quote them: the prefix, then eight characters or
      // more.
      .replace(/\b(?:sk|pk|rk|gsk|xai|nvapi|hf|csk|fw|tgp|pplx|r8|github_pat|ghp|key)[-_][\w*.-]{8,}/gi, '[redacted]')
      .replace(/\bAIza[\w*-]{8,}/g, '[redacted]')
      .slice(0, MAX_MESSAGE_CHARACTERS)
      .trim()
  )
}

/** Whole seconds to wait: `retry-after-ms`, `retry-after` (seconds or a date), or Google's RetryInfo in the body. */
function retryAfter({ headers, clock }: ErrorResponse, reported: ReportedError): number | undefined {
  const milliseconds = headers?.get('retry-after-ms')
  if (milliseconds && Number(milliseconds) >= 0) return bounded(Number(milliseconds) / 1000)
  const value = headers?.get('retry-after')
  if (value) {
    if (Number.isFinite(Number(value))) return bounded(Number(value))
    const date = Date.parse(value)
    if (Number.isFinite(date)) return bounded((date - clock.now()) / 1000)
  }
  const details = reported.details.details
  for (const detail of Array.isArray(details) ? details : []) {
    if (isRecord(detail) && typeof detail.retryDelay === 'string') return bounded(Number.parseFloat(detail.retryDelay))
  }
  return undefined
}

const bounded = (seconds: number): number | undefined =>
  Number.isFinite(seconds) ? Math.min(MAX_RETRY_SECONDS, Math.max(0, Math.ceil(seconds))) : undefined
