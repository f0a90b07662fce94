/** The list of tokens by the filters of the address: for its page, and for the tokens beside one. */
import { useApiList } from '../../api/hooks.ts'
import { choice, text } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { useListPages } from '../../ui/list-pages.ts'

const STATES = ['active', 'ended', 'all'] as const
const READERS = { q: text(), state: choice(STATES, 'active'), project: text(), sort: sortReader() }
export const NO_FILTER = { q: '', state: 'active', project: '' } as const

/** Both lists of accounts come in the order in which they were made. */
export function sortReader() {
  return choice(['-created_at', 'created_at'], '-created_at')
}
export const orderOf = (sort: string) => (sort === 'created_at' ? 'oldest' : 'newest')

export function useTokenList() {
  const [filters, change] = useAddress(READERS)
  const kept = useKept(Object.keys(READERS))
  const { q, state, project, sort } = filters
  const query = {
    order: orderOf(sort),
    ...(q && { q }),
    ...(state !== 'all' && { active: state === 'active' ? ('true' as const) : ('false' as const) }),
    ...(project && { project_id: project }),
  } as const
  const list = useListPages(useApiList('GET /admin/v1/tokens', { query }))
  return { filters, change, list, kept, isFiltered: q !== '' || project !== '' || state !== 'active' }
}
