/** The models that the gateway serves, and one of them. */
import { call } from '../../api/client.ts'
import type { Page } from '../../shell/page.ts'

export const modelPages: Page[] = [
  {
    path: '/models',
    title: 'Models',
    nav: { group: 'Build', icon: 'model' },
    load: () => import('./models-page.tsx').then(({ ModelsPage }) => ({ Page: ModelsPage })),
    async find(text, signal) {
      const { data } = await call('GET /admin/v1/models', { query: { limit: 200 }, signal })
      return data
        .filter(({ id }) => id.toLowerCase().includes(text.toLowerCase()))
        .slice(0, 10)
        .map(({ id }) => ({ label: id, note: 'Model', to: `/models/${id}`, icon: 'model' }))
    },
  },
  {
    path: '/models/$',
    title: 'Model',
    load: () => import('./model-page.tsx').then(({ ModelPage }) => ({ Page: ModelPage })),
  },
]
