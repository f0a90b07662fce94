/** Explains how a request was routed, and how one like it would be routed now. */
import { useState } from 'react'
import { useAct, useMe } from '../../api/hooks.ts'
import type { Request, RoutingExplanation } from '../../api/types.ts'
import { duration } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Nothing } from '../../ui/display.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Duration } from '../../ui/values.tsx'
import { explainAttempt, explainRequest } from './routing-text.ts'

export function Routing({ request }: { request: Request }) {
  const [now, setNow] = useState<RoutingExplanation>()
  const explain = useAct('POST /admin/v1/routing/explain', { onDone: setNow })
  const me = useMe()
  const canExplain = request.model !== '' && me?.project_id === null
  const { requested_model, model, family, stream = false, tags } = request
  const ask = () =>
    explain.mutate({
      body: {
        model: requested_model ?? model,
        ...(family && { family: family as never }),
        stream,
        ...(tags.length > 0 && { tags: tags.slice(0, 16) }),
      },
    })
  return (
    <Card
      title="Routing"
      acts={
        canExplain && (
          <Button size="small" onClick={ask} isBusy={explain.isPending}>
            How would it be routed now?
          </Button>
        )
      }
    >
      <div className="stack-small">
        {explainRequest(request, duration).map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
        {request.attempts.length > 0 && (
          <ol className="routing-steps">
            {request.attempts.map((attempt, index) => {
              const { title, text, tone } = explainAttempt(attempt, duration)
              return (
                // biome-ignore lint/suspicious/noArrayIndexKey: attempts have no id, and their order never changes
                <li key={index} className="routing-step" data-tone={tone}>
                  <b className="wrap">{title}</b>
                  <span className="soft wrap">{text}</span>
                </li>
              )
            })}
          </ol>
        )}
        {now && <NowTable now={now} />}
      </div>
    </Card>
  )
}

type Target = RoutingExplanation['targets'][number]

const COLUMNS: Column<Target>[] = [
  {
    key: 'order',
    head: 'Try',
    cell: ({ order }) => (order === null ? <Nothing text="–" /> : order + 1),
  },
  { key: 'target', head: 'Target', cell: ({ target, key }) => (key === undefined ? target : `${target} · ${key}`) },
  {
    key: 'state',
    head: 'State',
    cell: ({ available, reason }) =>
      available ? <Badge tone="ok">available</Badge> : <Badge tone="warn">{reason ?? 'not available'}</Badge>,
  },
  { key: 'weight', head: 'Weight', cell: ({ weight }) => weight, isNumber: true },
  { key: 'latency', head: 'Latency', cell: ({ latency_ms }) => <Duration ms={latency_ms} />, isNumber: true },
]

function NowTable({ now }: { now: RoutingExplanation }) {
  const { model, strategy, tries, order, targets } = now
  const ordered = [...targets].sort((a, b) => (a.order ?? 1_000) - (b.order ?? 1_000))
  return (
    <div className="stack-small">
      <h3>Now</h3>
      <p className="soft">
        A request like this one would be served by {model} with the strategy {strategy} and {tries}{' '}
        {tries === 1 ? 'try' : 'tries'}.{order === 'shared' && ' The next request may see another order.'}
      </p>
      <Table label="Targets now" columns={COLUMNS} rows={ordered} keyOf={({ target, key }) => `${target} ${key}`} />
    </div>
  )
}
