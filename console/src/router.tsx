/** The routes of all pages below /console. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { parseSearch, stringifySearch } from './lib/search.ts'
import { pages } from './pages/pages.ts'
import { ErrorPage, UnknownPage } from './shell/error-page.tsx'
import { Shell } from './shell/shell.tsx'
import { Loading } from './ui/states.tsx'

const root = createRootRoute({ component: Shell, notFoundComponent: UnknownPage })

const routes = pages.map(({ path, load }) =>
  createRoute({
    getParentRoute: () => root,
    // Otherwise a page below it, whose path is open at its end, would take its place.
    path: pages.some((page) => page.path === `${path}/$`) ? `${path}/` : path,
    component: lazyRouteComponent(load, 'Page'),
  }),
)

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultErrorComponent: ({ error }) => <ErrorPage error={error instanceof Error ? error : new Error(String(error))} />,
  defaultPendingComponent: () => <Loading lines={6} />,
  scrollRestoration: true,
  trailingSlash: 'never',
})
