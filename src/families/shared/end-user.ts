/** Whom a request is for: the end user that its header or its body names. */

import type { Call } from '../../calls/call.ts'
import { endUserName } from '../../kit/end-user-name.ts'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'

export const USER_HEADER = 'x-gatehouse-user'

const CONTROL = /\p{Cc}/u

type Named = Pick<Call, 'request_id' | 'end_user'>

export const SESSION_HEADER = 'x-gatehouse-session'
const SESSION = /^[\x21-\x7e]{1,128}$/

/** From the header, which takes precedence. Throws invalid_value that names it. */
export function readUserHeader(call: Named, given: string | null): void {
  if (given === null) return
  const value = utf8Of(given)
  if (CONTROL.test(value)) {
    throw new GatewayError('invalid_value', `The header ${USER_HEADER} must not hold control characters.`)
  }
  name(call, value)
}

/** Throws invalid_value that names the header. */
export function readSessionHeader(call: Pick<Call, 'session'>, given: string | null): void {
  if (given === null) return
  if (!SESSION.test(given)) {
    throw new GatewayError('invalid_value', `The header ${SESSION_HEADER} must have 1 to 128 visible ASCII characters.`)
  }
  call.session = given
}

/** For the request log. In the Messages API it names the end user, and nothing else. */
export function readMetadata(call: Pick<Call, 'request_id' | 'metadata'>, body: unknown, family: EndpointFamily): void {
  if (family === 'messages-compat' || !isRecord(body)) return
  const { metadata } = body
  if (isRecord(metadata)) call.metadata = metadata
}

/** From the field of the body that the protocol has for it, unless the header names one. */
export function readUserField(call: Named, body: unknown, family: EndpointFamily): void {
  if (call.end_user !== undefined || !isRecord(body)) return
  if (family === 'messages-compat') name(call, memberOf(body.metadata, 'user_id'))
  else readUserFields(call, body.user, body.safety_identifier)
}

/** The same for a body that may be a form. */
export function readUserFields(call: Named, user: unknown, safety_identifier: unknown): void {
  if (call.end_user !== undefined) return
  name(call, user)
  if (call.end_user === undefined) name(call, safety_identifier)
}

/** A value of another type is left to the parser, and an empty one names nobody. */
function name(call: Named, value: unknown): void {
  const end_user = typeof value === 'string' ? endUserName(value) : undefined
  if (end_user !== undefined) call.end_user = end_user
}

/** Headers arrive with one character for each byte; clients that send other than ASCII send UTF-8. */
function utf8Of(header: string): string {
  if (!/[\x80-\xff]/.test(header)) return header
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'latin1'))
  } catch {
    return header
  }
}
