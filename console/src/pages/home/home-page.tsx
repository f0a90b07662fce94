/** How the gateway is now, and over a range of time beside the one before it. */
import { useMe } from '../../api/hooks.ts'
import { errorsOf, type Sums, useSummary } from '../../api/summary.ts'
import { callCount, count, duration, share, shortCount, shortMoney } from '../../lib/format.ts'
import { hasRight, seesAll } from '../../shell/page.ts'
import { A } from '../../ui/button.tsx'
import { Stat, Stats } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type TimeRange, TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'
import { FirstRun } from './first-run.tsx'
import { HomeCharts } from './home-charts.tsx'
import { HomeHealth } from './home-health.tsx'
import { HomeTops } from './home-tops.tsx'
import { OpenAlerts } from './open-alerts.tsx'

export function HomePage() {
  const me = useMe()
  const range = useTimeRange('24h')
  const now = useSummary(range)
  const before = useSummary({ ...range, ...range.previous })
  return (
    <>
      <PageHead title="Home" acts={<TimeRangeSelect fallback="24h" />} />
      <div className="stack">
        {seesAll(me) && <OpenAlerts />}
        {hasRight(me, 'call') && <FirstRun hasCalls={(now.data?.total.calls ?? 0) > 0} />}
        <Loaded query={now} lines={12}>
          {(summary) => (
            <>
              <Figures now={summary.total} before={before.data?.total} range={range} />
              <HomeCharts now={summary} before={before.data} range={range} />
            </>
          )}
        </Loaded>
        <HomeTops range={range} total={now.data?.total} />
        {seesAll(me) && <HomeHealth />}
      </div>
    </>
  )
}

type FiguresProps = { now: Sums; before: Sums | undefined; range: TimeRange }

/** Each figure leads to what it counts. */
function Figures({ now, before, range }: FiguresProps) {
  const search = addressOf(range)
  const tokens = (sums: Sums) => sums.input_tokens + sums.output_tokens
  const rate = (sums: Sums) => (sums.calls === 0 ? 0 : errorsOf(sums) / sums.calls)
  const hits = (sums: Sums) => (sums.calls === 0 ? 0 : sums.cache_hits / sums.calls)
  return (
    <Stats>
      <Stat
        label="Calls"
        value={
          <A to="/requests" search={search}>
            {shortCount(now.calls)}
          </A>
        }
        note={changeOf(now.calls, before?.calls)}
      />
      <Stat
        label="Failed"
        value={
          <A to="/requests" search={{ ...search, status: 'error' }}>
            {share(rate(now))}
          </A>
        }
        note={before && (before.calls === 0 ? 'none before' : `${share(rate(before))} before`)}
        isGood={before && before.calls > 0 && rate(now) !== rate(before) ? rate(now) < rate(before) : undefined}
      />
      <Stat label="Duration" value={milliseconds(now.duration.p50)} note={medianNote(now.duration.p95)} />
      <Stat label="First byte" value={milliseconds(now.first_byte.p50)} note={medianNote(now.first_byte.p95)} />
      <Stat
        label="Tokens"
        value={
          <A to="/usage" search={search}>
            {shortCount(tokens(now))}
          </A>
        }
        note={changeOf(tokens(now), before && tokens(before))}
      />
      <Stat
        label="Cost"
        value={
          <A to="/usage" search={search}>
            {shortMoney(now.cost)}
          </A>
        }
        note={changeOf(now.cost, before?.cost)}
      />
      <Stat label="From the cache" value={share(hits(now))} note={callCount(now.cache_hits)} />
    </Stats>
  )
}

/** The range as another page has it in its address. */
const addressOf = ({ start, end }: TimeRange) => ({ range: 'custom', from: String(start), to: String(end) })

const milliseconds = (value: number | null): string => (value === null ? '–' : duration(value))
const medianNote = (p95: number | null): string => `median; 95\u00a0%: ${milliseconds(p95).replace(' ', '\u00a0')}`

function changeOf(now: number, before: number | undefined): string | undefined {
  if (before === undefined) return undefined
  if (before === 0) return 'none before'
  if (now / before >= 10) return `${count(Math.round(now / before))}\u00a0× before`
  const change = now / before - 1
  return Math.abs(change) < 0.005 ? 'as before' : `${share(Math.abs(change))} ${change > 0 ? 'more' : 'less'}`
}
