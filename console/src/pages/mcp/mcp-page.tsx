/** MCP servers and whether they are connected; their tools, which are approved here; people with accounts at them. */
import { useState } from 'react'
import { useAct, useApiAll, useMe } from '../../api/hooks.ts'
import type { McpServer, McpTool } from '../../api/types.ts'
import { choice, text } from '../../lib/search.ts'
import { hasRight, seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { A, Button } from '../../ui/button.tsx'
import { Badge, Nothing, Stat, Stats } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Count, Time } from '../../ui/values.tsx'
import { ApproveDialog } from './approve-dialog.tsx'
import { Connections } from './connections.tsx'
import { People } from './people.tsx'

const STATES = {
  approved: { label: 'Approved', tone: 'ok' },
  pending: { label: 'Not approved', tone: 'warn' },
  changed: { label: 'Changed', tone: 'danger' },
} as const
const FILTERS = ['', 'pending', 'changed', 'approved'] as const
const NO_FILTER = { q: '', server: '', state: '' } as const

export function McpPage() {
  const me = useMe()
  return (
    <>
      <PageHead
        title="MCP servers"
        note="Tools that clients call through the gateway. One whose definition has changed is off until it is approved again."
      />
      <div className="stack">
        {hasRight(me, 'call') && <Connections isAlone={!seesAll(me)} />}
        {seesAll(me) && <Tools mayApprove={hasRight(me, 'operate')} />}
        {seesAll(me) && <People mayDisconnect={hasRight(me, 'operate')} />}
      </div>
    </>
  )
}

function Tools({ mayApprove }: { mayApprove: boolean }) {
  const [{ q, server, state }, change] = useAddress({ q: text(), server: text(), state: choice(FILTERS, '') })
  const [asked, setAsked] = useState<McpTool>()
  const tools = useApiAll('GET /admin/v1/mcp/tools', {}, { refetch_ms: 15_000 })
  const servers = [...new Set(tools.rows.map((tool) => tool.server))].sort()
  const rows = tools.rows.filter(
    (tool) =>
      (server === '' || tool.server === server) &&
      (state === '' || tool.state === state) &&
      `${tool.server} ${tool.tool} ${tool.description}`.toLowerCase().includes(q.toLowerCase()),
  )
  const inState = (name: McpTool['state']) => tools.rows.filter((tool) => tool.state === name).length
  return (
    <>
      <Servers mayConnect={mayApprove} />
      <Stats>
        <Stat label="Tools approved" value={<Count value={inState('approved')} />} />
        <Stat label="Not approved" value={<Count value={inState('pending')} />} />
        <Stat label="Changed since" value={<Count value={inState('changed')} />} />
      </Stats>
      <Filters onClear={q || server || state ? () => change(NO_FILTER) : undefined}>
        <SearchField label="Find a tool" value={q} onChange={(value) => change({ q: value })} />
        <FilterSelect
          label="Server"
          value={server}
          options={servers.map((value) => ({ value, label: value }))}
          onChange={(value) => change({ server: value }, { push: true })}
        />
        <FilterSelect
          label="State"
          value={state}
          options={FILTERS.flatMap((value) => (value === '' ? [] : [{ value, label: STATES[value].label }]))}
          onChange={(value) => change({ state: value as typeof state }, { push: true })}
        />
      </Filters>
      <Table
        label="Tools"
        columns={columnsOf(mayApprove ? setAsked : undefined)}
        rows={rows}
        keyOf={({ server: name, tool }) => `${name} ${tool}`}
        isLoading={tools.isLoading}
        error={tools.error}
        onRetry={tools.reload}
        empty={
          <Empty title={tools.rows.length > 0 ? 'No tool meets these filters' : 'No tool was seen yet'} icon="tool">
            {tools.rows.length > 0
              ? 'Clear a filter to see more of them.'
              : 'A server is asked for its tools when a client first uses /mcp, or when you connect to it above.'}
          </Empty>
        }
      />
      {asked && <ApproveDialog tool={asked} onClose={() => setAsked(undefined)} />}
    </>
  )
}

const SERVER_STATES = {
  connected: { label: 'Connected', tone: 'ok' },
  failing: { label: 'Failing', tone: 'danger' },
  idle: { label: 'Not connected', tone: 'plain' },
} as const

function Servers({ mayConnect }: { mayConnect: boolean }) {
  const servers = useApiAll('GET /admin/v1/mcp/servers', {}, { refetch_ms: 15_000 })
  const connect = useAct('POST /admin/v1/mcp/servers/{server}/connect', { changes: ['GET /admin/v1/mcp'] })
  const { variables, isPending } = connect
  const columns: Column<McpServer>[] = [
    { key: 'server', head: 'Server', cell: ({ server }) => <span className="cut">{server}</span> },
    {
      key: 'state',
      head: 'State',
      cell: ({ state }) => <Badge tone={SERVER_STATES[state].tone}>{SERVER_STATES[state].label}</Badge>,
    },
    {
      key: 'acts',
      head: 'Acts',
      cell: ({ server, state }) =>
        mayConnect &&
        state !== 'connected' && (
          <Button
            size="small"
            icon="play"
            aria-label={`Connect to ${server}`}
            isBusy={isPending && variables?.params?.server === server}
            onClick={() => connect.mutate({ params: { server } })}
          >
            Connect
          </Button>
        ),
    },
    {
      key: 'since',
      head: 'Failing since',
      cell: ({ failing_since }) =>
        failing_since === null ? <Nothing text="–" /> : <Time at={failing_since} isRelative />,
    },
    { key: 'tools', head: 'Tools', cell: ({ tools }) => tools ?? <Nothing text="–" />, isNumber: true },
    {
      key: 'address',
      head: 'Reached by',
      cell: ({ kind, address }) => (kind === 'program' ? `program ${address}` : (address ?? kind)),
    },
    {
      key: 'sandbox',
      head: 'Sandbox',
      cell: ({ sandbox }) =>
        sandbox?.startsWith('on') ? (
          <span className="cut" title={sandbox}>
            {sandbox}
          </span>
        ) : sandbox === null ? (
          <Nothing text="–" />
        ) : (
          <Badge tone={sandbox === 'off' ? 'warn' : 'danger'}>{sandbox}</Badge>
        ),
    },
    {
      key: 'error',
      head: 'Last error',
      cell: ({ error }) =>
        error === null ? (
          <Nothing text="–" />
        ) : (
          <span className="cut" title={error}>
            {error}
          </span>
        ),
    },
  ]
  return (
    <Table
      label="Servers"
      columns={columns}
      rows={servers.rows}
      keyOf={({ server }) => server}
      isLoading={servers.isLoading}
      error={servers.error}
      onRetry={servers.reload}
      foot="As the process that answers this page knows it"
      empty={
        <Empty title="No MCP server is configured" icon="tool">
          The section <code>mcp</code> of the <A to="/config">configuration</A> has them.
        </Empty>
      }
    />
  )
}

const columnsOf = (onApprove: ((tool: McpTool) => void) | undefined): Column<McpTool>[] => [
  { key: 'server', head: 'Server', cell: ({ server }) => <span className="cut">{server}</span> },
  { key: 'tool', head: 'Tool', cell: ({ tool }) => <span className="mono cut">{tool}</span> },
  {
    key: 'state',
    head: 'State',
    cell: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].label}</Badge>,
  },
  {
    key: 'acts',
    head: 'Acts',
    cell: (tool) =>
      onApprove &&
      tool.state !== 'approved' && (
        <Button size="small" icon="check" aria-label={`Approve ${tool.tool}`} onClick={() => onApprove(tool)}>
          Approve
        </Button>
      ),
  },
  { key: 'changes', head: 'Changed', cell: ({ changes }) => changes.map(({ member }) => member).join(', ') },
  {
    key: 'description',
    head: 'Description',
    cell: ({ description }) => (
      <span className="cut" title={description}>
        {description}
      </span>
    ),
  },
  {
    key: 'by',
    head: 'Approved',
    cell: ({ approved_at, approved_by }) =>
      approved_at === null ? (
        (approved_by ?? <Nothing text="–" />)
      ) : (
        <>
          <Time at={approved_at} isRelative /> by {approved_by}
        </>
      ),
  },
]
