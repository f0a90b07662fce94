/** One webhook, with each attempt to deliver it. */
import { useAct, useApi, useMe } from '../../api/hooks.ts'
import type { Webhook } from '../../api/types.ts'
import { hasRight } from '../../shell/page.ts'
import { TokenLink } from '../../ui/account-link.tsx'
import { useRouteParams } from '../../ui/address.ts'
import { A, Button } from '../../ui/button.tsx'
import { Card, CopyableId, Facts, Nothing } from '../../ui/display.tsx'
import { ListNeighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Duration, Time } from '../../ui/values.tsx'
import { useWebhookList } from './webhook-list.ts'
import { WebhookState } from './webhook-state.tsx'

const REFETCH_MS = 5_000

type Attempt = Webhook['attempts'][number]

const COLUMNS: Column<Attempt>[] = [
  { key: 'at', head: 'Attempt', cell: ({ at_ms }) => <Time at={at_ms / 1000} /> },
  { key: 'status', head: 'Status', cell: ({ status }) => status || <Nothing text="no answer" />, isNumber: true },
  { key: 'error', head: 'Error', cell: ({ error }) => error ?? <Nothing text="–" /> },
  { key: 'took', head: 'Took', cell: ({ took_ms }) => <Duration ms={took_ms} />, isNumber: true },
]

export function WebhookPage() {
  const { webhook_id = '' } = useRouteParams()
  const params = { webhook_id }
  const { list, kept } = useWebhookList()
  const mayOperate = hasRight(useMe(), 'operate')
  const webhook = useApi('GET /admin/v1/webhooks/{webhook_id}', { params }, { refetch_ms: REFETCH_MS })
  const redeliver = useAct('POST /admin/v1/webhooks/{webhook_id}/redeliver', {
    changes: ['GET /admin/v1/webhooks'],
    done: 'It is sent again',
  })
  return (
    <Loaded query={webhook} lines={8}>
      {(data) => (
        <>
          <PageHead
            title="Webhook"
            crumbs={[{ to: '/webhooks', label: 'Webhooks', search: kept }]}
            aside={<WebhookState {...data} />}
            acts={
              <>
                <ListNeighbors
                  label="Webhooks beside this one"
                  path="/webhooks"
                  id={webhook_id}
                  ids={list.rows.map((row) => row.webhook_id)}
                  kept={kept}
                  list={list}
                />
                {mayOperate && (
                  <Button icon="refresh" isBusy={redeliver.isPending} onClick={() => redeliver.mutate({ params })}>
                    Deliver again
                  </Button>
                )}
              </>
            }
          />
          <div className="stack">
            <Card title="Delivery">
              <Facts
                rows={[
                  ['Id', <CopyableId key="id" id={data.webhook_id} />],
                  [
                    'To',
                    <span key="url" className="wrap">
                      {data.url}
                    </span>,
                  ],
                  [
                    'Task',
                    <A key="task" to={`/tasks/${data.task_id}`}>
                      {data.task_id}
                    </A>,
                  ],
                  ['Token', <TokenLink key="token" id={data.token_id} />],
                  ['Task ended', <Time key="ended" at={data.ended_at} />],
                  ['Delivered', data.delivered_at === null ? null : <Time key="delivered" at={data.delivered_at} />],
                  [
                    'Next attempt',
                    data.next_attempt_at === null ? null : <Time key="next" at={data.next_attempt_at} />,
                  ],
                ]}
              />
            </Card>
            <Card title="Attempts" isFlush>
              <Table
                label="Attempts"
                columns={COLUMNS}
                rows={data.attempts}
                keyOf={({ at_ms }) => String(at_ms)}
                empty={<p className="state">It was not sent yet.</p>}
              />
            </Card>
          </div>
        </>
      )}
    </Loaded>
  )
}
