/** Describes a route of the admin API: its operation and its handler in one. */
import type { AdminAccess, Route } from '../../http/context.ts'
import type { Right } from '../../spec/admin.ts'

type Described = Omit<Route['operation'], 'tag'> & Pick<Route, 'handle' | 'shown'>

/** A right alone: a project_admin may not use the route. */
export function adminRoute(
  [method, path, access]: [method: Route['method'], path: string, access: Right | AdminAccess],
  { handle, shown, ...operation }: Described,
): Route {
  const admin = typeof access === 'string' ? { right: access } : access
  return {
    method,
    path,
    ...(shown !== undefined && { shown }),
    admin,
    operation: { tag: 'Admin', ...operation },
    handle,
  }
}

/** What several functions that make routes need together. */
export type PartsOf<Routes> = (
  Routes extends (parts: infer Parts) => Route[]
    ? (parts: Parts) => void
    : never
) extends (parts: infer All) => void
  ? All
  : never
