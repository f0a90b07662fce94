/** The budgets that will be used up before their window ends, and those that come closest to it. */
import { useApiAll } from '../../api/hooks.ts'
import { money } from '../../lib/format.ts'
import { A } from '../../ui/button.tsx'
import { Badge, Card, Meter } from '../../ui/display.tsx'
import { useNow } from '../../ui/now.ts'
import { Time } from '../../ui/values.tsx'
import { byRisk, type Forecast, forecastOf } from './forecast.ts'

const SHOWN = 8

export function BudgetForecasts() {
  const now = useNow()
  const { rows } = useApiAll('GET /admin/v1/budgets', {}, { refetch_ms: 60_000 })
  const forecasts = byRisk(rows.map((row) => forecastOf(row, now)).filter((one) => one !== undefined)).slice(0, SHOWN)
  if (forecasts.length === 0) return null
  return (
    <Card title="Budgets at the end of their window, if it goes on like this" acts={<A to="/budgets">All budgets</A>}>
      <ul className="usage-forecasts">
        {forecasts.map((forecast) => (
          <ForecastRow key={forecast.budget.budget} forecast={forecast} />
        ))}
      </ul>
    </Card>
  )
}

function ForecastRow({ forecast: { budget, limit, expected, used_up_at } }: { forecast: Forecast }) {
  const name = budget.owner ?? budget.scope
  const text = `${money(expected)} of ${money(limit)}`
  return (
    <li>
      <div className="row-between">
        <span className="cut">{name}</span>
        <span className="row">
          {used_up_at !== undefined && (
            <Badge tone={budget.soft ? 'warn' : 'danger'}>
              used up <Time at={used_up_at} isRelative />
            </Badge>
          )}
          <span className="soft">{text}</span>
        </span>
      </div>
      <Meter label={`${name}: expected at the end of the window`} value={expected} max={limit} text={text} />
    </li>
  )
}
