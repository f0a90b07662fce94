/** The list of the audit log by the filters of the address: for its page, and for the rows beside one. */
import { useApiList } from '../../api/hooks.ts'
import { text } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { useListPages } from '../../ui/list-pages.ts'
import { useTimeRange } from '../../ui/time-range.tsx'

const READERS = { actor: text(), action: text(), object_id: text(), project_id: text() }
export const NO_FILTER = { actor: '', action: '', object_id: '', project_id: '' } as const

export function useAuditList() {
  const [filters, change] = useAddress(READERS)
  const kept = useKept([...Object.keys(READERS), 'range', 'from', 'to'])
  const { start, end, label } = useTimeRange('30d')
  const set = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ''))
  const list = useListPages(useApiList('GET /admin/v1/audit', { query: { ...set, from: start, to: end } }))
  return { filters, change, list, kept, label, isFiltered: Object.keys(set).length > 0 }
}
