/** ETags, preconditions and origins of changes by the admin API. */
import type { Context } from '../../http/context.ts'
import { isRecord } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import type { AuditOrigin } from '../../spec/audit.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { parameter } from '../../spec/fields.ts'
import type { Parameter } from '../../spec/operation.ts'

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

/** Throws invalid_value for a name that no guard has. */
export function assertGuards({ guards = [] }: { guards?: readonly string[] }, known: readonly string[]): void {
  const index = guards.findIndex((name) => !known.includes(name))
  if (index < 0) return
  const list = known.length === 0 ? 'there are none' : `known: ${known.join(', ')}`
  const message = `guards[${index}]: found ${JSON.stringify(guards[index]?.slice(0, 100))}, which is not a guard; ${list}.`
  throw invalidValue(`guards[${index}]`, message)
}

const stable = (value: Record<string, unknown>, volatile: string[]) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !volatile.includes(name)))

/** Whether a list of ETags (RFC 9110, 8.8.3) holds one, or is `*`. A weak one never matches. */
const names = (list: string | null, etag: string): boolean =>
  list?.split(',').some((one) => one.trim() === '*' || one.trim() === etag) ?? false

export const IF_MATCH_HEADER: Record<string, Parameter> = {
  'If-Match': parameter('The ETag of the state that the change is meant for: another state is answered with 412.'),
}

export const ETAG_HEADER = { etag: 'Of the present state, for If-Match.' }

export const originOf = ({ admin: { actor, via }, address, request_id }: Context): AuditOrigin =>
  via === 'command' ? { actor } : { actor, address, request_id }

/** The object. Throws object_not_found where there is none. */
export function present<Found>(found: Found | undefined, what: string, id: string | undefined): Found {
  if (found !== undefined) return found
  throw noSuch(what, id)
}

/**
 * Finds the object whose id is this part of the path. `found` throws object_not_found where there is none; `projectOf`: of
 * whose project it is, for the access to the route.
 */
export function objectIn<Found extends { project_id?: string | null }>(
  param: string,
  what: string,
  findById: (id: string) => Found | undefined | Promise<Found | undefined>,
) {
  const find = async ({ params }: Context) => findById(params[param] ?? '')
  return {
    find,
    found: async (context: Context) => present(await find(context), what, context.params[param]),
    projectOf: async (context: Context) => (await find(context))?.project_id ?? null,
  }
}

/** An object that is not there, or that the caller may not see: the same answer. */
export const noSuch = (what: string, id: string | undefined) =>
  new GatewayError('object_not_found', `There is no ${what} ${JSON.stringify((id ?? '').slice(0, 100))}.`)
