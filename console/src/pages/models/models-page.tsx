/** The list of models. */
import { useApiList } from '../../api/hooks.ts'
import type { AdminModel } from '../../api/types.ts'
import { choice, text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Badge } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, sorted, Table } from '../../ui/table.tsx'

const COLUMNS: Column<AdminModel>[] = [
  { key: 'id', head: 'Model', cell: ({ id }) => id, isSortable: true },
  {
    key: 'status',
    head: 'Status',
    cell: ({ status }) => <Badge tone={status === 'active' ? 'ok' : 'warn'}>{status}</Badge>,
  },
  { key: 'families', head: 'Families', cell: ({ families }) => families.join(', ') },
  { key: 'targets', head: 'Targets', cell: ({ targets }) => targets.length, isNumber: true, isSortable: true },
]

export function ModelsPage() {
  const [{ q, status, sort }, change] = useAddress({
    q: text(),
    status: choice(['', 'active', 'deprecated', 'retired'], ''),
    sort: text('id'),
  })
  const models = useApiList('GET /admin/v1/models', {})
  const fitting = models.rows.filter(
    (model) => model.id.toLowerCase().includes(q.toLowerCase()) && (status === '' || model.status === status),
  )
  const rows = sorted(fitting, sort, (model, key) => (key === 'targets' ? model.targets.length : model.id))
  return (
    <>
      <PageHead title="Models" note="What the gateway serves, by the name to use in a request." />
      <div className="stack">
        <Filters onClear={q || status ? () => change({ q: '', status: '' }) : undefined}>
          <SearchField label="Find a model" value={q} onChange={(value) => change({ q: value })} />
          <FilterSelect
            label="Status"
            value={status}
            options={['active', 'deprecated', 'retired'].map((value) => ({ value, label: value }))}
            onChange={(value) => change({ status: value as typeof status })}
          />
        </Filters>
        <Table
          label="Models"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ id }) => id}
          linkOf={({ id }) => ({ to: `/models/${id}` })}
          sort={sort}
          onSort={(value) => change({ sort: value })}
          isLoading={models.isLoading}
          error={models.error}
          onRetry={models.reload}
          hasMore={models.hasMore}
          isLoadingMore={models.isLoadingMore}
          onMore={models.more}
          foot={`${rows.length} models`}
          empty={<Empty title="No model fits these filters">Clear the filters, or add a provider.</Empty>}
        />
      </div>
    </>
  )
}
