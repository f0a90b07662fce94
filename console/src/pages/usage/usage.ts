/** Reads usage and cost by who caused them and by kind. */
import type { Page } from '../../shell/page.ts'

export const usagePages: Page[] = [
  {
    path: '/usage',
    title: 'Usage and cost',
    nav: { group: 'Observe', icon: 'chart' },
    load: () => import('./usage-page.tsx').then(({ UsagePage }) => ({ Page: UsagePage })),
  },
]
