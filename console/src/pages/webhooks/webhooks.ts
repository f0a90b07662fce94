/** Webhooks of finished tasks. */
import type { Page } from '../../shell/page.ts'

export const webhookPages: Page[] = [
  {
    path: '/webhooks',
    title: 'Webhooks',
    nav: { group: 'Observe', icon: 'webhook' },
    load: () => import('./webhooks-page.tsx').then(({ WebhooksPage }) => ({ Page: WebhooksPage })),
  },
  {
    path: '/webhooks/$webhook_id',
    title: 'Webhook',
    load: () => import('./webhook-page.tsx').then(({ WebhookPage }) => ({ Page: WebhookPage })),
  },
]
