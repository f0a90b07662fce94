/** The list of models, as cards or as a table. */
import { useApiAll, useMe } from '../../api/hooks.ts'
import type { AdminModel } from '../../api/types.ts'
import { choice, text } from '../../lib/search.ts'
import { seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { A, ButtonLink } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'
import { type Column, sorted, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { familyName, usesOf } from './families.ts'
import { ModelStatus, priceText, TargetHealth, tokens } from './model-parts.tsx'

const STATUSES = ['active', 'deprecated', 'retired']
/** More cards than a screen or two are a table that is hard to read. */
const SHOWN_CARDS = 60

const ADDRESS = {
  q: text(),
  family: text(),
  status: text(),
  provider: text(),
  sort: text('id'),
  view: choice(['cards', 'table'], 'cards'),
}

export function ModelsPage() {
  const isOfAll = seesAll(useMe())
  const [{ q, family, status, provider, sort, view }, change] = useAddress(ADDRESS)
  const models = useApiAll('GET /admin/v1/models', {}, { refetch_ms: 30_000 })
  const all = models.rows
  const fitting = all.filter(
    (model) =>
      model.id.toLowerCase().includes(q.toLowerCase()) &&
      (family === '' || model.families.includes(family)) &&
      (status === '' || model.status === status) &&
      (provider === '' || model.targets.some((target) => target.provider === provider)),
  )
  const rows = sorted(fitting, sort, sortValue)
  const isFiltered = [q, family, status, provider].some((value) => value !== '')
  const clear = () => change({ q: '', family: '', status: '', provider: '' })
  return (
    <>
      <PageHead title="Models" note="What this gateway serves, each by the name to use in a request." />
      <div className="stack">
        <div className="row-between">
          <Filters onClear={isFiltered ? clear : undefined}>
            <SearchField label="Find a model" value={q} onChange={(value) => change({ q: value })} />
            <FilterSelect
              label="Use"
              value={family}
              options={valuesOf(all, ({ families }) => usesOf(families), familyName)}
              onChange={(value) => change({ family: value })}
            />
            {isOfAll && (
              <FilterSelect
                label="Provider"
                value={provider}
                options={valuesOf(all, ({ targets }) => targets.map((target) => target.provider))}
                onChange={(value) => change({ provider: value })}
              />
            )}
            <FilterSelect
              label="Status"
              value={status}
              options={STATUSES.map((value) => ({ value, label: value }))}
              onChange={(value) => change({ status: value })}
            />
          </Filters>
          <Segments
            label="View"
            value={view}
            options={[
              { value: 'cards', label: 'Cards' },
              { value: 'table', label: 'Table' },
            ]}
            onChange={(value) => change({ view: value as typeof view })}
          />
        </div>
        {view === 'table' ? (
          <Table
            label="Models"
            columns={isOfAll ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'health')}
            rows={rows}
            keyOf={({ id }) => id}
            linkOf={({ id }) => ({ to: `/models/${id}` })}
            sort={sort}
            onSort={(value) => change({ sort: value })}
            isLoading={models.isLoading}
            error={models.error}
            onRetry={models.reload}
            foot={countText(rows.length, all.length)}
            empty={<NoModels isFiltered={isFiltered} />}
          />
        ) : models.isLoading ? (
          <Loading lines={8} />
        ) : models.error && all.length === 0 ? (
          <Failed error={models.error} onRetry={models.reload} />
        ) : rows.length === 0 ? (
          <NoModels isFiltered={isFiltered} />
        ) : (
          <Cards rows={rows} total={all.length} onTable={() => change({ view: 'table' })} />
        )}
      </div>
    </>
  )
}

const countText = (shown: number, all: number) => (shown === all ? `${all} models` : `${shown} of ${all} models`)

function NoModels({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No model fits these filters">Clear a filter to see more of them.</Empty>
  return (
    <Empty title="There are no models yet" icon="model" acts={<ButtonLink to="/providers">See providers</ButtonLink>}>
      Models come with a provider: add one, and its models are found.
    </Empty>
  )
}

type CardsProps = { rows: AdminModel[]; total: number; onTable(): void }

function Cards({ rows, total, onTable }: CardsProps) {
  const shown = rows.slice(0, SHOWN_CARDS)
  return (
    <>
      <ul className="grid">
        {shown.map((model) => (
          <ModelCard key={model.id} model={model} />
        ))}
      </ul>
      <div className="row faint">
        {countText(shown.length, total)}
        {rows.length > shown.length && (
          <button type="button" className="button" data-size="small" onClick={onTable}>
            Show all in a table
          </button>
        )}
      </div>
    </>
  )
}

function ModelCard({ model }: { model: AdminModel }) {
  const isOfAll = seesAll(useMe())
  return (
    <li className="model-card">
      <div className="row-between">
        <A to={`/models/${model.id}`} className="model-card-link wrap">
          {model.id}
        </A>
        {model.status === 'active' && !model.is_disabled && isOfAll ? (
          <TargetHealth targets={model.targets} />
        ) : (
          <ModelStatus model={model} />
        )}
      </div>
      <div className="row">
        {usesOf(model.families).map((family) => (
          <Badge key={family}>{familyName(family)}</Badge>
        ))}
      </div>
      <dl className="model-card-facts">
        <div>
          <dt>Context</dt>
          <dd>{tokens(model.context_tokens)}</dd>
        </div>
        <div>
          <dt>Output</dt>
          <dd>{tokens(model.max_output_tokens)}</dd>
        </div>
        <div>
          <dt>{isByToken(model) ? 'Per million tokens' : 'Price'}</dt>
          <dd>{priceText(model.price)}</dd>
        </div>
      </dl>
    </li>
  )
}

const isByToken = ({ price }: AdminModel): boolean => (price?.input ?? 0) > 0

const COLUMNS: Column<AdminModel>[] = [
  { key: 'id', head: 'Model', cell: ({ id }) => id, isSortable: true },
  { key: 'uses', head: 'Use', cell: ({ families }) => usesOf(families).map(familyName).join(', ') },
  { key: 'status', head: 'Status', cell: (model) => <ModelStatus model={model} />, isSortable: true },
  { key: 'health', head: 'Targets', cell: ({ targets }) => <TargetHealth targets={targets} /> },
  { key: 'context', head: 'Context', cell: (model) => tokens(model.context_tokens), isNumber: true, isSortable: true },
  { key: 'output', head: 'Output', cell: (m) => tokens(m.max_output_tokens), isNumber: true, isSortable: true },
  { key: 'price', head: 'Price', cell: ({ price }) => priceText(price), isNumber: true, isSortable: true },
]

function sortValue(model: AdminModel, key: string): string | number | null {
  if (key === 'context') return model.context_tokens ?? 0
  if (key === 'output') return model.max_output_tokens ?? 0
  if (key === 'price') return model.price?.output ?? model.price?.image ?? 0
  return key === 'status' ? model.status : model.id
}

/** The values that some rows have, with how many have them. */
function valuesOf(rows: AdminModel[], read: (row: AdminModel) => string[], name: (value: string) => string = String) {
  const counts = new Map<string, number>()
  for (const row of rows) for (const value of new Set(read(row))) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts]
    .map(([value, count]) => ({ value, label: name(value), note: String(count) }))
    .sort((a, b) => a.label.localeCompare(b.label))
}
