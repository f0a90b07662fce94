/** Batches, lists of requests that the gateway executes at low priority: all of them, and one. */
import { ApiError, call } from '../../api/client.ts'
import type { Found, Page } from '../../shell/page.ts'

export const batchPages: Page[] = [
  {
    path: '/batches',
    title: 'Batches',
    nav: { group: 'Observe', icon: 'batch' },
    load: () => import('./batches-page.tsx').then(({ BatchesPage }) => ({ Page: BatchesPage })),
    find: findBatches,
  },
  {
    path: '/batches/$batch_id',
    title: 'Batch',
    load: () => import('./batch-page.tsx').then(({ BatchPage }) => ({ Page: BatchPage })),
  },
]

/** By its whole id. */
async function findBatches(text: string, signal: AbortSignal): Promise<Found[]> {
  if (!/^(msg)?batch_\w{20,}$/.test(text)) return []
  try {
    const { batch_id, status } = await call('GET /admin/v1/batches/{batch_id}', { params: { batch_id: text }, signal })
    return [{ label: batch_id, note: `Batch · ${status}`, to: `/batches/${batch_id}`, icon: 'batch' }]
  } catch (error) {
    if (error instanceof ApiError) return []
    throw error
  }
}
