/** The list of files: whose they are, what for, how large, and until when they are kept. */
import type { AdminFile } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Nothing } from '../../ui/display.tsx'
import { FilterSelect, Filters, OwnerSearch } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Bytes, ShortTime, Time } from '../../ui/values.tsx'
import { NO_FILTER, PURPOSES, useFileList } from './file-list.ts'

const COLUMNS: Column<AdminFile>[] = [
  { key: 'time', head: 'Stored', cell: ({ created_at }) => <ShortTime at={created_at} /> },
  { key: 'name', head: 'Name', cell: ({ filename }) => <span className="cut">{filename}</span> },
  { key: 'purpose', head: 'Purpose', cell: ({ purpose }) => PURPOSES[purpose] },
  { key: 'bytes', head: 'Size', cell: ({ bytes }) => <Bytes value={bytes} />, isNumber: true },
  { key: 'token', head: 'Token', cell: ({ token_id }) => <span className="mono cut">{token_id}</span> },
  {
    key: 'expires',
    head: 'Kept until',
    cell: ({ expires_at }) => (expires_at === null ? <Nothing text="deleted" /> : <Time at={expires_at} isRelative />),
  },
]

export function FilesPage() {
  const { filters, change, list, kept, isFiltered } = useFileList()
  const { purpose, project_id, token_id } = filters
  const clear = () => change(NO_FILTER)
  return (
    <>
      <PageHead title="Files" note="What clients have uploaded, and the results of batches." />
      <div className="stack">
        <Filters onClear={isFiltered ? clear : undefined}>
          <OwnerSearch token_id={token_id} project_id={project_id} onChange={change} />
          <FilterSelect
            label="Purpose"
            value={purpose}
            options={Object.entries(PURPOSES).map(([value, label]) => ({ value, label }))}
            onChange={(value) => change({ purpose: value as typeof purpose }, { push: true })}
          />
        </Filters>
        <Table
          label="Files"
          columns={COLUMNS}
          rows={list.rows}
          keyOf={({ file_id }) => file_id}
          linkOf={({ file_id }) => ({ to: `/files/${file_id}`, search: kept })}
          isLoading={list.isLoading}
          error={list.error}
          onRetry={list.reload}
          hasMore={list.hasMore}
          isLoadingMore={list.isLoadingMore}
          onMore={list.more}
          empty={
            isFiltered ? (
              <Empty title="No file meets these filters" acts={<Button onClick={clear}>Clear filters</Button>} />
            ) : (
              <Empty title="No files yet" icon="file">
                Clients upload them to <code>POST /v1/files</code>: requests of a batch, or inputs of calls.
              </Empty>
            )
          }
        />
      </div>
    </>
  )
}
