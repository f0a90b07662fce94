/** Why a request for a token of OAuth 2.0 was refused. */
import { memberOf } from '../kit/json.ts'

/** A code of RFC 6749, and no text that could repeat the request. */
const ERROR_CODE = /^[a-z_]{1,60}$/

export function refusedToken(status: number, payload: unknown): string {
  const code = memberOf(payload, 'error')
  const named = typeof code === 'string' && ERROR_CODE.test(code) ? ` (${code})` : ''
  return `the token request was refused with ${status}${named}`
}
