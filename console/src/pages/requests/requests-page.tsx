/** The request log: a search over a range of time, or what happens now. */
import { useApiList } from '../../api/hooks.ts'
import { count } from '../../lib/format.ts'
import { flag, text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { useListPages } from '../../ui/list-pages.ts'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { useTimeRange } from '../../ui/time-range.tsx'
import { requestColumns } from './columns.tsx'
import { FILTER_NAMES, type FilterName, type FilterValues, filtersOf } from './filters.ts'
import { LiveTail } from './live-tail.tsx'
import { useProjectNames } from './names.ts'
import { RequestFilters } from './request-filters.tsx'

const READERS = Object.fromEntries(FILTER_NAMES.map((name) => [name, text()])) as Record<
  FilterName,
  ReturnType<typeof text>
>
const NONE = Object.fromEntries(FILTER_NAMES.map((name) => [name, ''])) as Record<FilterName, string>

export function RequestsPage() {
  const [{ live, ...search }, change] = useAddress({ ...READERS, live: flag() })
  const filters = filtersOf(search)
  return (
    <>
      <PageHead
        title="Requests"
        note="Every call and every refused request of a known token."
        acts={
          <Segments
            label="What is shown"
            value={live ? 'live' : 'search'}
            options={[
              { value: 'search', label: 'Search' },
              { value: 'live', label: 'Live' },
            ]}
            onChange={(value) => change({ live: value === 'live' }, { push: true })}
          />
        }
      />
      <div className="stack">
        <RequestFilters
          values={filters}
          onChange={(changes) => change(changes, { push: true })}
          onClear={() => change(NONE, { push: true })}
          hasRange={!live}
        />
        {live ? (
          <LiveTail key={JSON.stringify(filters)} filters={filters} />
        ) : (
          <Search filters={filters} onClear={() => change(NONE)} />
        )}
      </div>
    </>
  )
}

function Search({ filters, onClear }: { filters: FilterValues; onClear(): void }) {
  const { start, end, label } = useTimeRange('24h')
  const [kept] = useAddress({ range: text(), from: text(), to: text(), pages: text() })
  const nameOf = useProjectNames()
  const list = useListPages(useApiList('GET /admin/v1/requests', { query: { ...filters, from: start, to: end } }))
  const search = withoutEmpty({ ...filters, ...kept })
  const isFiltered = Object.keys(filters).length > 0
  const { rows, hasMore } = list
  return (
    <div className="requests-list">
      <Table
        label="Requests"
        columns={requestColumns(nameOf)}
        rows={rows}
        keyOf={({ id }) => id}
        linkOf={({ id }) => ({ to: `/requests/${id}`, search })}
        isLoading={list.isLoading}
        error={list.error}
        onRetry={list.reload}
        hasMore={hasMore}
        isLoadingMore={list.isLoadingMore}
        onMore={list.more}
        foot={`${count(rows.length)} ${rows.length === 1 ? 'request' : 'requests'}${hasMore ? ' so far' : ''}`}
        empty={
          hasMore ? (
            <Empty
              title="Nothing so far"
              acts={
                <Button onClick={list.more} isBusy={list.isLoadingMore}>
                  Search further back
                </Button>
              }
            >
              The newest rows do not meet these filters. Older ones may.
            </Empty>
          ) : isFiltered ? (
            <Empty title="No request meets these filters" acts={<Button onClick={onClear}>Clear filters</Button>}>
              Nothing in the range “{label}” has all of these values.
            </Empty>
          ) : (
            <Empty title="No requests yet">
              Calls appear here within a second. Choose a longer range, or make a call in the playground.
            </Empty>
          )
        }
      />
    </div>
  )
}

const withoutEmpty = (values: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1])))
