/** The audit log: its rows by who, what and when, and the check that no row was changed. */
import { useState } from 'react'
import { useAct, useMe } from '../../api/hooks.ts'
import type { AuditCheck, AuditRow } from '../../api/types.ts'
import { count } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, CopyableId, Nothing } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TimeRangeSelect } from '../../ui/time-range.tsx'
import { ShortTime } from '../../ui/values.tsx'
import { NO_FILTER, useAuditList } from './audit-list.ts'

const COLUMNS: Column<AuditRow>[] = [
  { key: 'time', head: 'Time', cell: ({ at_ms }) => <ShortTime at={Math.floor(at_ms / 1000)} /> },
  { key: 'action', head: 'Action', cell: ({ action }) => action },
  { key: 'actor', head: 'Who', cell: ({ actor }) => actor },
  {
    key: 'object',
    head: 'Object',
    cell: ({ object_type, object_id }) => (
      <span>
        <span className="faint">{object_type}</span> {object_id}
      </span>
    ),
  },
  { key: 'address', head: 'From', cell: ({ address }) => address ?? <Nothing text="–" /> },
]

/** The frequent ones; another one is found by its name in the address. */
const ACTIONS = [
  'token.create',
  'token.update',
  'token.rotate',
  'token.revoke',
  'project.create',
  'project.update',
  'budget.credit',
  'override.set',
  'config.apply',
  'task.cancel',
  'request.read_contents',
  'session.login',
].map((value) => ({ value, label: value }))

export function AuditPage() {
  const { filters, change, list, kept, label, isFiltered } = useAuditList()
  const { actor, action, object_id } = filters
  const clear = () => change(NO_FILTER)
  return (
    <>
      <PageHead title="Audit" note="Who changed what, when and from where." acts={<CheckButton />} />
      <div className="stack">
        <Filters onClear={isFiltered ? clear : undefined}>
          <SearchField
            label="Find by object id or person"
            placeholder="Object id, or who"
            value={object_id || actor}
            onChange={(typed) => {
              const given = typed.trim()
              const isActor = /^(environment|gateway|(admin|login|oidc|cli):.*)$/.test(given)
              change({ actor: isActor ? given : '', object_id: isActor ? '' : given })
            }}
          />
          <TimeRangeSelect fallback="30d" />
          <FilterSelect
            label="Action"
            value={action}
            options={ACTIONS}
            onChange={(value) => change({ action: value }, { push: true })}
          />
        </Filters>
        <div className="audit-list">
          <Table
            label="Audit log"
            columns={COLUMNS}
            rows={list.rows}
            keyOf={({ sequence }) => String(sequence)}
            linkOf={({ sequence }) => ({ to: `/audit/${sequence}`, search: kept })}
            isLoading={list.isLoading}
            error={list.error}
            onRetry={list.reload}
            hasMore={list.hasMore}
            isLoadingMore={list.isLoadingMore}
            onMore={list.more}
            foot={`${count(list.rows.length)} ${list.rows.length === 1 ? 'change' : 'changes'}${list.hasMore ? ' so far' : ''}`}
            empty={
              isFiltered ? (
                <Empty
                  title="No change meets these filters"
                  icon="audit"
                  acts={<Button onClick={clear}>Clear filters</Button>}
                />
              ) : (
                <Empty title="No changes" icon="audit">
                  Nobody changed anything in the range “{label}”. Choose a longer one.
                </Empty>
              )
            }
          />
        </div>
      </div>
    </>
  )
}

/** Only for who sees the whole installation. */
function CheckButton() {
  const me = useMe()
  const [checked, setChecked] = useState<AuditCheck>()
  const check = useAct('GET /admin/v1/audit/verify', { onDone: setChecked })
  if (me?.project_id !== null) return null
  return (
    <>
      {checked && <Outcome checked={checked} />}
      <Button onClick={() => check.mutate({})} isBusy={check.isPending}>
        Check integrity
      </Button>
    </>
  )
}

const Outcome = ({ checked: { broken, rows, last_hash } }: { checked: AuditCheck }) => (
  <span role="status" className="row">
    {broken ? (
      <Badge tone="danger">
        Row {broken.sequence}: {broken.trouble}
      </Badge>
    ) : (
      <>
        <Badge tone="ok">{count(rows)} rows in order</Badge>
        <span className="faint small audit-hash">
          <CopyableId id={last_hash} />
        </span>
      </>
    )}
  </span>
)
