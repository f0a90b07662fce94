/** The list of webhooks: what was delivered, what waits, what was given up. */
import type { Webhook } from '../../api/types.ts'
import { Nothing } from '../../ui/display.tsx'
import { FilterSelect, Filters } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Count, Time } from '../../ui/values.tsx'
import { STATES, useWebhookList } from './webhook-list.ts'
import { WebhookState } from './webhook-state.tsx'

const COLUMNS: Column<Webhook>[] = [
  { key: 'id', head: 'Webhook', cell: ({ webhook_id }) => <span className="mono">{webhook_id}</span> },
  { key: 'state', head: 'State', cell: (webhook) => <WebhookState {...webhook} /> },
  { key: 'url', head: 'To', cell: ({ url }) => <span className="cut">{url}</span> },
  { key: 'attempts', head: 'Attempts', cell: ({ attempts }) => <Count value={attempts.length} />, isNumber: true },
  {
    key: 'last',
    head: 'Last status',
    cell: ({ attempts }) => attempts.at(-1)?.status || <Nothing text="–" />,
    isNumber: true,
  },
  { key: 'ended', head: 'Task ended', cell: ({ ended_at }) => <Time at={ended_at} isRelative /> },
  { key: 'next', head: 'Next attempt', cell: ({ next_attempt_at }) => <Time at={next_attempt_at} isRelative /> },
]

export function WebhooksPage() {
  const { state, change, list: webhooks, kept } = useWebhookList({ refetch_ms: 15_000 })
  return (
    <>
      <PageHead title="Webhooks" note="What the gateway tells the callback addresses of finished tasks." />
      <div className="stack">
        <Filters onClear={state ? () => change({ state: '' }) : undefined}>
          <FilterSelect
            label="State"
            value={state}
            options={STATES.filter(Boolean).map((value) => ({ value, label: value.replace('_', ' ') }))}
            onChange={(value) => change({ state: value as typeof state })}
          />
        </Filters>
        <Table
          label="Webhooks"
          columns={COLUMNS}
          rows={webhooks.rows}
          keyOf={({ webhook_id }) => webhook_id}
          linkOf={({ webhook_id }) => ({ to: `/webhooks/${webhook_id}`, search: kept })}
          isLoading={webhooks.isLoading}
          error={webhooks.error}
          onRetry={webhooks.reload}
          hasMore={webhooks.hasMore}
          isLoadingMore={webhooks.isLoadingMore}
          onMore={webhooks.more}
          empty={
            <Empty icon="webhook" title={state ? 'No webhook is in this state' : 'There is no webhook yet'}>
              {state ? 'Clear the filter.' : 'A task has one that is ordered with a callback_url.'}
            </Empty>
          }
        />
      </div>
    </>
  )
}
