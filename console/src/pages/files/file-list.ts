/** The list of files by the filters of the address: for its page, and for the files beside one. */
import { useApiList } from '../../api/hooks.ts'
import type { AdminFile } from '../../api/types.ts'
import { choice, text } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { useListPages } from '../../ui/list-pages.ts'

export const PURPOSES: Record<AdminFile['purpose'], string> = {
  batch: 'Requests of a batch',
  batch_output: 'Results of a batch',
  user_data: 'Input of calls',
  vision: 'Image for calls',
}
const NAMES = ['', ...(Object.keys(PURPOSES) as AdminFile['purpose'][])] as const
const READERS = { purpose: choice(NAMES, ''), project_id: text(), token_id: text() }
export const NO_FILTER = { purpose: '', project_id: '', token_id: '' } as const

export function useFileList() {
  const [filters, change] = useAddress(READERS)
  const kept = useKept(Object.keys(READERS))
  const query = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ''))
  const list = useListPages(useApiList('GET /admin/v1/files', { query }))
  return { filters, change, list, kept, isFiltered: Object.keys(query).length > 0 }
}
