/** The list of models, as cards or as a table. */
import type { ReactNode } from 'react'
import { useApiList, useMe } from '../../api/hooks.ts'
import type { AdminModel } from '../../api/types.ts'
import { familyName, USES, usesOf } from '../../lib/families.ts'
import { count } from '../../lib/format.ts'
import { choice, text } from '../../lib/search.ts'
import { seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { A, Button, ButtonLink } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import type { Option } from '../../ui/select.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { ModelStatus, priceText, TargetHealth, tokens } from './model-parts.tsx'

const STATUSES = ['active', 'deprecated', 'retired'].map((value) => ({ value, label: value }))
/** Of one page. More cards than a screen or two are a table that is hard to read. */
const SHOWN_MODELS = 60
// biome-ignore format: each beside its opposite
const ORDERS = [
  'id', '-id', 'status', '-status', 'context', '-context', 'output', '-output', 'price', '-price',
] as const

const ADDRESS = {
  q: text(),
  family: text(),
  status: text(),
  provider: text(),
  sort: choice(ORDERS, 'id'),
  view: choice(['cards', 'table'], 'cards'),
}

export function ModelsPage() {
  const isOfAll = seesAll(useMe())
  const [{ q, family, status, provider, sort, view }, change] = useAddress(ADDRESS)
  const query = { q, family, status, provider, order: sort, counts: 'true' as const }
  const options = { limit: SHOWN_MODELS, refetch_ms: 30_000, keepPrevious: true }
  const models = useApiList('GET /admin/v1/models', { query }, options)
  const providers = useApiList('GET /admin/v1/providers', {}, { limit: 200, enabled: isOfAll })
  const { rows, hasMore, isLoadingMore, first } = models
  const foot = countText(rows.length, first?.total ?? rows.length)
  const withCounts = (options: Option[], counts: Record<string, number> | undefined): Option[] =>
    counts ? options.map((option) => ({ ...option, note: count(counts[option.value] ?? 0) })) : options
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
              options={withCounts(USES, first?.counts?.family)}
              onChange={(value) => change({ family: value })}
            />
            {isOfAll && (
              <FilterSelect
                label="Provider"
                value={provider}
                options={providers.rows.map(({ id }) => ({ value: id, label: id }))}
                onChange={(value) => change({ provider: value })}
              />
            )}
            <FilterSelect
              label="Status"
              value={status}
              options={withCounts(STATUSES, first?.counts?.status)}
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
            onSort={(value) => change({ sort: value as typeof sort })}
            isLoading={models.isLoading}
            error={models.error}
            onRetry={models.reload}
            hasMore={hasMore}
            isLoadingMore={isLoadingMore}
            onMore={models.more}
            foot={foot}
            empty={<NoModels isFiltered={isFiltered} />}
          />
        ) : models.isLoading ? (
          <Loading lines={8} />
        ) : models.error && rows.length === 0 ? (
          <Failed error={models.error} onRetry={models.reload} />
        ) : rows.length === 0 ? (
          <NoModels isFiltered={isFiltered} />
        ) : (
          <Cards rows={rows} foot={foot}>
            {hasMore && (
              <Button size="small" onClick={models.more} isBusy={isLoadingMore}>
                Load more
              </Button>
            )}
          </Cards>
        )}
      </div>
    </>
  )
}

const countText = (shown: number, all: number) =>
  shown === all ? `${count(all)} ${all === 1 ? 'model' : 'models'}` : `${count(shown)} of ${count(all)} models`

function NoModels({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No model fits these filters">Clear a filter to see more of them.</Empty>
  return (
    <Empty title="There are no models yet" icon="model" acts={<ButtonLink to="/providers">See providers</ButtonLink>}>
      Models come with a provider: add one, and its models are found.
    </Empty>
  )
}

function Cards({ rows, foot, children }: { rows: AdminModel[]; foot: string; children: ReactNode }) {
  return (
    <>
      <ul className="grid">
        {rows.map((model) => (
          <ModelCard key={model.id} model={model} />
        ))}
      </ul>
      <div className="row faint">
        {foot}
        {children}
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
