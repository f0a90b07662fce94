/** Bodies, ETags and preconditions of the admin API. */
import type { Static, TSchema } from 'typebox'
import Type from 'typebox'
import type { ServerSettings } from '../../config/config.ts'
import { type BodyLimits, bodyLimits, readBytes, readJson } from '../../http/body.ts'
import type { Context } from '../../http/context.ts'
import { checker } from '../../kit/checker.ts'
import type { Clock } from '../../kit/clock.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { isRecord } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import { refusalOf } from '../../protocols/request-error.ts'
import type { AuditOrigin } from '../../spec/audit.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import type { Parameter } from '../../spec/operation.ts'

export type BodyParts = { settings: ServerSettings; clock: Clock }

/** Bodies that were read before the route was called, to be read again. */
const readBefore = new WeakMap<Context, Request>()

/** The bytes of a body, which the route can still read. A clone of the request would hold the body twice. */
export async function readAhead(context: Context, limits: BodyLimits): Promise<Uint8Array> {
  const { request } = context
  if (request.body === null) return new Uint8Array()
  const body = await readBytes(request, limits)
  readBefore.set(context, new Request('http://localhost/', { method: 'POST', headers: request.headers, body }))
  return body
}

/** Reads and checks a body. Throws the errors of BODY_ERRORS, naming the field. */
export function bodyReader<const T extends TSchema>(schema: T, parts: BodyParts & { max_bytes?: number }) {
  const check = checker(schema)
  return async (context: Context): Promise<Static<T>> => {
    const limits = bodyLimits(context, 'text', parts)
    if (parts.max_bytes !== undefined) limits.max_bytes = Math.min(limits.max_bytes, parts.max_bytes)
    const body = withoutNulls(schema, await readJson(readBefore.get(context) ?? context.request, limits))
    if (check.Check(body)) return body
    throw refusalOf(diagnose(schema, body))
  }
}

/** The same where a request may have no body, and then no content-type: its members are all absent. */
export function optionalBodyReader<const T extends TSchema>(schema: T, parts: BodyParts) {
  const read = bodyReader(schema, parts)
  return async (context: Context): Promise<Partial<Static<T>>> =>
    context.request.body === null ? {} : await read(context)
}

/** `null` stands for an absent member, as in every request, but where it is a value of its own. */
function withoutNulls(schema: TSchema, body: unknown): unknown {
  if (!isRecord(body)) return body
  const { properties = {} } = schema as { properties?: Record<string, TSchema> }
  const isAbsent = ([name, value]: [string, unknown]) =>
    value === null && Object.hasOwn(properties, name) && diagnose(properties[name] ?? {}, null) !== undefined
  return Object.fromEntries(Object.entries(body).filter((member) => !isAbsent(member)))
}

export const BODY_ERRORS: ErrorCode[] = [
  'invalid_json',
  'missing_required_parameter',
  'invalid_type',
  'invalid_value',
  'unsupported_parameter',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
]

/** Of the whole object. What changes by itself, such as the time of last use, is to be left out by the caller. */
const etagOf = (value: unknown): string => `"${sha256(sortedText(value)).slice(0, 32)}"`

/** JSON with sorted names: the same for the same value, wherever it comes from. */
const sortedText = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )

/** The object with its ETag; 304 where the client has it. `volatile`: members that the ETag does not cover. */
export function objectAnswer(context: Context, value: Record<string, unknown>, volatile: string[] = []): Response {
  const etag = etagOf(stable(value, volatile))
  const { method } = context.request
  if ((method === 'GET' || method === 'HEAD') && names(context.header('if-none-match'), etag)) {
    return new Response(null, { status: 304, headers: { etag } })
  }
  return Response.json(value, { headers: { etag } })
}

/** Throws precondition_failed where the client names another state of the object than the present one. */
export function assertMatch(context: Context, present: Record<string, unknown>, volatile: string[] = []): void {
  const given = context.header('if-match')
  if (given === null || names(given, etagOf(stable(present, volatile)))) return
  throw new GatewayError(
    'precondition_failed',
    'The object was changed since you read it (If-Match): read it again, and decide anew.',
  )
}

const stable = (value: Record<string, unknown>, volatile: string[]) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !volatile.includes(name)))

/** Whether a list of ETags (RFC 9110, 8.8.3) holds one, or is `*`. A weak one never matches. */
const names = (list: string | null, etag: string): boolean =>
  list?.split(',').some((one) => one.trim() === '*' || one.trim() === etag) ?? false

export const IF_MATCH_HEADER: Record<string, Parameter> = {
  'If-Match': {
    description: 'The ETag of the state that the change is meant for: another state is answered with 412.',
    schema: Type.String(),
  },
}

export const ETAG_HEADER = { etag: 'Of the present state, for If-Match.' }

/** Who makes a change, for the audit log. */
export const originOf = ({ admin, address, request_id }: Context): AuditOrigin => ({
  actor: admin.actor,
  address,
  request_id,
})

/** An object that is not there, or that the caller may not see: the same answer. */
export const noSuch = (what: string, id: string | undefined) =>
  new GatewayError('object_not_found', `There is no ${what} ${JSON.stringify((id ?? '').slice(0, 100))}.`)
