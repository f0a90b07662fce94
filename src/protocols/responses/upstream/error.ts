/** Maps errors of the Responses API to the gateway's codes. */
import { byName } from '../../../kit/by-name.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { GatewayError } from '../../../spec/error.ts'
import { type ErrorResponse, errorFromBody, errorFromResponse } from '../../shared/provider-error.ts'

/** An error response with a status. Its format is common; only the time to wait may be in other headers. */
export function refusalOf(refusal: ErrorResponse): GatewayError {
  if (refusal.status !== 429 || !refusal.headers) return errorFromResponse(refusal)
  // For an account without credit, rate-limit headers say nothing about when to retry.
  const headers = isOutOfCredit(refusal.payload) ? new Headers() : withWait(refusal.headers)
  return errorFromResponse({ ...refusal, headers })
}

/** Codes of a failed response that have no common equivalent. */
const STATUS_OF_CODE = byName(
  [400, 'invalid_prompt invalid_image invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode'],
  [400, 'image_too_large image_too_small image_parse_error image_file_too_large image_file_not_found'],
  [400, 'image_content_policy_violation unsupported_image_media_type empty_image_file failed_to_download_image'],
  [400, 'bio_policy misalignment_policy_violation'],
  [500, 'server_error'],
  [503, 'slow_down'],
  [504, 'vector_store_timeout'],
)
/** Codes for refused content, whose common code says so. */
const POLICY_CODES = ['bio_policy', 'misalignment_policy_violation']

/** An error in place of a response: an `error` event, a failed response, or a body with status 200. */
export function failureOf(refusal: Omit<ErrorResponse, 'status' | 'headers'>): GatewayError {
  const error = errorIn(refusal.payload)
  const code = error && typeof error.code === 'string' ? error.code : ''
  const reported = POLICY_CODES.includes(code) ? { ...error, code: 'content_policy_violation' } : error
  const normalised = { ...refusal, payload: reported ? { error: reported } : refusal.payload }
  const status = Object.hasOwn(STATUS_OF_CODE, code) ? STATUS_OF_CODE[code] : undefined
  return status === undefined
    ? errorFromBody(normalised)
    : errorFromResponse({ ...normalised, status, headers: undefined })
}

/**
 * Reads `{error}`, an `error` event with its members beside its type, a failed response, or the event that holds one.
 */
function errorIn(payload: unknown): JsonRecord | undefined {
  if (!isRecord(payload)) return undefined
  if (isRecord(payload.error)) return payload.error
  if (isRecord(payload.response)) return errorIn(payload.response) ?? {}
  return payload.type === 'error' ? payload : undefined
}

function isOutOfCredit(payload: unknown): boolean {
  const error = errorIn(payload)
  return error?.code === 'insufficient_quota' || error?.type === 'insufficient_quota'
}

const LIMITED = ['requests', 'tokens']

/** Adds `retry-after` if it is missing: the time until the exhausted limit resets. */
function withWait(headers: Headers): Headers {
  if (headers.has('retry-after') || headers.has('retry-after-ms')) return headers
  const waits = LIMITED.filter((what) => Number(headers.get(`x-ratelimit-remaining-${what}`) ?? 1) <= 0)
    .map((what) => millisecondsOf(headers.get(`x-ratelimit-reset-${what}`) ?? ''))
    .filter((milliseconds) => milliseconds !== undefined)
  if (waits.length === 0) return headers
  const copy = new Headers(headers)
  copy.set('retry-after-ms', String(Math.max(...waits)))
  return copy
}

const MILLISECONDS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `6m0s`, `1h2m3.5s`, `20ms`, or seconds as a number. */
function millisecondsOf(text: string): number | undefined {
  if (text === '') return undefined
  if (Number(text) >= 0) return Number(text) * 1000
  // numbers with units, and nothing else
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined
  let sum = 0
  for (const [, number, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) {
    sum += Number(number) * (MILLISECONDS[unit] ?? 0)
  }
  return sum
}
