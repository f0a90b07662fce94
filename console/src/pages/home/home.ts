/** The page that the console opens with. */
import type { Page } from '../../shell/page.ts'

export const home: Page = {
  path: '/',
  title: 'Home',
  nav: { group: 'Overview', icon: 'home' },
  load: () => import('./home-page.tsx').then(({ HomePage }) => ({ Page: HomePage })),
}
