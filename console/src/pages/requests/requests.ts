/** The log of requests: live, searched, and one of them. */
import { call } from '../../api/client.ts'
import type { Found, Page } from '../../shell/page.ts'
import { filterOfText } from './filters.ts'

export const requestPages: Page[] = [
  {
    path: '/requests',
    title: 'Requests',
    nav: { group: 'Observe', icon: 'list' },
    load: () => import('./requests-page.tsx').then(({ RequestsPage }) => ({ Page: RequestsPage })),
    find: findRequests,
  },
  {
    path: '/requests/find',
    title: 'Find a request',
    load: () => import('./find-page.tsx').then(({ FindPage }) => ({ Page: FindPage })),
  },
  {
    path: '/sessions',
    title: 'Sessions',
    nav: { group: 'Observe', icon: 'clock' },
    load: () => import('./sessions-page.tsx').then(({ SessionsPage }) => ({ Page: SessionsPage })),
  },
  {
    path: '/requests/$id',
    title: 'Request',
    load: () => import('./request-page.tsx').then(({ RequestPage }) => ({ Page: RequestPage })),
  },
]

/** By its id, its trace or its session, whole: none of them is searched by a part. */
async function findRequests(text: string, signal: AbortSignal): Promise<Found[]> {
  if (text.length < 6 || /\s/.test(text)) return []
  const name = filterOfText(text)
  if (name !== 'request_id' && name !== 'trace_id') return []
  const names = name === 'trace_id' ? (['trace_id'] as const) : (['request_id', 'session'] as const)
  const lists = await Promise.all(
    names.map((filter) => call('GET /admin/v1/requests', { query: { [filter]: text, limit: 3 }, signal })),
  )
  return lists
    .flatMap(({ data }) => data)
    .map(({ id, request_id, model, status }) => ({
      label: request_id,
      note: `Request · ${model || status}`,
      to: `/requests/${id}`,
      icon: 'list',
    }))
}
