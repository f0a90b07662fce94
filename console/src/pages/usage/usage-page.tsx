/** Use and cost over a range of time, split by who or what, as a chart and as a table. */
import { useMe } from '../../api/hooks.ts'
import { errorsOf, type Sums, timesOf, useSummary, valuesOf } from '../../api/summary.ts'
import type { Summary, SummarySeries } from '../../api/types.ts'
import { share } from '../../lib/format.ts'
import { choice, text } from '../../lib/search.ts'
import { seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { A } from '../../ui/button.tsx'
import { Chart } from '../../ui/chart.tsx'
import { Card, Stat, Stats } from '../../ui/display.tsx'
import { Filters } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Select } from '../../ui/select.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { type Column, sorted, Table } from '../../ui/table.tsx'
import { type TimeRange, TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'
import { Count, Money } from '../../ui/values.tsx'
import { BudgetForecasts } from './budget-forecasts.tsx'
import { LedgerCheckCard } from './ledger-check.tsx'
import { MEASURE_NAMES, MEASURES, nameOf, pageOf, SPLIT_NAMES, SPLITS, type Split } from './measures.ts'

const SHOWN_IN_CHART = 7
const SHOWN_IN_TABLE = 50

export function UsagePage() {
  const me = useMe()
  const range = useTimeRange('30d')
  const [{ by, of, sort }, change] = useAddress({
    by: choice(SPLIT_NAMES, seesAll(me) ? 'project' : 'token'),
    of: choice(MEASURE_NAMES, 'cost'),
    sort: text('-cost'),
  })
  const order = of === 'charge' ? 'charge' : of === 'cost' ? 'cost' : 'calls'
  const chart = useSummary(range, { by, limit: SHOWN_IN_CHART, order })
  const table = useSummary(range, { by, limit: SHOWN_IN_TABLE, order, points: 'false' })
  const before = useSummary({ ...range.previous, step: range.step }, { by: 'none', points: 'false' })
  return (
    <>
      <PageHead
        title="Usage and cost"
        note="What the gateway was used for, and what it cost."
        acts={<ExportLink by={by} range={range} />}
      />
      <div className="stack">
        <Filters>
          <TimeRangeSelect fallback="30d" />
          <Select
            isCompact
            label="By"
            value={by}
            options={SPLIT_NAMES.map((value) => ({ value, label: SPLITS[value] }))}
            onChange={(value) => change({ by: value as Split }, { push: true })}
          />
          <Select
            isCompact
            label="Show"
            value={of}
            options={MEASURE_NAMES.map((value) => ({ value, label: MEASURES[value].label }))}
            onChange={(value) => change({ of: value as typeof of }, { push: true })}
          />
        </Filters>
        <Loaded query={chart} lines={10}>
          {(data) => (
            <>
              <Figures total={data.total} before={before.data?.total} />
              <Card title={`${MEASURES[of].label} by ${SPLITS[by].toLowerCase()}`}>
                {data.total.calls === 0 ? <NoCalls /> : <SplitChart data={data} by={by} of={of} />}
              </Card>
            </>
          )}
        </Loaded>
        <Table
          label={`Use by ${SPLITS[by].toLowerCase()}`}
          columns={columnsOf(by, range, table.data?.total)}
          rows={sorted(table.data?.series ?? [], sort, valueIn)}
          keyOf={({ key }) => key ?? 'all others'}
          sort={sort}
          onSort={(value) => change({ sort: value })}
          isLoading={table.isPending}
          error={table.error}
          onRetry={() => void table.refetch()}
          empty={<p className="state soft">No calls to split.</p>}
        />
        <BudgetForecasts />
        {seesAll(me) && <LedgerCheckCard range={range} />}
      </div>
    </>
  )
}

const NoCalls = () => (
  <Empty icon="chart" title="There were no calls in this range">
    Choose a longer range, or make a first call in the playground.
  </Empty>
)

function Figures({ total, before }: { total: Sums; before: Sums | undefined }) {
  const change = (read: (sums: Sums) => number) => {
    const former = before && read(before)
    if (!former) return undefined
    const part = read(total) / former - 1
    if (part > 9) return `${Math.round(part + 1)} times the range before`
    return `${part >= 0 ? '+' : '−'}${share(Math.abs(part))} to the range before`
  }
  const tokens = (sums: Sums) => sums.input_tokens + sums.output_tokens
  return (
    <Stats>
      <Stat label="Cost" value={<Money value={total.cost} />} note={change(({ cost }) => cost)} />
      <Stat label="Charge" value={<Money value={total.charge} />} note={change(({ charge }) => charge)} />
      <Stat label="Margin" value={<Money value={total.charge - total.cost} />} />
      <Stat label="Calls" value={<Count value={total.calls} isShort />} note={change(({ calls }) => calls)} />
      <Stat label="Tokens" value={<Count value={tokens(total)} isShort />} note={change(tokens)} />
      <Stat
        label="Failed calls"
        value={<Count value={errorsOf(total)} isShort />}
        note={share(errorsOf(total) / total.calls)}
      />
    </Stats>
  )
}

function SplitChart({ data, by, of }: { data: Summary; by: Split; of: keyof typeof MEASURES }) {
  const { read, format, label } = MEASURES[of]
  const times = timesOf(data)
  return (
    <Chart
      label={`${label} by ${SPLITS[by].toLowerCase()} over time`}
      kind="stack"
      height={260}
      times={times}
      format={format}
      series={data.series.map((series) => ({
        name: nameOf(by, series),
        values: valuesOf(series, times, { read, without: 0 }),
      }))}
    />
  )
}

function columnsOf(by: Split, range: TimeRange, all: Sums | undefined): Column<SummarySeries>[] {
  const span = { range: 'custom', from: String(range.start), to: String(range.end) }
  const rowsOf = (key: string | null, value: number, filter: Record<string, string> = {}) =>
    key ? (
      <A to="/requests" search={{ [by]: key, ...filter, ...span }}>
        <Count value={value} />
      </A>
    ) : (
      <Count value={value} />
    )
  return [
    {
      key: 'name',
      head: SPLITS[by],
      isSortable: true,
      cell: (series) => {
        const page = series.key === null ? undefined : pageOf(by, series.key)
        const name = <span className="cut">{nameOf(by, series)}</span>
        return page ? <A to={page}>{name}</A> : name
      },
    },
    {
      key: 'calls',
      head: 'Calls',
      isNumber: true,
      isSortable: true,
      cell: ({ key, total }) => rowsOf(key, total.calls),
    },
    {
      key: 'errors',
      head: 'Failed',
      isNumber: true,
      isSortable: true,
      cell: ({ key, total }) => rowsOf(key, errorsOf(total), { error: 'any' }),
    },
    {
      key: 'input',
      head: 'Input tokens',
      isNumber: true,
      isSortable: true,
      cell: ({ total }) => <Count value={total.input_tokens} isShort />,
    },
    {
      key: 'output',
      head: 'Output tokens',
      isNumber: true,
      isSortable: true,
      cell: ({ total }) => <Count value={total.output_tokens} isShort />,
    },
    {
      key: 'hits',
      head: 'Cache hits',
      isNumber: true,
      isSortable: true,
      cell: ({ total }) => <Count value={total.cache_hits} />,
    },
    { key: 'cost', head: 'Cost', isNumber: true, isSortable: true, cell: ({ total }) => <Money value={total.cost} /> },
    {
      key: 'charge',
      head: 'Charge',
      isNumber: true,
      isSortable: true,
      cell: ({ total }) => <Money value={total.charge} />,
    },
    { key: 'share', head: 'Of the cost', isNumber: true, cell: ({ total }) => share(total.cost / (all?.cost ?? 0)) },
  ]
}

const READERS: Record<string, (sums: Sums) => number> = {
  calls: ({ calls }) => calls,
  errors: errorsOf,
  input: (sums) => sums.input_tokens,
  output: (sums) => sums.output_tokens,
  hits: (sums) => sums.cache_hits,
  cost: ({ cost }) => cost,
  charge: ({ charge }) => charge,
}

const valueIn = ({ name, total }: SummarySeries, key: string): string | number => READERS[key]?.(total) ?? name

/** By what the ledger can split; what it cannot is exported by project. */
const LEDGER_SPLITS: Partial<Record<Split, string>> = {
  token: 'token',
  model: 'model',
  provider: 'provider',
  user: 'end_user',
}

function ExportLink({ by, range }: { by: Split; range: TimeRange }) {
  const query = new URLSearchParams({
    by: `${LEDGER_SPLITS[by] ?? 'project'},day`,
    from: String(range.start),
    to: String(range.end),
    format: 'csv',
  })
  return (
    <a className="button" href={`/admin/v1/usage?${query}`} download={`usage-by-${LEDGER_SPLITS[by] ?? 'project'}.csv`}>
      Export CSV
    </a>
  )
}
