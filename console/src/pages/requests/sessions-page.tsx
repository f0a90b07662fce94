/** The sessions of calls: requests that callers put together, such as those of a conversation or of an agent's run. */
import { useApi } from '../../api/hooks.ts'
import type { RequestSession } from '../../api/types.ts'
import { count } from '../../lib/format.ts'
import { text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Nothing } from '../../ui/display.tsx'
import { Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'
import { Count, Money, Time } from '../../ui/values.tsx'
import { type Names, Tokens } from './columns.tsx'
import { useProjectNames } from './names.ts'

const columnsOf = (nameOf: Names): Column<RequestSession>[] => [
  { key: 'session', head: 'Session', cell: ({ session }) => <span className="mono">{session}</span> },
  { key: 'last', head: 'Last request', cell: ({ last_at }) => <Time at={last_at} isRelative /> },
  { key: 'requests', head: 'Requests', cell: ({ requests }) => <Count value={requests} />, isNumber: true },
  {
    key: 'errors',
    head: 'Errors',
    cell: ({ errors }) => (errors === 0 ? <Nothing text="0" /> : <Badge tone="danger">{count(errors)}</Badge>),
    isNumber: true,
  },
  { key: 'tokens', head: 'Tokens', cell: (row) => <Tokens row={row} />, isNumber: true },
  { key: 'cost', head: 'Cost', cell: ({ cost }) => <Money value={cost} />, isNumber: true },
  { key: 'models', head: 'Models', cell: ({ models }) => models.join(', ') || <Nothing text="–" /> },
  {
    key: 'project',
    head: 'Project',
    cell: ({ project_id }) => (project_id === null ? <Nothing text="no project" /> : nameOf(project_id)),
  },
]

export function SessionsPage() {
  const [{ user }, change] = useAddress({ user: text() })
  const { start, end, label } = useTimeRange('24h')
  const [kept] = useAddress({ range: text('24h'), from: text(), to: text() })
  const nameOf = useProjectNames()
  const sessions = useApi('GET /admin/v1/request-sessions', { query: { from: start, to: end, user } })
  const { data: rows = [], partial = false } = sessions.data ?? {}
  const clear = () => change({ user: '' })
  return (
    <>
      <PageHead
        title="Sessions"
        note="Requests with the same x-gatehouse-session, such as those of a conversation or of an agent's run."
      />
      <div className="stack">
        <Filters onClear={user ? clear : undefined}>
          <SearchField
            label="Sessions of an end user"
            placeholder="End user"
            value={user}
            onChange={(value) => change({ user: value.trim() })}
          />
          <TimeRangeSelect fallback="24h" />
        </Filters>
        <div className="sessions-list">
          <Table
            label="Sessions"
            columns={columnsOf(nameOf)}
            rows={rows}
            keyOf={({ session }) => session}
            linkOf={({ session }) => ({ to: '/requests', search: { session, ...kept } })}
            isLoading={sessions.isPending}
            error={sessions.error}
            onRetry={() => void sessions.refetch()}
            foot={
              partial
                ? `${count(rows.length)} sessions of the newest requests: older ones are not counted`
                : `${count(rows.length)} ${rows.length === 1 ? 'session' : 'sessions'}`
            }
            empty={
              user ? (
                <Empty title="No session of this end user" acts={<Button onClick={clear}>Clear filters</Button>} />
              ) : (
                <Empty title="No sessions">
                  No request in the range “{label}” names a session. Clients name one in the header x-gatehouse-session.
                </Empty>
              )
            }
          />
        </div>
      </div>
    </>
  )
}
