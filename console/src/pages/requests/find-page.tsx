/** Opens the row of a request that was seen live, whose row has no id before it is written. */
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useApi } from '../../api/hooks.ts'
import { integer, text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'

/** Rows are written every half second. */
const AGAIN_MILLISECONDS = 500

export function FindPage() {
  const [{ request_id, at }] = useAddress({ request_id: text(), at: integer(0) })
  const navigate = useNavigate()
  const range = at > 0 ? { from: at, to: at + 1 } : {}
  const query = { request_id, limit: 2, ...range }
  const options = { enabled: request_id !== '', refetch_ms: AGAIN_MILLISECONDS }
  const { data, error, dataUpdatedAt, refetch } = useApi('GET /admin/v1/requests', { query }, options)
  const [first, second] = data?.data ?? []
  useEffect(() => {
    if (!first) return
    const target = second ? { to: '/requests', search: { request_id } } : { to: `/requests/${first.id}`, search: {} }
    void navigate({ ...target, replace: true } as never)
  }, [first, second, request_id, navigate])
  return (
    <>
      <PageHead title="Request" crumbs={[{ to: '/requests', label: 'Requests' }]} />
      {error ? (
        <Failed error={error} onRetry={() => void refetch()} />
      ) : request_id === '' || (dataUpdatedAt > 0 && !first) ? (
        <Empty
          title="This request is not in the log yet"
          icon="clock"
          acts={<ButtonLink to="/requests">All requests</ButtonLink>}
        >
          Rows are written within a second. The page opens it as soon as it is there.
        </Empty>
      ) : (
        <Loading />
      )}
    </>
  )
}
