/** The one place where an error becomes a response. */
import { errorBody, type GatewayError, shouldRetry } from '../spec/error.ts'

type Form = { write?: (error: GatewayError) => unknown; status?: number | undefined; challenge?: string | undefined }

/** The response to an error; `write` encodes the body for families that have a form of their own. */
export function errorResponse(
  error: GatewayError,
  { write = errorBody, status = error.status, challenge = 'Bearer' }: Form = {},
): Response {
  const headers: Record<string, string> = {}
  const { retry_after, allow, bytes, retry = shouldRetry(error.code) } = error.detail
  if (retry_after !== undefined && Number.isFinite(retry_after)) {
    headers['retry-after'] = String(Math.max(0, Math.ceil(retry_after)))
    // What the openai libraries read first: short waits are most exact.
    if (error.code === 'rate_limit_exceeded') headers['retry-after-ms'] = String(Math.ceil(retry_after * 1000))
  }
  if (retry !== undefined) headers['x-should-retry'] = String(retry)
  if (error.status === 401) headers['www-authenticate'] = challenge
  if (bytes !== undefined) headers['content-range'] = `bytes */${bytes}`
  if (error.status === 426) {
    headers.upgrade = 'HTTP/1.1' // RFC 9110, 15.5.22: the protocol that is required must be named
    headers.connection = 'Upgrade'
  }
  if (allow) headers.allow = allow.join(', ')
  return Response.json(write(error), { status, headers })
}
