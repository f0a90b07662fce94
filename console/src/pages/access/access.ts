/** Tokens, projects and budgets: who may call what, how often, and for how much. */
import { call } from '../../api/client.ts'
import type { Page } from '../../shell/page.ts'

const MIN_TEXT = 2

export const accessPages: Page[] = [
  {
    path: '/tokens',
    title: 'Tokens',
    nav: { group: 'Access', icon: 'key' },
    load: () => import('./tokens-page.tsx').then(({ TokensPage }) => ({ Page: TokensPage })),
    async find(text, signal) {
      if (text.length < MIN_TEXT) return []
      const { data } = await call('GET /admin/v1/tokens', { query: { q: text, order: 'newest', limit: 10 }, signal })
      return data.map(({ token_id, name }) => ({ label: name, note: 'Token', to: `/tokens/${token_id}`, icon: 'key' }))
    },
  },
  {
    path: '/tokens/$token_id',
    title: 'Token',
    load: () => import('./token-page.tsx').then(({ TokenPage }) => ({ Page: TokenPage })),
  },
  {
    path: '/projects',
    title: 'Projects',
    nav: { group: 'Access', icon: 'folder' },
    load: () => import('./projects-page.tsx').then(({ ProjectsPage }) => ({ Page: ProjectsPage })),
    async find(text, signal) {
      if (text.length < MIN_TEXT) return []
      const { data } = await call('GET /admin/v1/projects', { query: { q: text, limit: 10 }, signal })
      return data.map(({ project_id, name }) => ({
        label: name,
        note: 'Project',
        to: `/projects/${project_id}`,
        icon: 'folder',
      }))
    },
  },
  {
    path: '/projects/$project_id',
    title: 'Project',
    load: () => import('./project-page.tsx').then(({ ProjectPage }) => ({ Page: ProjectPage })),
  },
  {
    path: '/budgets',
    title: 'Budgets',
    nav: { group: 'Access', icon: 'budget' },
    load: () => import('./budgets-page.tsx').then(({ BudgetsPage }) => ({ Page: BudgetsPage })),
  },
]
