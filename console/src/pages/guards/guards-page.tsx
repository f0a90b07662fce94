/** What each guard has decided of the requests of a range, and a text field that shows what each would do. */
import { type FormEvent, useState } from 'react'
import { useAct, useApi, useMe } from '../../api/hooks.ts'
import type { Api } from '../../api/types.ts'
import { count } from '../../lib/format.ts'
import { hasRight } from '../../shell/page.ts'
import { A, Button } from '../../ui/button.tsx'
import { Badge, Card, Nothing, type Tone } from '../../ui/display.tsx'
import { FormError, TextArea } from '../../ui/field.tsx'
import { Filters } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Select } from '../../ui/select.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TimeRangeSelect, useTimeRange } from '../../ui/time-range.tsx'

type Guard = Api['GET /admin/v1/guards']['response']['data'][number]
type Result = Api['POST /admin/v1/guards/test']['response']['results'][number]

const OUTCOMES: Record<string, { label: string; tone: Tone }> = {
  passed: { label: 'Passed', tone: 'ok' },
  would_replace: { label: 'Would replace', tone: 'info' },
  replaced: { label: 'Replaced', tone: 'info' },
  would_block: { label: 'Would block', tone: 'warn' },
  failed: { label: 'Failed', tone: 'danger' },
  blocked: { label: 'Blocked', tone: 'danger' },
}
const requestsWith = ({ outcomes }: Guard, outcome: string): number =>
  outcomes.filter((one) => one.outcome === outcome).reduce((sum, one) => sum + one.requests, 0)

const COLUMNS: Column<Guard>[] = [
  { key: 'name', head: 'Guard', cell: ({ name }) => <span className="cut">{name}</span> },
  { key: 'kind', head: 'Kind', cell: ({ kind }) => kind ?? <Nothing text="not configured any more" /> },
  {
    key: 'mode',
    head: 'Mode',
    cell: ({ mode }) => mode && <Badge tone={mode === 'observe' ? 'warn' : 'ok'}>{mode}</Badge>,
  },
  { key: 'on', head: 'Checks', cell: ({ on }) => on.join(', ') || <Nothing text="–" /> },
  ...Object.entries(OUTCOMES).map(
    ([key, { label }]): Column<Guard> => ({
      key,
      head: label,
      cell: (guard) => count(requestsWith(guard, key)),
      isNumber: true,
    }),
  ),
]

export function GuardsPage() {
  const mayTry = hasRight(useMe(), 'operate')
  const range = useTimeRange('24h')
  const query = { from: range.start, to: range.end }
  const guards = useApi('GET /admin/v1/guards', { query }, { keepPrevious: true })
  const { data: rows = [], requests = 0, partial = false } = guards.data ?? {}
  const isConfigured = rows.some(({ kind }) => kind !== null)
  return (
    <>
      <PageHead title="Guards" note="What checks the contents of requests and answers, and what it has decided." />
      <div className="stack">
        <Filters>
          <TimeRangeSelect fallback="24h" />
        </Filters>
        <Table
          label="Guards"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ name }) => name}
          isLoading={guards.isLoading}
          error={guards.error}
          onRetry={() => void guards.refetch()}
          foot={`Of the ${partial ? 'newest ' : ''}${count(requests)} requests of the range`}
          empty={
            <Empty title="No guard is configured" icon="guard">
              The section <code>guards</code> of the <A to="/config">configuration</A> has them: rules that block,
              replace or only observe.
            </Empty>
          }
        />
        {isConfigured && mayTry && <TryOut />}
      </div>
    </>
  )
}

const SIDES = [
  { value: 'input', label: 'Request' },
  { value: 'output', label: 'Answer' },
]

const RESULTS: Column<Result>[] = [
  { key: 'name', head: 'Guard', cell: ({ name }) => <span className="cut">{name}</span> },
  { key: 'outcome', head: 'Outcome', cell: ({ outcome }) => <Outcome outcome={outcome} /> },
  {
    key: 'text',
    head: 'Passed on',
    cell: ({ text }) => (text === null ? <Nothing text="nothing" /> : <span className="wrap">{text}</span>),
  },
]

function Outcome({ outcome }: Pick<Result, 'outcome'>) {
  if (outcome === null) return <Nothing text="not tried: it checks the other side, or asks a model or a service" />
  const { label, tone } = OUTCOMES[outcome] ?? { label: outcome, tone: 'plain' }
  return <Badge tone={tone}>{label}</Badge>
}

function TryOut() {
  const [text, setText] = useState('')
  const [on, setOn] = useState<'input' | 'output'>('input')
  const test = useAct('POST /admin/v1/guards/test', { showsError: true })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    test.mutate({ body: { text, on } })
  }
  return (
    <Card title="Try a text">
      <form className="form" onSubmit={submit}>
        <TextArea
          label="Text"
          help="Nothing is sent to a provider, and the text is not stored. Each guard gets it by itself."
          rows={4}
          value={text}
          maxLength={100_000}
          onChange={setText}
        />
        <Select label="As a text of" value={on} options={SIDES} onChange={(value) => setOn(value as typeof on)} />
        <FormError error={test.error} />
        <div>
          <Button type="submit" kind="primary" isBusy={test.isPending} disabled={text === ''}>
            Try it
          </Button>
        </div>
        {test.data && (
          <div role="status">
            <Table label="Results" columns={RESULTS} rows={test.data.results} keyOf={({ name }) => name} />
          </div>
        )}
      </form>
    </Card>
  )
}
