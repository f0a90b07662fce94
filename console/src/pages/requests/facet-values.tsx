/** The values of a filter in the range of the page, the most frequent first, each with its count. */
import type { CSSProperties } from 'react'
import { useApi } from '../../api/hooks.ts'
import { count, shortCount } from '../../lib/format.ts'
import { Failed, Loading } from '../../ui/states.tsx'
import { useTimeRange } from '../../ui/time-range.tsx'
import type { FilterName, FilterValues } from './filters.ts'

type FacetProps = { filter: FilterName; others: FilterValues; onSet(value: string): void }

export function FacetValues({ filter, others, onSet }: FacetProps) {
  const { start, end } = useTimeRange('24h')
  const facets = useApi('GET /admin/v1/requests/facets', { query: { ...others, from: start, to: end } })
  if (facets.error) return <Failed error={facets.error} onRetry={() => void facets.refetch()} />
  if (!facets.data) return <Loading lines={4} />
  const { values = [], more = false } = facets.data.facets.find((one) => one.filter === filter) ?? {}
  const most = values[0]?.count ?? 0
  const { partial, rows } = facets.data
  if (values.length === 0) return <p className="soft">No request of this range has a value.</p>
  return (
    <div className="stack-small">
      <ul className="facet-values" aria-label="Values">
        {values.map(({ value, name, count: number }) => (
          <li key={value}>
            <button
              type="button"
              className="facet-value"
              title={value}
              style={{ '--fill': `${most > 0 ? (number / most) * 100 : 0}%` } as CSSProperties}
              onClick={() => onSet(value)}
            >
              <span className="cut">{name}</span>
              <span className="faint">{shortCount(number)}</span>
            </button>
          </li>
        ))}
      </ul>
      {(partial || more) && (
        <p className="faint small">
          {partial && `Of the newest ${count(rows)} requests. `}
          {more && 'There are further values.'}
        </p>
      )}
    </div>
  )
}
