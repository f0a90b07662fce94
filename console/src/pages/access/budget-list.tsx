/** Budgets with what is used of them. */
import { useApiList } from '../../api/hooks.ts'
import type { AdminBudget } from '../../api/types.ts'
import { money } from '../../lib/format.ts'
import { A } from '../../ui/button.tsx'
import { Badge, Meter, Nothing } from '../../ui/display.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Money } from '../../ui/values.tsx'
import { windowName } from './draft.ts'
import { WindowEnd } from './limit-bars.tsx'

const REFETCH_MS = 15_000

/** `project_id`: only those of this project and its tokens. */
export function BudgetList({ project_id = '' }: { project_id?: string }) {
  const budgets = useApiList(
    'GET /admin/v1/budgets',
    { query: { ...(project_id && { project_id }) } },
    { refetch_ms: REFETCH_MS },
  )
  return (
    <Table
      label="Budgets"
      columns={COLUMNS}
      rows={budgets.rows}
      keyOf={({ scope: of, budget }) => `${of} ${budget}`}
      isLoading={budgets.isLoading}
      error={budgets.error}
      onRetry={budgets.reload}
      hasMore={budgets.hasMore}
      isLoadingMore={budgets.isLoadingMore}
      onMore={budgets.more}
      empty={
        <Empty icon="budget" title="No budget is in use">
          A budget is set at a project or token, and appears here with its first use.
        </Empty>
      }
    />
  )
}

const COLUMNS: Column<AdminBudget>[] = [
  { key: 'owner', head: 'Of', cell: (budget) => <Owner budget={budget} /> },
  {
    key: 'amount',
    head: 'Budget',
    cell: ({ amount, window, soft }) => (
      <span className="row">
        {amount === null ? <Nothing text="no longer set" /> : `${money(amount)} ${windowName(window)}`}
        {soft && <Badge>only warns</Badge>}
      </span>
    ),
  },
  { key: 'bar', head: 'Used', cell: (budget) => <Used budget={budget} /> },
  { key: 'used', head: 'Amount', cell: ({ used }) => <Money value={used} />, isNumber: true },
  { key: 'held', head: 'Held', cell: ({ held }) => <Money value={held} />, isNumber: true },
  { key: 'credit', head: 'Credit', cell: ({ credit }) => <Money value={credit} />, isNumber: true },
  { key: 'end', head: 'Window', cell: ({ window_end }) => <WindowEnd end={window_end} /> },
]

function Owner({ budget: { scope, owner } }: { budget: AdminBudget }) {
  const [, kind, id, user] = /^(project|token|user):([^/]+)(?:\/(.*))?$/s.exec(scope) ?? []
  if (kind === 'project') return <A to={`/projects/${id}`}>{owner ?? id}</A>
  if (kind === 'token') return <A to={`/tokens/${id}`}>{owner ?? id}</A>
  return <span className="cut">{kind === 'user' ? `end user ${user}` : (owner ?? scope)}</span>
}

function Used({ budget: { amount, used, held, credit } }: { budget: AdminBudget }) {
  if (amount === null) return <Nothing text="–" />
  const max = amount + credit
  return <Meter label="Used" value={used + held} max={max} text={`${money(used)} of ${money(max)}`} />
}
