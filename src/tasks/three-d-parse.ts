/** A client's request for a 3D model into the house's words, refused with the place and the rule. */
import { fieldsOfForm } from '../http/form-fields.ts'
import type { Posted } from '../http/multipart.ts'
import { checker } from '../kit/checker.ts'
import { diagnose, foundText } from '../kit/diagnose.ts'
import { refusalOf } from '../protocols/request-error.ts'
import { GatewayError } from '../spec/error.ts'
import { ThreeDRequest } from '../spec/three-d-request.ts'
import { ORDER_WORDS } from './form-words.ts'

const check = checker(ThreeDRequest)

/** `null` is absent; unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
export function parseThreeD(posted: Posted): ThreeDRequest {
  const body = posted.kind === 'json' ? posted.value : fieldsOfForm(posted.parts, ORDER_WORDS)
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  }
  const known = Object.entries(body).filter(
    ([name, value]) => value !== null && Object.hasOwn(ThreeDRequest.properties, name),
  )
  const fields: unknown = Object.fromEntries(known)
  if (check.Check(fields)) return fields
  throw refusalOf(diagnose(ThreeDRequest, fields))
}
