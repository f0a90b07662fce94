/** The list of webhooks by the filter of the address: for its page, and for the webhooks beside one. */
import { useApiList } from '../../api/hooks.ts'
import { choice } from '../../lib/search.ts'
import { useAddress, useKept } from '../../ui/address.ts'
import { useListPages } from '../../ui/list-pages.ts'

export const STATES = ['', 'pending', 'delivered', 'given_up'] as const

export function useWebhookList({ refetch_ms = false }: { refetch_ms?: number | false } = {}) {
  const [{ state }, change] = useAddress({ state: choice(STATES, '') })
  const kept = useKept(['state'])
  const list = useListPages(
    useApiList('GET /admin/v1/webhooks', { query: { ...(state && { state }) } }, { refetch_ms }),
  )
  return { state, change, list, kept }
}
