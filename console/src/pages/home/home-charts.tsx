/** The charts of the home page: calls, failures, durations and cost over the range. */
import { errorsOf, type Sums, timesOf, valuesOf } from '../../api/summary.ts'
import type { Summary } from '../../api/types.ts'
import { duration, shortCount, shortMoney } from '../../lib/format.ts'
import { useAddress } from '../../ui/address.ts'
import { Chart } from '../../ui/chart.tsx'
import type { Series } from '../../ui/chart-series.ts'
import { Card } from '../../ui/display.tsx'
import { RANGE_ADDRESS, type TimeRange } from '../../ui/time-range.tsx'

type ChartsProps = { now: Summary; before: Summary | undefined; range: TimeRange }

export function HomeCharts({ now, before, range }: ChartsProps) {
  const [, change] = useAddress(RANGE_ADDRESS)
  const times = timesOf(now)
  const length = range.end - range.start
  const earlier = times.map((time) => time - length)
  const line = (name: string, read: (sums: Sums) => number | null, without: 0 | null = 0): Series => ({
    name,
    values: valuesOf(now.series[0], times, { read, without }),
  })
  const former = (read: (sums: Sums) => number | null, without: 0 | null = 0): Series[] =>
    before && before.step === now.step
      ? [{ name: 'Range before', values: valuesOf(before.series[0], earlier, { read, without }), isPrevious: true }]
      : []
  const onSelect = (chosen: { from: number; to: number }) => change({ range: 'custom', ...chosen }, { push: true })
  return (
    <div className="grid-wide">
      <Card title="Calls">
        <Chart
          label="Calls over time"
          times={times}
          format={shortCount}
          onSelect={onSelect}
          series={[line('Calls', ({ calls }) => calls), ...former(({ calls }) => calls)]}
        />
      </Card>
      <Card title="Failed calls">
        <Chart
          label="Failed calls over time"
          times={times}
          format={shortCount}
          kind="bars"
          onSelect={onSelect}
          series={[line('Failed', errorsOf)]}
        />
      </Card>
      <Card title="Duration">
        <Chart
          label="Duration of calls over time"
          times={times}
          format={duration}
          onSelect={onSelect}
          series={[
            line('Median', ({ duration: { p50 } }) => p50, null),
            line('95 %', ({ duration: { p95 } }) => p95, null),
          ]}
        />
      </Card>
      <Card title="Cost">
        <Chart
          label="Cost over time"
          times={times}
          format={shortMoney}
          onSelect={onSelect}
          series={[line('Cost', ({ cost }) => cost), ...former(({ cost }) => cost)]}
        />
      </Card>
    </div>
  )
}
