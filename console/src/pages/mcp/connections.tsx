/** The person's own accounts at MCP servers: connects one, finishes when the browser comes back, and ends the connection. */
import { useEffect, useState } from 'react'
import { useAct, useApiAll } from '../../api/hooks.ts'
import type { McpConnection } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Badge, Nothing } from '../../ui/display.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'

const STATES = {
  connected: { label: 'Connected', tone: 'ok' },
  ended: { label: 'Connect again', tone: 'danger' },
  none: { label: 'Not connected', tone: 'plain' },
} as const
const LIST = 'GET /admin/v1/mcp/connections'

/** What the authorization server has sent back, once: it is taken out of the address before it is used. */
function takeReturn(): string | undefined {
  const { search, pathname } = window.location
  const query = new URLSearchParams(search)
  if (!query.has('state') || !(query.has('code') || query.has('error'))) return undefined
  window.history.replaceState(window.history.state, '', pathname)
  return search.slice(1)
}

/** `isAlone`: the page has nothing else. */
export function Connections({ isAlone }: { isAlone: boolean }) {
  const [leaving, setLeaving] = useState<string>()
  const list = useApiAll(LIST, {})
  const begin = useAct('POST /admin/v1/mcp/connections/{server}', {
    onDone: ({ location }) => window.location.assign(location),
  })
  const { mutate: finish } = useAct('POST /admin/v1/mcp/connections', {
    changes: [LIST],
    done: ({ server }) => `Your account at ${server} is connected`,
  })
  const end = useAct('DELETE /admin/v1/mcp/connections/{server}', {
    changes: [LIST],
    done: ({ revoked }) =>
      revoked ? 'The connection has ended' : 'The connection has ended here; it was not revoked there',
    onDone: () => setLeaving(undefined),
  })
  useEffect(() => {
    const query = takeReturn()
    if (query !== undefined) finish({ body: { query } })
  }, [finish])
  const columns: Column<McpConnection>[] = [
    { key: 'server', head: 'Server', cell: ({ server }) => <span className="cut">{server}</span> },
    {
      key: 'state',
      head: 'Your account',
      cell: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].label}</Badge>,
    },
    {
      key: 'acts',
      head: 'Acts',
      cell: ({ server, state }) =>
        state === 'connected' ? (
          <Button size="small" aria-label={`Disconnect from ${server}`} onClick={() => setLeaving(server)}>
            Disconnect
          </Button>
        ) : (
          <Button
            size="small"
            icon="play"
            aria-label={`Connect your account at ${server}`}
            isBusy={begin.isPending && begin.variables?.params?.server === server}
            onClick={() => begin.mutate({ params: { server } })}
          >
            Connect
          </Button>
        ),
    },
    {
      key: 'since',
      head: 'Since',
      cell: ({ connected_at }) =>
        connected_at === null ? <Nothing text="–" /> : <Time at={connected_at} isRelative />,
    },
  ]
  // Most gateways have no server to which people connect by themselves.
  if (list.rows.length === 0 && !list.error && !isAlone) return null
  return (
    <>
      <Table
        label="Your accounts"
        columns={columns}
        rows={list.rows}
        keyOf={({ server }) => server}
        isLoading={list.isLoading}
        error={list.error}
        onRetry={list.reload}
        empty={
          <Empty title="No MCP server needs an account of yours" icon="tool">
            Clients use the servers at <code>/mcp</code> with a token of your project.
          </Empty>
        }
      />
      {leaving !== undefined && (
        <ConfirmDialog
          open
          onClose={() => setLeaving(undefined)}
          title={`Disconnect from ${leaving}?`}
          act="Disconnect"
          isBusy={end.isPending}
          onConfirm={() => end.mutate({ params: { server: leaving } })}
        >
          <p>Its tools are gone for you until you connect again.</p>
        </ConfirmDialog>
      )}
    </>
  )
}
