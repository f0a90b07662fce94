/** The alerts, open and past. */
import { type Page, seesAll } from '../../shell/page.ts'

export const alertsPage: Page = {
  path: '/alerts',
  title: 'Alerts',
  nav: { group: 'Overview', icon: 'alert' },
  isFor: seesAll,
  load: () => import('./alerts-page.tsx').then(({ AlertsPage }) => ({ Page: AlertsPage })),
}
