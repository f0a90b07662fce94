/** The configuration in force, its file in an editor, and what was in force before. */
import { hasRight, type Page, seesAll } from '../../shell/page.ts'

export const configPages: Page[] = [
  {
    path: '/config',
    title: 'Configuration',
    nav: { group: 'Gateway', icon: 'config' },
    isFor: seesAll,
    load: () => import('./config-page.tsx').then(({ ConfigPage }) => ({ Page: ConfigPage })),
  },
  {
    path: '/config/edit',
    title: 'Edit the configuration',
    isFor: (me) => hasRight(me, 'own'),
    load: () => import('./editor-page.tsx').then(({ EditorPage }) => ({ Page: EditorPage })),
  },
  {
    path: '/config/history',
    title: 'Earlier configurations',
    isFor: (me) => hasRight(me, 'own'),
    load: () => import('./history-page.tsx').then(({ HistoryPage }) => ({ Page: HistoryPage })),
  },
]
