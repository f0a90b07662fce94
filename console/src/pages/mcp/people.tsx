/** People who have connected an account of theirs to an MCP server, each of whom an operator can disconnect. */
import { useState } from 'react'
import { useAct, useApiAll } from '../../api/hooks.ts'
import type { McpPerson } from '../../api/types.ts'
import { text } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Badge, Card, Nothing } from '../../ui/display.tsx'
import { Filters, SearchField } from '../../ui/filters.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'

const time = (at: number | null) => (at === null ? <Nothing text="–" /> : <Time at={at} isRelative />)

export function People({ mayDisconnect }: { mayDisconnect: boolean }) {
  const [leaving, setLeaving] = useState<McpPerson>()
  const [{ person: wanted }, change] = useAddress({ person: text() })
  const people = useApiAll('GET /admin/v1/mcp/people', {})
  const rows = people.rows.filter(({ subject, server }) =>
    `${subject} ${server}`.toLowerCase().includes(wanted.toLowerCase()),
  )
  const end = useAct('DELETE /admin/v1/mcp/people/{connection_id}', {
    changes: ['GET /admin/v1/mcp'],
    done: ({ revoked }) =>
      revoked ? 'The connection has ended' : 'The connection has ended here; it was not revoked there',
    onDone: () => setLeaving(undefined),
  })
  const columns: Column<McpPerson>[] = [
    {
      key: 'person',
      head: 'Person',
      cell: ({ subject, issuer }) => (
        <span className="cut" title={`${subject} of ${issuer}`}>
          {subject}
        </span>
      ),
    },
    { key: 'server', head: 'Server', cell: ({ server }) => <span className="cut">{server}</span> },
    {
      key: 'state',
      head: 'State',
      cell: ({ state }) =>
        state === 'connected' ? <Badge tone="ok">Connected</Badge> : <Badge tone="danger">Ended</Badge>,
    },
    {
      key: 'acts',
      head: 'Acts',
      cell: (person) =>
        mayDisconnect && (
          <Button
            size="small"
            aria-label={`Disconnect ${person.subject} from ${person.server}`}
            onClick={() => setLeaving(person)}
          >
            Disconnect
          </Button>
        ),
    },
    { key: 'since', head: 'Since', cell: ({ connected_at }) => time(connected_at) },
    { key: 'used', head: 'Last used', cell: ({ last_used_at }) => time(last_used_at) },
  ]
  return (
    <Card title="People with accounts of their own" isFlush>
      {people.rows.length > 0 && (
        <Filters onClear={wanted ? () => change({ person: '' }) : undefined}>
          <SearchField label="Find a person" value={wanted} onChange={(value) => change({ person: value })} />
        </Filters>
      )}
      <Table
        label="People"
        columns={columns}
        rows={rows}
        keyOf={({ connection_id }) => connection_id}
        isLoading={people.isLoading}
        error={people.error}
        onRetry={people.reload}
        empty={
          <Empty title={wanted ? 'Nobody meets this filter' : 'Nobody has connected an account'} icon="tool">
            At a server with <code>oauth_user</code> each person connects an account on this page.
          </Empty>
        }
      />
      {leaving && (
        <ConfirmDialog
          open
          onClose={() => setLeaving(undefined)}
          title={`Disconnect ${leaving.subject} from ${leaving.server}?`}
          act="Disconnect"
          isBusy={end.isPending}
          onConfirm={() => end.mutate({ params: { connection_id: leaving.connection_id } })}
        >
          <p>
            The tools of {leaving.server} are gone for this person until they connect again, and what was approved for
            them is approved no more. {leaving.last_used_at === null ? 'It was never used.' : 'Last used '}
            {leaving.last_used_at !== null && <Time at={leaving.last_used_at} isRelative />}
          </p>
        </ConfirmDialog>
      )}
    </Card>
  )
}
