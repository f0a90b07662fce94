/** Describes a route of the admin API: its operation and its handler in one. */
import { BODY_ERRORS } from '../../http/checked-body.ts'
import type { AdminAccess, Route } from '../../http/context.ts'
import type { Right } from '../../spec/admin.ts'
import { IF_MATCH_HEADER } from './edit.ts'

type Described = Omit<Route['operation'], 'tag'> & Pick<Route, 'handle' | 'shown'>

/**
 * A right alone: a project_admin may not use the route. `errors`: besides those of its body, of an object in the path that is
 * not there, and of If-Match. A GET with an ETag also answers 304.
 */
export function adminRoute(
  [method, path, access]: [method: Route['method'], path: string, access: Right | AdminAccess],
  { handle, shown, errors = [], ...operation }: Described,
): Route {
  const admin = typeof access === 'string' ? { right: access } : access
  return {
    method,
    path,
    ...(shown !== undefined && { shown }),
    admin,
    operation: {
      tag: 'Admin',
      ...(method === 'GET' && operation.responseHeaders && { otherResponses: NOT_CHANGED }),
      ...operation,
      errors: [
        ...errors,
        ...(operation.request ? BODY_ERRORS : []),
        ...(path.includes(':') ? (['object_not_found'] as const) : []),
        ...(operation.headers === IF_MATCH_HEADER ? (['precondition_failed'] as const) : []),
      ],
    },
    handle,
  }
}

const NOT_CHANGED = { 304: 'Not changed since the ETag in If-None-Match.' }

/** What several functions that make routes need together. */
export type PartsOf<Routes> = (
  Routes extends (parts: infer Parts) => Route[]
    ? (parts: Parts) => void
    : never
) extends (parts: infer All) => void
  ? All
  : never
