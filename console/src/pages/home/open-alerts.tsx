/** The alerts that are open now, above everything else; nothing where there are none. */
import { useApiAll } from '../../api/hooks.ts'
import type { Alert } from '../../api/types.ts'
import { A } from '../../ui/button.tsx'
import { Badge, Card } from '../../ui/display.tsx'
import { Time } from '../../ui/values.tsx'

const SHOWN = 4

export function OpenAlerts() {
  const alerts = useApiAll('GET /admin/v1/alerts', { query: { state: 'open' } }, { refetch_ms: 15_000 })
  if (alerts.rows.length === 0) return null
  const more = alerts.rows.length - SHOWN
  return (
    <Card
      title={alerts.rows.length === 1 ? '1 open alert' : `${alerts.rows.length} open alerts`}
      acts={<A to="/alerts">All alerts</A>}
    >
      <ul className="lines">
        {alerts.rows.slice(0, SHOWN).map((alert) => (
          <OpenAlert key={alert.alert_id} alert={alert} />
        ))}
        {more > 0 && <li className="faint">{more} more</li>}
      </ul>
    </Card>
  )
}

const OpenAlert = ({ alert: { type, message, raised_at } }: { alert: Alert }) => (
  <li className="row-between">
    <span className="row alert-text">
      <Badge tone="danger">{type.replaceAll(/[._]/g, ' ')}</Badge>
      <span className="wrap">{message}</span>
    </span>
    <span className="faint number">
      <Time at={raised_at} isRelative />
    </span>
  </li>
)
