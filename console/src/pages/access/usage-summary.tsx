/** What a token or project has used over a range of time. */
import { useApi } from '../../api/hooks.ts'
import { count, share } from '../../lib/format.ts'
import { A } from '../../ui/button.tsx'
import { Chart } from '../../ui/chart.tsx'
import { Stat, Stats } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type TimeRange, useTimeRange } from '../../ui/time-range.tsx'
import { Count, Duration, Money } from '../../ui/values.tsx'

type Filter = { token?: string; project?: string }

export function UsageSummary({ filter, currency }: { filter: Filter; currency?: string | undefined }) {
  const range = useTimeRange('7d')
  const { start, end, step } = range
  const query = { start: String(start), end: String(end), step, by: 'none' as const, ...filter }
  const summary = useApi('GET /admin/v1/summary', { query }, { keepPrevious: true })
  const requests = { ...filter, start: String(start), end: String(end) }
  return (
    <Loaded query={summary}>
      {({ total, series }) => {
        const errors = Object.values(total.errors).reduce((sum, one) => sum + one, 0)
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
              <Stat label="Charge" value={<Money value={total.charge} {...(currency && { currency })} />} />
              <Stat label="Time (p95)" value={<Duration ms={total.duration.p95} />} />
            </Stats>
            <Chart label="Calls" {...callsOver(range, series[0]?.points ?? [])} format={count} />
          </div>
        )
      }}
    </Loaded>
  )
}

type Points = { time: number; calls: number; errors: Record<string, number> }[]

/** Steps without calls are zero. */
function callsOver({ start, end, step_seconds }: TimeRange, points: Points) {
  const first = Math.floor(start / step_seconds) * step_seconds
  const times = Array.from({ length: Math.ceil((end - first) / step_seconds) }, (_, at) => first + at * step_seconds)
  const known = new Map(points.map((point) => [point.time, point]))
  const failed = (time: number) => Object.values(known.get(time)?.errors ?? {}).reduce((sum, one) => sum + one, 0)
  return {
    times,
    series: [
      { name: 'calls', values: times.map((time) => known.get(time)?.calls ?? 0) },
      { name: 'errors', values: times.map(failed) },
    ],
  }
}
