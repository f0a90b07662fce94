/** Who and what stands out in the range: models, projects, errors. */
import type { ReactNode } from 'react'
import { useMe } from '../../api/hooks.ts'
import { type Sums, useSummary } from '../../api/summary.ts'
import type { SummarySeries } from '../../api/types.ts'
import { callCount, money } from '../../lib/format.ts'
import { seesAll } from '../../shell/page.ts'
import { A } from '../../ui/button.tsx'
import { Card, Meter } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import type { TimeRange } from '../../ui/time-range.tsx'

const SHOWN = 5

export function HomeTops({ range, total }: { range: TimeRange; total: Sums | undefined }) {
  const me = useMe()
  const models = useSummary(range, { by: 'model', limit: SHOWN, points: 'false' })
  const projects = useSummary(
    range,
    { by: 'project', limit: SHOWN, order: 'cost', points: 'false' },
    { enabled: seesAll(me) },
  )
  const search = { range: 'custom', from: String(range.start), to: String(range.end) }
  return (
    <div className="grid home-tops">
      <Card title="Models">
        <Loaded query={models}>
          {({ series }) => (
            <TopList
              label="Calls of models"
              rows={series.map(({ key, name, total: { calls } }) => ({
                key: key ?? 'other',
                name: key ? <A to={`/models/${key}`}>{key}</A> : nameOf({ key, name }, 'no model'),
                value: calls,
                text: callCount(calls),
              }))}
            />
          )}
        </Loaded>
      </Card>
      {seesAll(me) && (
        <Card title="Projects">
          <Loaded query={projects}>
            {({ series }) => (
              <TopList
                label="Cost of projects"
                rows={series.map(({ key, name, total: { cost } }) => ({
                  key: key ?? 'other',
                  name: key ? <A to={`/projects/${key}`}>{name}</A> : nameOf({ key, name }, 'no project'),
                  value: cost,
                  text: money(cost),
                }))}
              />
            )}
          </Loaded>
        </Card>
      )}
      <Card title="Errors">
        <TopList
          label="Errors by code"
          empty="No call failed in this range."
          rows={Object.entries(total?.errors ?? {})
            .sort(([, a], [, b]) => b - a)
            .slice(0, SHOWN)
            .map(([code, calls]) => ({
              key: code,
              name: (
                <A to="/requests" search={{ ...search, error: code }}>
                  {code}
                </A>
              ),
              value: calls,
              text: callCount(calls),
            }))}
        />
      </Card>
    </div>
  )
}

/** A series without a key is that of all others; an empty key is that of calls which have none. */
const nameOf = ({ key, name }: Pick<SummarySeries, 'key' | 'name'>, without: string): string =>
  key === '' ? without : key === null ? 'all others' : name

type Row = { key: string; name: ReactNode; value: number; text: string }
type TopListProps = { label: string; rows: Row[]; empty?: string }

function TopList({ label, rows, empty = 'There were no calls in this range.' }: TopListProps) {
  const most = Math.max(...rows.map(({ value }) => value), 0)
  if (rows.length === 0) return <p className="soft">{empty}</p>
  return (
    <ol className="tops" aria-label={label}>
      {rows.map(({ key, name, value, text }) => (
        <li key={key}>
          <span className="row-between">
            <span className="cut">{name}</span>
            <span className="number soft">{text}</span>
          </span>
          <Meter label={`${key}, share of the largest`} value={value} max={most * 1.3} text={text} />
        </li>
      ))}
    </ol>
  )
}
