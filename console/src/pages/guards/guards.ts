/** Guards of contents: what they have decided, and a try-out. */
import { type Page, seesAll } from '../../shell/page.ts'

export const guardsPage: Page = {
  path: '/guards',
  title: 'Guards',
  nav: { group: 'Gateway', icon: 'guard' },
  isFor: seesAll,
  load: () => import('./guards-page.tsx').then(({ GuardsPage }) => ({ Page: GuardsPage })),
}
