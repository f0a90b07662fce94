/** Reads the body of a request whose members have one schema, and refuses one that does not fit it. */
import type { Static, TSchema } from 'typebox'
import type { ServerSettings } from '../config/config.ts'
import { checker } from '../kit/checker.ts'
import type { Clock } from '../kit/clock.ts'
import { diagnose } from '../kit/diagnose.ts'
import { isRecord } from '../kit/json.ts'
import { refusalOf } from '../protocols/shared/request-error.ts'
import type { ErrorCode } from '../spec/error.ts'
import { type BodyLimits, bodyLimits, readBytes, readJson } from './body.ts'
import type { Context } from './context.ts'

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
    context.noteFields(body)
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
