/** The providers that the gateway calls, and one of them. */
import { call } from '../../api/client.ts'
import { hasRight, type Page, seesAll } from '../../shell/page.ts'

export const providerPages: Page[] = [
  {
    path: '/providers',
    title: 'Providers',
    nav: { group: 'Gateway', icon: 'provider' },
    isFor: seesAll,
    load: () => import('./providers-page.tsx').then(({ ProvidersPage }) => ({ Page: ProvidersPage })),
    async find(text, signal) {
      const { data } = await call('GET /admin/v1/providers', { query: { limit: 200 }, signal })
      return data
        .filter(({ id }) => id.toLowerCase().includes(text.toLowerCase()))
        .slice(0, 10)
        .map(({ id }) => ({
          label: id,
          note: 'Provider',
          to: `/providers/${encodeURIComponent(id)}`,
          icon: 'provider',
        }))
    },
  },
  {
    path: '/providers/new',
    title: 'Add a provider',
    isFor: (me) => hasRight(me, 'own'),
    load: () => import('./add-provider-page.tsx').then(({ AddProviderPage }) => ({ Page: AddProviderPage })),
  },
  {
    path: '/providers/$provider',
    title: 'Provider',
    load: () => import('./provider-page.tsx').then(({ ProviderPage }) => ({ Page: ProviderPage })),
  },
]
