/** The response cache: its size, and its purge. */
import { hasRight, type Page } from '../../shell/page.ts'

export const cachePage: Page = {
  path: '/cache',
  title: 'Cache',
  nav: { group: 'Gateway', icon: 'cache' },
  isFor: (me) => hasRight(me, 'read') && me.project_id === null,
  load: () => import('./cache-page.tsx').then(({ CachePage }) => ({ Page: CachePage })),
}
