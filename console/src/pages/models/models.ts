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
      const { data } = await call('GET /admin/v1/models', { query: { q: text, limit: 10 }, signal })
      return data.map(({ id }) => ({ label: id, note: 'Model', to: `/models/${id}`, icon: 'model' }))
    },
  },
  {
    path: '/models/$',
    title: 'Model',
    load: () => import('./model-page.tsx').then(({ ModelPage }) => ({ Page: ModelPage })),
  },
]
