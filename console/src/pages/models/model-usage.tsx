/** Who uses a model: its calls over the last days, by project. */
import { useMe } from '../../api/hooks.ts'
import { timesOf, useSummary, valuesOf } from '../../api/summary.ts'
import type { Summary } from '../../api/types.ts'
import { callCount, money, shortCount } from '../../lib/format.ts'
import { seesAll } from '../../shell/page.ts'
import { A } from '../../ui/button.tsx'
import { Chart } from '../../ui/chart.tsx'
import { Card } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import { TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'

export function ModelUsage({ id }: { id: string }) {
  const isOfAll = seesAll(useMe())
  const range = useTimeRange('30d')
  const usage = useSummary(range, { model: id, by: isOfAll ? 'project' : 'none', limit: 7 })
  return (
    <Card title="Who uses it" acts={<TimeRangeSelect fallback="30d" />}>
      <Loaded query={usage}>
        {(summary) =>
          summary.total.calls === 0 ? (
            <p className="soft">Nobody called it in this range.</p>
          ) : (
            <div className="stack">
              <Calls summary={summary} />
              {isOfAll && <Projects summary={summary} />}
            </div>
          )
        }
      </Loaded>
    </Card>
  )
}

const nameOf = ({ key, name }: Summary['series'][number]): string =>
  key === '' ? 'no project' : key === null && name === 'other' ? 'all others' : name

function Calls({ summary }: { summary: Summary }) {
  const times = timesOf(summary)
  const series = summary.series.map((one) => ({
    name: summary.by === 'none' ? 'Calls' : nameOf(one),
    values: valuesOf(one, times, { read: ({ calls }) => calls, without: 0 }),
  }))
  return <Chart label="Calls over time" kind="stack" times={times} series={series} format={shortCount} />
}

function Projects({ summary: { series } }: { summary: Summary }) {
  return (
    <ul className="lines">
      {series.map((one) => (
        <li key={one.key ?? 'other'} className="row-between">
          {one.key ? <A to={`/projects/${one.key}`}>{nameOf(one)}</A> : <span>{nameOf(one)}</span>}
          <span className="soft">
            {callCount(one.total.calls, shortCount)} · {money(one.total.cost)}
          </span>
        </li>
      ))}
    </ul>
  )
}
