/** The list of providers with their health and their traffic of a day. */
import { useApiAll, useMe } from '../../api/hooks.ts'
import { errorsOf, type Sums, useSummary } from '../../api/summary.ts'
import type { AdminProvider } from '../../api/types.ts'
import { share } from '../../lib/format.ts'
import { text } from '../../lib/search.ts'
import { hasRight } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, sorted, Table } from '../../ui/table.tsx'
import { TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'
import { Count, Duration, Money } from '../../ui/values.tsx'
import { ProviderState } from './provider-state.tsx'

type Row = AdminProvider & { sums: Sums | undefined }

const COLUMNS: Column<Row>[] = [
  { key: 'id', head: 'Provider', cell: ({ id }) => id, isSortable: true },
  { key: 'state', head: 'State', cell: (row) => <ProviderState provider={row} /> },
  { key: 'kind', head: 'Kind', cell: ({ kind }) => kind, isSortable: true },
  { key: 'keys', head: 'Named keys', cell: ({ keys }) => keys.length, isNumber: true },
  { key: 'models', head: 'Models', cell: ({ models }) => models, isNumber: true, isSortable: true },
  {
    key: 'calls',
    head: 'Calls',
    cell: ({ sums }) => <Count value={sums?.calls ?? 0} />,
    isNumber: true,
    isSortable: true,
  },
  {
    key: 'failed',
    head: 'Failed',
    cell: ({ sums }) => (sums?.calls ? share(errorsOf(sums) / sums.calls) : '–'),
    isNumber: true,
  },
  { key: 'p95', head: '95 %', cell: ({ sums }) => <Duration ms={sums?.duration.p95 ?? null} />, isNumber: true },
  {
    key: 'cost',
    head: 'Cost',
    cell: ({ sums }) => <Money value={sums?.cost ?? 0} />,
    isNumber: true,
    isSortable: true,
  },
]

const MOST_SERIES = 50

export function ProvidersPage() {
  const [{ q, sort }, change] = useAddress({ q: text(), sort: text('id') })
  const isOwner = hasRight(useMe(), 'own')
  const range = useTimeRange('24h')
  const providers = useApiAll('GET /admin/v1/providers', {}, { refetch_ms: 15_000 })
  const summary = useSummary(range, { by: 'provider', limit: MOST_SERIES, points: 'false' })
  const sums = new Map(summary.data?.series.map(({ key, total }) => [key, total]))
  const rows = providers.rows
    .filter(({ id }) => id.toLowerCase().includes(q.toLowerCase()))
    .map((provider): Row => ({ ...provider, sums: sums.get(provider.id) }))
  return (
    <>
      <PageHead
        title="Providers"
        note="The vendors and servers that the gateway calls, as this process knows their health."
        acts={
          isOwner && (
            <ButtonLink to="/providers/new" kind="primary" icon="plus">
              Add a provider
            </ButtonLink>
          )
        }
      />
      <div className="stack">
        <Filters onClear={q ? () => change({ q: '' }) : undefined}>
          <SearchField label="Find a provider" value={q} onChange={(value) => change({ q: value })} />
          <TimeRangeSelect fallback="24h" />
        </Filters>
        <Table
          label="Providers"
          columns={COLUMNS}
          rows={sorted(rows, sort, sortValue)}
          keyOf={({ id }) => id}
          linkOf={({ id }) => ({ to: `/providers/${encodeURIComponent(id)}` })}
          sort={sort}
          onSort={(value) => change({ sort: value })}
          isLoading={providers.isLoading}
          error={providers.error}
          onRetry={providers.reload}
          empty={
            <Empty title={q ? 'No provider has this name' : 'There are no providers yet'} icon="provider">
              {q ? 'Clear the search to see all of them.' : 'Add one: with its key, its models are found.'}
            </Empty>
          }
        />
      </div>
    </>
  )
}

function sortValue({ id, kind, models, sums }: Row, key: string): string | number {
  if (key === 'models') return models
  if (key === 'calls') return sums?.calls ?? 0
  if (key === 'cost') return sums?.cost ?? 0
  return key === 'kind' ? kind : id
}
