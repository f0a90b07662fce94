/** The targets of a model, with their health in the process that answers. */
import type { Target } from '../../api/types.ts'
import { share } from '../../lib/format.ts'
import { A } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Duration, Time } from '../../ui/values.tsx'

const COLUMNS: Column<Target>[] = [
  { key: 'id', head: 'Target', cell: ({ id }) => id },
  {
    key: 'provider',
    head: 'Provider',
    cell: ({ provider }) => (
      <A to={`/providers/${provider}`} className="above">
        {provider}
      </A>
    ),
  },
  {
    key: 'state',
    head: 'State',
    cell: ({ health }) => (
      <Badge tone={health.state === 'available' ? 'ok' : health.state === 'probing' ? 'warn' : 'danger'}>
        {health.state}
      </Badge>
    ),
  },
  { key: 'priority', head: 'Priority', cell: ({ priority }) => priority, isNumber: true },
  { key: 'weight', head: 'Weight', cell: ({ weight }) => weight, isNumber: true },
  { key: 'latency', head: 'First byte', cell: ({ health }) => <Duration ms={health.latency_ms} />, isNumber: true },
  {
    key: 'errors',
    head: 'Errors, last minute',
    cell: ({ health: { recent } }) => (recent.error_rate === null ? '–' : share(recent.error_rate)),
    isNumber: true,
  },
  { key: 'open', head: 'Open calls', cell: ({ health }) => health.open_calls, isNumber: true },
  { key: 'ok', head: 'Last success', cell: ({ health }) => <Time at={health.last_ok_at} isRelative /> },
  {
    key: 'error',
    head: 'Last error',
    cell: ({ health: { last_error } }) =>
      last_error ? <span title={last_error.message}>{last_error.code}</span> : '–',
  },
]

export const ModelTargets = ({ targets }: { targets: Target[] }) => (
  <Table label="Targets" columns={COLUMNS} rows={targets} keyOf={({ id }) => id} />
)
