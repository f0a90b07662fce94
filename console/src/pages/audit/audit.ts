/** The audit log: who changed what, and one change. */
import type { Page } from '../../shell/page.ts'

export const auditPages: Page[] = [
  {
    path: '/audit',
    title: 'Audit',
    nav: { group: 'Gateway', icon: 'audit' },
    load: () => import('./audit-page.tsx').then(({ AuditPage }) => ({ Page: AuditPage })),
  },
  {
    path: '/audit/$sequence',
    title: 'Change',
    load: () => import('./change-page.tsx').then(({ ChangePage }) => ({ Page: ChangePage })),
  },
]
