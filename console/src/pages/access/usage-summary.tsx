/** Shows the usage of a token or project over a range of time. */
import { errorsOf, timesOf, useSummary, valuesOf } from '../../api/summary.ts'
import { count, share } from '../../lib/format.ts'
import { A } from '../../ui/button.tsx'
import { Chart } from '../../ui/chart.tsx'
import { Stat, Stats } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import { useTimeRange } from '../../ui/time-range.tsx'
import { Count, Duration, Money } from '../../ui/values.tsx'

type Filter = { token?: string; project?: string }

export function UsageSummary({ filter }: { filter: Filter }) {
  const range = useTimeRange('7d')
  const summary = useSummary(range, { by: 'none', ...filter })
  const requests = { ...filter, range: 'custom', from: String(range.start), to: String(range.end) }
  return (
    <Loaded query={summary}>
      {(data) => {
        const { total, series } = data
        const times = timesOf(data)
        const errors = errorsOf(total)
        return (
          <div className="stack">
            <Stats>
              <Stat
                label="Calls"
                value={
                  <A to="/requests" search={requests}>
                    <Count value={total.calls} isShort />
                  </A>
                }
              />
              <Stat label="Errors" value={<Count value={errors} isShort />} note={share(errors / total.calls)} />
              <Stat label="Tokens" value={<Count value={total.input_tokens + total.output_tokens} isShort />} />
              <Stat label="Charge" value={<Money value={total.charge} />} />
              <Stat label="Time (p95)" value={<Duration ms={total.duration.p95} />} />
            </Stats>
            <Chart
              label="Calls"
              times={times}
              format={count}
              series={[
                { name: 'calls', values: valuesOf(series[0], times, { read: ({ calls }) => calls, without: 0 }) },
                { name: 'errors', values: valuesOf(series[0], times, { read: errorsOf, without: 0 }) },
              ]}
            />
          </div>
        )
      }}
    </Loaded>
  )
}
