/** The specification's section 4 as a table: one line an endpoint. */
import type { Route } from './http/context.ts'
import { type PageParts, pageRoutes } from './http/pages.ts'
import { openApiDocument } from './openapi.ts'

type RouteParts = {
  models: { list: Route; retrieve: Route }
  chat: Route
  videos: Route[]
  ready: () => Promise<void>
  health: PageParts['tasks']
  version: string
}

export function routeTable({ models, chat, videos, ready, health, version }: RouteParts): Route[] {
  const routes: Route[] = [
    models.list,
    models.retrieve,
    chat,
    ...videos,
    ...pageRoutes({ version, ready, tasks: health, openApi: () => openApiDocument({ routes, version }) }),
  ]
  return routes
}
