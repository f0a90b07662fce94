/** Whether the ledger adds up over the range of the page: read when somebody asks, since it reads every entry. */
import { useState } from 'react'
import { useApi } from '../../api/hooks.ts'
import type { Api } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Card } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import type { TimeRange } from '../../ui/time-range.tsx'
import { Count, Money, Time } from '../../ui/values.tsx'

type LedgerCheck = Api['GET /admin/v1/ledger/reconcile']['response']
type Difference = LedgerCheck['differences'][number]

const COLUMNS: Column<Difference>[] = [
  { key: 'what', head: 'Sum', cell: ({ what }) => what.replace('_', ' ') },
  { key: 'at', head: 'Time', cell: ({ at }) => <Time at={at} /> },
  { key: 'of', head: 'Of', cell: ({ of }) => <span className="cut">{of.filter(Boolean).join(', ')}</span> },
  { key: 'count', head: 'Count', cell: ({ count }) => count.replace('_', ' ') },
  { key: 'difference', head: 'Entries less sum', cell: ({ difference }) => difference, isNumber: true },
]

export function LedgerCheckCard({ range: { start, end } }: { range: TimeRange }) {
  /** The range that was asked for: another one is asked for anew. */
  const [asked, setAsked] = useState<{ from: string; to: string }>()
  const isAsked = asked?.from === String(start) && asked.to === String(end)
  const check = useApi('GET /admin/v1/ledger/reconcile', { query: asked ?? {} }, { enabled: isAsked })
  const ask = () => {
    if (isAsked) void check.refetch()
    else setAsked({ from: String(start), to: String(end) })
  }
  return (
    <Card
      title="Ledger"
      acts={
        <Button size="small" icon="check" isBusy={isAsked && check.isFetching} onClick={ask}>
          Check the ledger
        </Button>
      }
    >
      {isAsked ? (
        <Loaded query={check} lines={2}>
          {(data) => <Result data={data} />}
        </Loaded>
      ) : (
        <p className="soft">Compares the sums of bills and budgets with every call of this range, at most 92 days.</p>
      )}
    </Card>
  )
}

const Result = ({ data }: { data: LedgerCheck }) => (
  <div className="stack">
    <p className="row" role="status">
      <Badge tone={data.difference === 0 ? 'ok' : 'danger'}>
        {data.difference === 0 ? 'adds up' : data.difference === 1 ? '1 sum differs' : `${data.difference} sums differ`}
      </Badge>
      <span>
        <Count value={data.requests} /> calls, charge <Money value={data.amount} />, cost <Money value={data.cost} />
        {data.unknown_costs > 0 && (
          <>
            {' '}
            without <Count value={data.unknown_costs} /> calls of unknown cost
          </>
        )}
      </span>
    </p>
    {data.difference > 0 && (
      <Table
        label="Differences"
        columns={COLUMNS}
        rows={data.differences}
        keyOf={({ what, at, of, count }) => [what, at, count, ...of].join(' ')}
      />
    )}
  </div>
)
