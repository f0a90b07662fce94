/** How a request would be routed. */
import { type Page, seesAll } from '../../shell/page.ts'

export const routing: Page = {
  path: '/routing',
  title: 'Routing',
  nav: { group: 'Gateway', icon: 'gauge' },
  isFor: seesAll,
  load: () => import('./routing-page.tsx').then(({ RoutingPage }) => ({ Page: RoutingPage })),
}
