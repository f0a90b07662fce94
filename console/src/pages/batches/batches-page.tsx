/** The list of batches: their state, progress and errors. */
import type { AdminBatch } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Nothing } from '../../ui/display.tsx'
import { FilterSelect, Filters, OwnerSearch } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Count, ShortTime, Time } from '../../ui/values.tsx'
import { BatchProgress, BatchState, NO_FILTER, STATUS_OPTIONS, useBatchList } from './batch-list.tsx'

const COLUMNS: Column<AdminBatch>[] = [
  { key: 'time', head: 'Created', cell: ({ created_at }) => <ShortTime at={created_at} /> },
  { key: 'status', head: 'State', cell: (batch) => <BatchState batch={batch} /> },
  { key: 'progress', head: 'Requests', cell: (batch) => <BatchProgress batch={batch} /> },
  { key: 'errors', head: 'Errors', cell: ({ lines }) => <Count value={lines.errored} />, isNumber: true },
  { key: 'model', head: 'Model', cell: ({ model }) => model ?? <Nothing text="–" /> },
  { key: 'endpoint', head: 'Path', cell: ({ endpoint }) => <span className="mono">{endpoint}</span> },
  {
    key: 'end',
    head: 'Ended',
    cell: ({ ended_at }) => (ended_at === null ? <Nothing text="–" /> : <Time at={ended_at} isRelative />),
  },
]
const AGAIN_MILLISECONDS = 5_000

export function BatchesPage() {
  const { filters, change, list, kept, isFiltered } = useBatchList({ refetch_ms: AGAIN_MILLISECONDS })
  const { status, project_id, token_id } = filters
  const clear = () => change(NO_FILTER)
  return (
    <>
      <PageHead title="Batches" note="Lists of requests that are executed at low priority, within a day." />
      <div className="stack">
        <Filters onClear={isFiltered ? clear : undefined}>
          <OwnerSearch token_id={token_id} project_id={project_id} onChange={change} />
          <FilterSelect
            label="State"
            value={status}
            options={STATUS_OPTIONS}
            onChange={(value) => change({ status: value as typeof status }, { push: true })}
          />
        </Filters>
        <Table
          label="Batches"
          columns={COLUMNS}
          rows={list.rows}
          keyOf={({ batch_id }) => batch_id}
          linkOf={({ batch_id }) => ({ to: `/batches/${batch_id}`, search: kept })}
          isLoading={list.isLoading}
          error={list.error}
          onRetry={list.reload}
          hasMore={list.hasMore}
          isLoadingMore={list.isLoadingMore}
          onMore={list.more}
          empty={
            isFiltered ? (
              <Empty title="No batch meets these filters" acts={<Button onClick={clear}>Clear filters</Button>} />
            ) : (
              <Empty title="No batches yet" icon="batch">
                Upload a file of requests and name it in <code>POST /v1/batches</code>, or send the requests to{' '}
                <code>POST /v1/messages/batches</code>.
              </Empty>
            )
          }
        />
      </div>
    </>
  )
}
