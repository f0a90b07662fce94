/** Every setting in force, with where its value comes from. */
import { useApiAll, useMe } from '../../api/hooks.ts'
import type { Setting } from '../../api/types.ts'
import { text } from '../../lib/search.ts'
import { hasRight } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'

const placeOf = ({ source: { file, line, name } }: Setting): string =>
  [name, file?.replace(/^.*\//, ''), line === undefined ? undefined : `line ${line}`]
    .filter((part) => part !== undefined)
    .join(', ')

const valueText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const COLUMNS: Column<Setting>[] = [
  { key: 'path', head: 'Setting', cell: ({ path }) => <span className="mono">{path}</span> },
  {
    key: 'value',
    head: 'Value',
    cell: ({ value }) => (
      <span className="mono" title={valueText(value)}>
        {valueText(value)}
      </span>
    ),
  },
  {
    key: 'from',
    head: 'From',
    cell: ({ source }) => <Badge tone={source.from === 'default' ? 'plain' : 'info'}>{source.from}</Badge>,
  },
  { key: 'place', head: 'Place', cell: placeOf },
]

export function ConfigPage() {
  const isOwner = hasRight(useMe(), 'own')
  const [{ q, from }, change] = useAddress({ q: text(), from: text() })
  const settings = useApiAll('GET /admin/v1/config', {})
  const wanted = q.toLowerCase()
  const rows = settings.rows.filter(
    ({ path, value, source }) =>
      (from === '' || source.from === from) &&
      (path.toLowerCase().includes(wanted) || valueText(value).toLowerCase().includes(wanted)),
  )
  const sources = [...new Set(settings.rows.map(({ source }) => source.from))].sort()
  return (
    <>
      <PageHead
        title="Configuration"
        acts={
          isOwner && (
            <>
              <ButtonLink to="/config/history">History</ButtonLink>
              <ButtonLink to="/config/edit" icon="edit">
                Edit
              </ButtonLink>
            </>
          )
        }
        note={
          <>
            What is in force now, and where each value comes from. Secrets are hidden.{' '}
            <a href="/manual/settings" target="_blank" rel="noreferrer">
              All settings
            </a>{' '}
            are in the manual.
          </>
        }
      />
      <div className="stack">
        <Filters onClear={q || from ? () => change({ q: '', from: '' }) : undefined}>
          <SearchField label="Find a setting" value={q} onChange={(value) => change({ q: value })} />
          <FilterSelect
            label="From"
            value={from}
            options={sources.map((value) => ({ value, label: value }))}
            onChange={(value) => change({ from: value })}
          />
        </Filters>
        <Table
          label="Settings"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ path }) => path}
          isLoading={settings.isLoading}
          error={settings.error}
          onRetry={settings.reload}
          foot={`${rows.length} settings`}
          empty={<Empty title="No setting fits these filters">Clear a filter to see more of them.</Empty>}
        />
      </div>
    </>
  )
}
