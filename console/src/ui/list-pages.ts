/** Lists whose filters and length are in the address: what is read again after a reload is what was seen before. */
import { useEffect } from 'react'
import { integer } from '../lib/search.ts'
import { useAddress } from './address.ts'

type List = { rows: unknown[]; hasMore: boolean; isLoadingMore: boolean; error: Error | null; more(): void }

/** A longer list is read from its start, and then on demand. */
const MAX_PAGES = 20

/** Reads as many pages as the address says; `more` counts there. `size`: the rows of a page. */
export function useListPages<L extends List>(list: L, size = 100): L {
  const [{ pages }, change] = useAddress({ pages: integer(1) })
  const { rows, hasMore, isLoadingMore, error, more } = list
  const isWanted = rows.length > 0 && rows.length < Math.min(pages, MAX_PAGES) * size
  useEffect(() => {
    if (isWanted && hasMore && !isLoadingMore && !error) more()
  }, [isWanted, hasMore, isLoadingMore, error, more])
  return {
    ...list,
    more() {
      change({ pages: Math.max(1, Math.ceil(rows.length / size)) + 1 })
      more()
    },
  }
}
