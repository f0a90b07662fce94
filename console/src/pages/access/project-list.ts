/** The list of projects by the search of the address: for its page, and for the projects beside one. */
import { useApiList } from '../../api/hooks.ts'
import { text } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { useListPages } from '../../ui/list-pages.ts'
import { orderOf, sortReader } from './token-list.ts'

const READERS = { q: text(), sort: sortReader() }

export function useProjectList() {
  const [filters, change] = useAddress(READERS)
  const kept = useKept(Object.keys(READERS))
  const { q, sort } = filters
  const list = useListPages(
    useApiList('GET /admin/v1/projects', { query: { order: orderOf(sort), ...(q && { q }) } as const }),
  )
  return { filters, change, list, kept }
}
