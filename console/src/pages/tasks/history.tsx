/** Lists the events of a task in order: its states, its targets, its failed steps. */
import type { AdminTaskDetail } from '../../api/types.ts'
import { Badge, Card, Nothing } from '../../ui/display.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'
import { stateOf } from './task-text.ts'

type Step = AdminTaskDetail['steps'][number]

const COLUMNS: Column<Step>[] = [
  { key: 'time', head: 'Time', cell: ({ at_ms }) => <Time at={Math.floor(at_ms / 1000)} /> },
  {
    key: 'state',
    head: 'State',
    cell: ({ status }) => <Badge tone={stateOf(status).tone}>{stateOf(status).label}</Badge>,
  },
  {
    key: 'target',
    head: 'Target',
    cell: ({ provider, upstream_model, provider_key }) =>
      provider ? [`${provider}/${upstream_model}`, provider_key].filter(Boolean).join(' · ') : <Nothing text="–" />,
  },
  {
    key: 'trouble',
    head: 'Trouble',
    cell: ({ fail_code, failures }) =>
      fail_code || (failures > 0 ? `${failures} failed ${failures === 1 ? 'step' : 'steps'}` : <Nothing text="–" />),
  },
]

export function History({ task: { steps } }: { task: AdminTaskDetail }) {
  return (
    <Card title="History" isFlush>
      <Table
        label="History"
        columns={COLUMNS}
        rows={steps}
        keyOf={({ at_ms, status, failures }) => `${at_ms} ${status} ${failures}`}
      />
    </Card>
  )
}
