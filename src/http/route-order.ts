/** The order in which routes are matched, and the methods of each path. */
import { fieldsOf, type KnownFields } from './body.ts'
import type { Route } from './context.ts'

/** A route as requests are matched to it. `fields`: those of its JSON body; undefined where it takes none. */
export type MatchedRoute = { readonly route: Route; readonly fields: KnownFields | undefined }

export const matchable = (route: Route): MatchedRoute => ({ route, fields: fieldsOf(route.operation.request) })

/** Whether the path has no parameters. */
export const isLiteral = ({ path }: Route): boolean => !path.includes(':')

/** Routes whose paths other patterns match too come first: `/v1/responses/input_tokens` is not the id of a response. */
export const bySpecificity = (routes: Route[]): Route[][] => [
  routes.filter(isLiteral),
  routes.filter((route) => !isLiteral(route) && route.exclusive),
  routes.filter((route) => !isLiteral(route) && !route.exclusive),
]

/** The methods that each path supports. */
export function methodsByPath(routes: Route[]): [path: string, methods: string[]][] {
  const out = new Map<string, string[]>()
  for (const { path, method } of routes) out.set(path, [...(out.get(path) ?? []), method])
  return [...out].map(([path, methods]) => [
    path,
    [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'],
  ])
}
