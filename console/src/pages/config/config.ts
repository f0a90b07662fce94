/** The configuration in force. */
import { type Page, seesAll } from '../../shell/page.ts'

export const configPage: Page = {
  path: '/config',
  title: 'Configuration',
  nav: { group: 'Gateway', icon: 'config' },
  isFor: seesAll,
  load: () => import('./config-page.tsx').then(({ ConfigPage }) => ({ Page: ConfigPage })),
}
