/** The specification's section 4 as a table: one line an endpoint. */
import type { Route } from '../http/context.ts'
import { unknownMethodRoutes } from './model-methods.ts'
import { openApiDocument, writtenPath } from './openapi.ts'
import { type PageParts, pageRoutes } from './pages.ts'

type RouteParts = {
  models: Route[]
  chat: Route[]
  /** Those of families that take texts and are answered at once, besides chat. */
  texts: Route[]
  images: Route[]
  tasks: Route[]
  manual: Route[]
  ready: () => Promise<void>
  health: PageParts['tasks']
  version: string
}

export function routeTable({
  models,
  chat,
  texts,
  images,
  tasks,
  manual,
  ready,
  health,
  version,
}: RouteParts): Route[] {
  const routes: Route[] = [
    ...models,
    ...chat,
    ...texts,
    ...images,
    ...tasks,
    ...manual,
    ...unknownMethodRoutes([...chat, ...texts]),
    ...pageRoutes({
      version,
      ready,
      tasks: health,
      openApi: () => openApiDocument({ routes, version }),
      endpoints: () => endpointsOf(routes),
    }),
  ]
  return routes
}

const endpointsOf = (routes: Route[]) =>
  routes
    .filter(({ hidden, path }) => !hidden && path.startsWith('/v1/'))
    .map((route) => ({ method: route.method, path: writtenPath(route), summary: route.operation.summary }))
