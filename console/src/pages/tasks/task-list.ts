/** The list of tasks by the filters of the address: for its page, and for the tasks beside one. */
import { useApiList } from '../../api/hooks.ts'
import { choice, text } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { useListPages } from '../../ui/list-pages.ts'

export const KINDS = ['', 'video', '3d', 'image'] as const
const READERS = { status: text(), kind: choice(KINDS, ''), model: text(), project_id: text(), token_id: text() }
export const NO_FILTER = { status: '', kind: '', model: '', project_id: '', token_id: '' } as const

export function useTaskList({ refetch_ms = false }: { refetch_ms?: number | false } = {}) {
  const [filters, change] = useAddress(READERS)
  const kept = useKept([...Object.keys(READERS), 'view', 'outputs'])
  const { status, kind, model, project_id, token_id } = filters
  const query = {
    ...(status && { status }),
    ...(kind && { kind }),
    ...(model && { model }),
    ...(project_id && { project_id }),
    ...(token_id && { token_id }),
  }
  const list = useListPages(useApiList('GET /admin/v1/tasks', { query }, { refetch_ms }))
  return { filters, change, list, kept, isFiltered: Object.keys(query).length > 0 }
}
