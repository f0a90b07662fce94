/** One row of the audit log: who did it, from where, and what it changed. */
import type { ReactNode } from 'react'
import { useApi } from '../../api/hooks.ts'
import type { AuditRow } from '../../api/types.ts'
import { useRouteParams } from '../../ui/address.ts'
import { A } from '../../ui/button.tsx'
import { Card, CopyableId, Facts } from '../../ui/display.tsx'
import { ListNeighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Time } from '../../ui/values.tsx'
import { useAuditList } from './audit-list.ts'
import { changesOf, pageOf } from './changes.ts'

export function ChangePage() {
  const { sequence = '' } = useRouteParams()
  const { list, kept } = useAuditList()
  const row = useApi('GET /admin/v1/audit/{sequence}', { params: { sequence } })
  const { data } = row
  return (
    <>
      <PageHead
        title={data?.action ?? 'Change'}
        crumbs={[{ to: '/audit', label: 'Audit', search: kept }]}
        acts={
          <ListNeighbors
            label="Changes beside this one"
            path="/audit"
            id={sequence}
            ids={list.rows.map((change) => String(change.sequence))}
            kept={kept}
            list={list}
          />
        }
        note={
          data && (
            <>
              Number {data.sequence}, <Time at={Math.floor(data.at_ms / 1000)} />
            </>
          )
        }
      />
      <Loaded query={row} lines={8}>
        {(change) => (
          <div className="stack">
            <Card title="Details">
              <Facts rows={factsOf(change)} />
            </Card>
            <Changes row={change} />
          </div>
        )}
      </Loaded>
    </>
  )
}

function Changes({ row: { before, after } }: { row: AuditRow }) {
  const changes = changesOf(before, after)
  if (changes.length === 0) return null
  return (
    <Card title="What changed" isFlush>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <section className="table-scroll" aria-label="What changed" tabIndex={0}>
        <table className="table audit-changes">
          <thead>
            <tr>
              <th scope="col">Member</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change) => (
              <tr key={change.member}>
                <th scope="row">{change.member || 'value'}</th>
                <td>{stateOf(change.before)}</td>
                <td>{stateOf(change.after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Card>
  )
}

const stateOf = (text: string | undefined): ReactNode =>
  text === undefined ? <span className="faint">not set</span> : <span className="mono audit-value">{text}</span>

const same = (filter: string, value: string): ReactNode => (
  <A to="/audit" search={{ [filter]: value, range: '90d' }} title="Everything of the same">
    {value}
  </A>
)
const copyable = (id: string): ReactNode => <CopyableId id={id} />
const link = (to: string, text: string): ReactNode => <A to={to}>{text}</A>

function factsOf(row: AuditRow): [string, ReactNode][] {
  const { actor, action, object_type, object_id, project_id, address, request_id, hash } = row
  const page = pageOf(object_type, object_id)
  return [
    ['Who', same('actor', actor)],
    ['Action', same('action', action)],
    ['Object', page ? link(page, `${object_type} ${object_id}`) : `${object_type} ${object_id}`],
    ['All changes of it', same('object_id', object_id)],
    ['Project', project_id === null ? undefined : link(`/projects/${project_id}`, project_id)],
    ['From', address],
    ['Request', request_id === null ? undefined : copyable(request_id)],
    ['Hash', copyable(hash)],
  ]
}
