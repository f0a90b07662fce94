/** The list of alerts: what is wrong now, and what was. */
import { useAct, useApiList, useMe } from '../../api/hooks.ts'
import type { Alert } from '../../api/types.ts'
import { choice } from '../../lib/search.ts'
import { hasRight } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { Count, Time } from '../../ui/values.tsx'

const STATES = ['open', 'past'] as const

export function AlertsPage() {
  const [{ state }, change] = useAddress({ state: choice(STATES, 'open') })
  const alerts = useApiList('GET /admin/v1/alerts', { query: { state } }, { refetch_ms: 15_000 })
  const mayClose = hasRight(useMe(), 'operate')
  const columns: Column<Alert>[] = [
    {
      key: 'type',
      head: 'Alert',
      cell: ({ type }) => <Badge tone={state === 'open' ? 'danger' : 'plain'}>{type}</Badge>,
    },
    { key: 'message', head: 'What happened', cell: ({ message }) => <span title={message}>{message}</span> },
    { key: 'raised', head: 'Raised', cell: ({ raised_at }) => <Time at={raised_at} isRelative /> },
    { key: 'seen', head: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} isRelative /> },
    { key: 'times', head: 'Times', cell: ({ times }) => <Count value={times} />, isNumber: true },
    state === 'open'
      ? { key: 'acts', head: '', cell: (alert) => mayClose && <CloseButton alert={alert} /> }
      : { key: 'closed', head: 'Closed by', cell: ({ closed_by }) => closed_by ?? 'itself' },
  ]
  return (
    <>
      <PageHead
        title="Alerts"
        note="What needs an operator: failing targets, refused keys, budgets, storage, the ledger."
        acts={
          <Segments
            label="State"
            value={state}
            options={[
              { value: 'open', label: 'Open' },
              { value: 'past', label: 'Past' },
            ]}
            onChange={(value) => change({ state: value as typeof state }, { push: true })}
          />
        }
      />
      <Table
        label="Alerts"
        columns={columns}
        rows={alerts.rows}
        keyOf={({ alert_id }) => alert_id}
        isLoading={alerts.isLoading}
        error={alerts.error}
        onRetry={alerts.reload}
        hasMore={alerts.hasMore}
        isLoadingMore={alerts.isLoadingMore}
        onMore={alerts.more}
        empty={
          <Empty title={state === 'open' ? 'No alert is open' : 'There was no alert yet'} icon="check">
            The configuration can send alerts to a webhook, Slack or email: see{' '}
            <a href="/manual/alerts" target="_blank" rel="noreferrer">
              the manual
            </a>
            .
          </Empty>
        }
      />
    </>
  )
}

function CloseButton({ alert: { alert_id, type } }: { alert: Alert }) {
  const close = useAct('POST /admin/v1/alerts/{alert_id}/close', {
    changes: ['GET /admin/v1/alerts'],
    done: 'Alert closed',
  })
  return (
    <Button
      size="small"
      aria-label={`Close ${type}`}
      isBusy={close.isPending}
      onClick={() => close.mutate({ params: { alert_id } })}
    >
      Close
    </Button>
  )
}
