/** The error format of the contentgen API: a numeric code, a status name, and details of known types. */
import Type from 'typebox'
import type { GatewayError } from './error.ts'
import { titled } from './fields.ts'

const WORD_OF_STATUS: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  410: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  415: 'INVALID_ARGUMENT',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** The domain of the reasons: the gateway's codes, in upper case. */
const DOMAIN = 'gatehouse'

/** `error.code` is the HTTP status: clients throw on a number from 400 to 599, also during a stream. */
export function contentgenErrorBody(error: GatewayError): ContentgenError {
  const { param, retry_after, replaced_by } = error.detail
  const details: ContentgenError['error']['details'] = [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: error.code.toUpperCase(),
      domain: DOMAIN,
      ...(replaced_by === undefined ? {} : { metadata: { replaced_by } }),
    },
  ]
  if (param !== undefined) {
    const fieldViolations = [{ field: param, description: error.message }]
    details.push({ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations })
  }
  if (retry_after !== undefined) {
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retry_after}s` })
  }
  const status = WORD_OF_STATUS[error.status] ?? (error.status < 500 ? 'FAILED_PRECONDITION' : 'INTERNAL')
  return { error: { code: error.status, message: error.message, status, details } }
}

export const ContentgenError = titled('ContentgenError', {
  error: Type.Object({
    code: Type.Integer({ description: 'The HTTP status.' }),
    message: Type.String(),
    status: Type.String({ description: 'Such as `INVALID_ARGUMENT`.' }),
    details: Type.Array(Type.Record(Type.String(), Type.Unknown())),
  }),
})
export type ContentgenError = Type.Static<typeof ContentgenError>
