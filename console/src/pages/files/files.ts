/** Files that clients have uploaded, and results of batches: all of them, and one. */
import { ApiError, call } from '../../api/client.ts'
import type { Found, Page } from '../../shell/page.ts'

export const filePages: Page[] = [
  {
    path: '/files',
    title: 'Files',
    nav: { group: 'Observe', icon: 'file' },
    load: () => import('./files-page.tsx').then(({ FilesPage }) => ({ Page: FilesPage })),
    find: findFiles,
  },
  {
    path: '/files/$file_id',
    title: 'File',
    load: () => import('./file-page.tsx').then(({ FilePage }) => ({ Page: FilePage })),
  },
]

/** By its whole id. */
async function findFiles(text: string, signal: AbortSignal): Promise<Found[]> {
  if (!/^file-gh\w{20,}$/.test(text)) return []
  try {
    const { file_id, filename } = await call('GET /admin/v1/files/{file_id}', { params: { file_id: text }, signal })
    return [{ label: filename, note: `File · ${file_id}`, to: `/files/${file_id}`, icon: 'file' }]
  } catch (error) {
    if (error instanceof ApiError) return []
    throw error
  }
}
