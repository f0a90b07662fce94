/** Who may use the console and the admin API: the person, sessions, admin tokens, login links. */
import type { Page } from '../../shell/page.ts'

export const settings: Page = {
  path: '/settings',
  title: 'People and sign-in',
  nav: { group: 'Access', icon: 'user' },
  load: () => import('./settings-page.tsx').then(({ SettingsPage }) => ({ Page: SettingsPage })),
}
