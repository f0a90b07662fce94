/** One provider: its keys, health and traffic, its models and its settings; test it, take it out, put it back. */
import { useApi, useApiList, useMe } from '../../api/hooks.ts'
import { errorsOf, timesOf, useSummary, valuesOf } from '../../api/summary.ts'
import type { AdminProviderWithSettings, Setting } from '../../api/types.ts'
import { callCount, duration, shortCount } from '../../lib/format.ts'
import { hasRight } from '../../shell/page.ts'
import { useRouteParams } from '../../ui/address.ts'
import { A, ButtonLink } from '../../ui/button.tsx'
import { Chart } from '../../ui/chart.tsx'
import { Card, Facts, Nothing } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'
import { AddKey } from './add-key.tsx'
import { ServiceMenu } from './provider-acts.tsx'
import { ProviderState, StateBadge } from './provider-state.tsx'
import { ProviderTests } from './provider-test.tsx'

type Key = AdminProviderWithSettings['keys'][number]

export function ProviderPage() {
  const { provider: id = '' } = useRouteParams()
  const me = useMe()
  const mayOperate = hasRight(me, 'operate')
  const range = useTimeRange('24h')
  const provider = useApi('GET /admin/v1/providers/{provider}', { params: { provider: id } }, { refetch_ms: 10_000 })
  const usage = useSummary(range, { provider: id })
  const calls = usage.data?.total.calls ?? 0
  const use = `${callCount(calls)} in the ${range.label.toLowerCase()}.`
  return (
    <>
      <PageHead
        title={id}
        crumbs={[{ to: '/providers', label: 'Providers' }]}
        aside={provider.data && <ProviderState provider={provider.data} />}
        acts={
          <>
            <TimeRangeSelect fallback="24h" />
            <ButtonLink to="/requests" search={{ provider: id }}>
              Its requests
            </ButtonLink>
            {hasRight(me, 'own') && provider.data?.found_by === 'file' && <AddKey id={id} />}
            {mayOperate && provider.data && (
              <ServiceMenu kind="provider" name={id} state={provider.data.state} use={use} />
            )}
          </>
        }
      />
      <Loaded query={provider} lines={10}>
        {(data) => (
          <div className="stack">
            <div className="grid-wide">
              <Card title="What it is">
                <Facts
                  rows={[
                    ['Kind', data.kind],
                    ['Address', data.address ?? <Nothing key="address" text="of its kind" />],
                    ['Found by', data.found_by],
                    [
                      'Models',
                      <A key="models" to="/models" search={{ provider: id }}>
                        {data.models}
                      </A>,
                    ],
                    ['Probe', data.active_health ?? <Nothing key="probe" text="not probed" />],
                    ['List of models', data.is_list_failing ? 'cannot be read' : undefined],
                  ]}
                />
              </Card>
              {mayOperate && <ProviderTests id={id} keys={data.keys.map(({ name }) => name)} />}
            </div>
            {data.keys.length > 0 && <Keys id={id} keys={data.keys} mayOperate={mayOperate} />}
            <Traffic usage={usage} />
            <Models id={id} />
            <Card title="Settings" isFlush>
              <Table
                label="Settings"
                columns={SETTING_COLUMNS}
                rows={data.settings}
                keyOf={({ path }) => path}
                empty={<p className="state soft">The configuration says nothing of it.</p>}
              />
            </Card>
          </div>
        )}
      </Loaded>
    </>
  )
}

function Keys({ id, keys, mayOperate }: { id: string; keys: Key[]; mayOperate: boolean }) {
  const columns: Column<Key>[] = [
    { key: 'name', head: 'Key', cell: ({ name }) => name },
    { key: 'state', head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
    { key: 'weight', head: 'Weight', cell: ({ weight }) => weight, isNumber: true },
    { key: 'models', head: 'Models', cell: ({ models }) => models?.join(', ') ?? 'all' },
    {
      key: 'acts',
      head: '',
      cell: ({ name, state }) =>
        mayOperate && (
          <ServiceMenu
            kind="key"
            name={`${id}#${name}`}
            state={state}
            use="Calls go to the other keys of the provider."
          />
        ),
    },
  ]
  return (
    <Card title="Keys" isFlush>
      <Table label="Keys" columns={columns} rows={keys} keyOf={({ name }) => name} />
    </Card>
  )
}

function Traffic({ usage }: { usage: ReturnType<typeof useSummary> }) {
  return (
    <Loaded query={usage}>
      {(summary) => {
        const times = timesOf(summary)
        const [series] = summary.series
        return (
          <div className="grid-wide">
            <Card title="Calls">
              <Chart
                label="Calls and failed calls over time"
                times={times}
                format={shortCount}
                series={[
                  { name: 'Calls', values: valuesOf(series, times, { read: ({ calls }) => calls, without: 0 }) },
                  { name: 'Failed', values: valuesOf(series, times, { read: errorsOf, without: 0 }) },
                ]}
              />
            </Card>
            <Card title="Duration">
              <Chart
                label="Duration over time"
                times={times}
                format={duration}
                series={[
                  {
                    name: 'Median',
                    values: valuesOf(series, times, { read: (one) => one.duration.p50, without: null }),
                  },
                  { name: '95 %', values: valuesOf(series, times, { read: (one) => one.duration.p95, without: null }) },
                ]}
              />
            </Card>
          </div>
        )
      }}
    </Loaded>
  )
}

function Models({ id }: { id: string }) {
  const models = useApiList('GET /admin/v1/models', { query: { provider: id } }, { refetch_ms: 15_000 })
  const rows = models.rows.flatMap((model) =>
    model.targets.filter(({ provider }) => provider === id).map((target) => ({ model: model.id, target })),
  )
  const columns: Column<(typeof rows)[number]>[] = [
    { key: 'model', head: 'Model', cell: ({ model }) => model },
    { key: 'name', head: 'At the provider', cell: ({ target }) => target.id },
    { key: 'state', head: 'State', cell: ({ target }) => <StateBadge state={target.health.state} /> },
    { key: 'weight', head: 'Weight', cell: ({ target }) => target.weight, isNumber: true },
    { key: 'open', head: 'Open calls', cell: ({ target }) => target.health.open_calls, isNumber: true },
  ]
  return (
    <Card title="Models" isFlush>
      <Table
        label="Models of the provider"
        columns={columns}
        rows={rows}
        keyOf={({ model, target }) => `${model} ${target.id}`}
        linkOf={({ model }) => ({ to: `/models/${model}` })}
        isLoading={models.isLoading}
        error={models.error}
        onRetry={models.reload}
        hasMore={models.hasMore}
        isLoadingMore={models.isLoadingMore}
        onMore={models.more}
        empty={
          <p className="state soft">
            No model of it is served: name one in the configuration, or let it discover them.
          </p>
        }
      />
    </Card>
  )
}

const sourceText = ({ source: { from, file, line, name } }: Setting): string =>
  [from, file?.replace(/^.*\//, ''), line, name].filter((part) => part !== undefined).join(' ')

const SETTING_COLUMNS: Column<Setting>[] = [
  { key: 'path', head: 'Setting', cell: ({ path }) => <span className="mono">{path}</span> },
  { key: 'value', head: 'Value', cell: ({ value }) => <span className="mono">{JSON.stringify(value)}</span> },
  { key: 'source', head: 'From', cell: sourceText },
]
