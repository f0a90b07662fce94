/** The playground: models are called as the person who is logged in. */
import type { Page } from '../../shell/page.ts'

export const playground: Page = {
  path: '/playground',
  title: 'Playground',
  nav: { group: 'Build', icon: 'play' },
  isFor: ({ rights }) => rights.includes('call'),
  load: () => import('./playground-page.tsx').then(({ PlaygroundPage }) => ({ Page: PlaygroundPage })),
}
