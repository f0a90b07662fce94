/** The other requests of the session that a request belongs to. */
import { useApi } from '../../api/hooks.ts'
import type { Request } from '../../api/types.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Badge, Card } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Duration, Money, ShortTime } from '../../ui/values.tsx'
import { Status, Subject, Tokens } from './columns.tsx'

const SHOWN = 20

const columnsBeside = (id: string): Column<Request>[] => [
  {
    key: 'time',
    head: 'Time',
    cell: (row) => (
      <>
        <ShortTime at={row.created_at} /> {row.id === id && <Badge tone="info">this one</Badge>}
      </>
    ),
  },
  { key: 'status', head: 'Status', cell: (row) => <Status row={row} /> },
  { key: 'model', head: 'Model', cell: (row) => <Subject row={row} /> },
  { key: 'duration', head: 'Duration', cell: ({ total_ms }) => <Duration ms={total_ms} />, isNumber: true },
  { key: 'tokens', head: 'Tokens', cell: (row) => <Tokens row={row} />, isNumber: true },
  { key: 'cost', head: 'Cost', cell: ({ cost }) => <Money value={cost} />, isNumber: true },
]

export function SessionCard({ request, session }: { request: Request; session: string }) {
  const { project_id, id } = request
  const query = { session, limit: SHOWN, ...(project_id !== null && { project: project_id }) }
  const requests = useApi('GET /admin/v1/requests', { query })
  return (
    <Card
      title="Session"
      isFlush
      acts={
        <ButtonLink to="/requests" search={{ session, range: '30d' }} size="small">
          All of this session
        </ButtonLink>
      }
    >
      <Loaded query={requests} lines={4}>
        {({ data }) => (
          <Table
            label="Requests of this session"
            columns={columnsBeside(id)}
            rows={data}
            keyOf={(row) => row.id}
            linkOf={(row) => ({ to: `/requests/${row.id}`, search: { session } })}
          />
        )}
      </Loaded>
    </Card>
  )
}
