/** One project: what it has used, its budgets, its tokens, and its acts. */
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAct, useApi, useApiList, useMe } from '../../api/hooks.ts'
import type { Project } from '../../api/types.ts'
import { familyName } from '../../lib/families.ts'
import { mayManage, seesAll } from '../../shell/page.ts'
import { useRouteParams } from '../../ui/address.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Card, CopyableId, Facts, Nothing } from '../../ui/display.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { TimeRangeSelect } from '../../ui/time-range.tsx'
import { Time } from '../../ui/values.tsx'
import { AccountHead } from './account-head.tsx'
import { BudgetList } from './budget-list.tsx'
import { endUserText, labelLines, limitName } from './draft.ts'
import { EditAccount } from './edit-account.tsx'
import { useProjectList } from './project-list.ts'
import { UsageSummary } from './usage-summary.tsx'

export function ProjectPage() {
  const { project_id = '' } = useRouteParams()
  const project = useApi('GET /admin/v1/projects/{project_id}', { params: { project_id } })
  return (
    <Loaded query={project} lines={10}>
      {(data) => <ProjectDetails key={project_id} project={data} />}
    </Loaded>
  )
}

function ProjectDetails({ project }: { project: Project }) {
  const me = useMe()
  const isManaged = mayManage(me, project.project_id)
  const mayLabel = isManaged && !project.declared
  const mayChange = mayLabel && seesAll(me)
  const { list, kept } = useProjectList()
  const [open, setOpen] = useState<'edit' | 'delete' | 'disable'>()
  const params = { project_id: project.project_id }
  const update = useAct('PATCH /admin/v1/projects/{project_id}', {
    changes: ['GET /admin/v1/projects', 'GET /admin/v1/budgets'],
    done: 'Project changed',
    onDone: () => setOpen(undefined),
    showsError: true,
  })
  return (
    <>
      <AccountHead
        kind="project"
        account={project}
        id={project.project_id}
        ids={list.rows.map((row) => row.project_id)}
        list={list}
        kept={kept}
        acts={
          <>
            {mayLabel && (
              <Button icon="edit" onClick={() => setOpen('edit')}>
                Edit
              </Button>
            )}
            {mayChange && (
              <>
                {project.disabled ? (
                  <Button
                    icon="play"
                    isBusy={update.isPending}
                    onClick={() => update.mutate({ params, body: { disabled: false } })}
                  >
                    Enable
                  </Button>
                ) : (
                  <Button icon="pause" onClick={() => setOpen('disable')}>
                    Disable
                  </Button>
                )}
                <Button kind="danger" icon="trash" onClick={() => setOpen('delete')}>
                  Delete
                </Button>
              </>
            )}
          </>
        }
      />
      <div className="stack">
        <Card title="Use" acts={<TimeRangeSelect fallback="7d" />}>
          <UsageSummary filter={{ project: project.project_id }} />
        </Card>
        <Card title="Budgets" isFlush>
          <BudgetList project_id={project.project_id} />
        </Card>
        <ProjectTokens project_id={project.project_id} mayCreate={isManaged} />
        <Card title="Settings">
          <ProjectFacts project={project} />
        </Card>
      </div>
      {open === 'edit' && (
        <EditAccount
          title={`Edit ${project.name}`}
          account={project}
          isLabelsOnly={!mayChange}
          onClose={() => setOpen(undefined)}
          onSave={(body) => update.mutate({ params, body })}
          isBusy={update.isPending}
          error={update.error}
        />
      )}
      {open === 'disable' && (
        <ConfirmDialog
          open
          onClose={() => setOpen(undefined)}
          title={`Disable ${project.name}?`}
          act="Disable project"
          isBusy={update.isPending}
          onConfirm={() => update.mutate({ params, body: { disabled: true } })}
        >
          <p>Every call with one of its tokens is refused until it is enabled again.</p>
        </ConfirmDialog>
      )}
      {open === 'delete' && <DeleteProject project={project} onClose={() => setOpen(undefined)} />}
    </>
  )
}

function ProjectFacts({ project }: { project: Project }) {
  const limits = Object.entries(project.rate_limits).map(([limit, amount]) => `${limitName(limit)}: ${amount}`)
  return (
    <Facts
      rows={[
        ['Id', <CopyableId key="id" id={project.project_id} />],
        ['Models', project.models.join(', ') || <Nothing key="models" text="none" />],
        ['Kinds of calls', project.families?.map(familyName).join(', ') ?? <Nothing key="families" text="all" />],
        ['Guards', project.guards.join(', ') || <Nothing key="guards" text="only those of its models" />],
        ['Rate limits', limits.join(', ') || null],
        ['Each end user', endUserText(project.end_users) || null],
        ['Labels', labelLines(project.labels).join(', ') || null],
        ['Allowed addresses', project.allowed_addresses?.join(', ') ?? <Nothing key="addresses" text="any" />],
        ['Contents of requests', project.log_contents ?? <Nothing key="contents" text="as the configuration says" />],
        [
          'Expires',
          project.expires_at === null ? (
            <Nothing key="expires" text="never" />
          ) : (
            <Time key="expires" at={project.expires_at} />
          ),
        ],
        ['Created', <Time key="created" at={project.created_at} />],
      ]}
    />
  )
}

function ProjectTokens({ project_id, mayCreate }: { project_id: string; mayCreate: boolean }) {
  const tokens = useApiList(
    'GET /admin/v1/tokens',
    { query: { project_id, active: 'true', order: 'newest' } },
    { limit: 20 },
  )
  return (
    <Card
      title="Active tokens"
      isFlush
      acts={
        <>
          <ButtonLink size="small" to="/tokens" search={{ project: project_id, state: 'all' }}>
            All tokens
          </ButtonLink>
          {mayCreate && (
            <ButtonLink size="small" icon="plus" to="/tokens" search={{ project: project_id, add: 'yes' }}>
              New token
            </ButtonLink>
          )}
        </>
      }
    >
      <Table
        label="Active tokens"
        columns={[
          { key: 'name', head: 'Name', cell: ({ name }) => name },
          { key: 'prefix', head: 'Starts with', cell: ({ prefix }) => <span className="mono">{prefix}</span> },
          { key: 'used', head: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} isRelative /> },
        ]}
        rows={tokens.rows}
        keyOf={({ token_id }) => token_id}
        linkOf={({ token_id }) => ({ to: `/tokens/${token_id}` })}
        isLoading={tokens.isLoading}
        error={tokens.error}
        onRetry={tokens.reload}
        empty={<p className="state">It has no active token.</p>}
      />
    </Card>
  )
}

function DeleteProject({ project, onClose }: { project: Project; onClose(): void }) {
  const navigate = useNavigate()
  const remove = useAct('DELETE /admin/v1/projects/{project_id}', {
    changes: ['GET /admin/v1/projects$', 'GET /admin/v1/tokens$'],
    done: `Project ${project.name} deleted`,
    onDone: () => void navigate({ to: '/projects' as never }),
  })
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Delete ${project.name}?`}
      act="Delete project"
      typed={project.name}
      isBusy={remove.isPending}
      onConfirm={() => remove.mutate({ params: { project_id: project.project_id } })}
    >
      <p>
        Every call with one of its tokens is refused from now on. What it has used stays in the ledger and in the
        request log. This cannot be undone.
      </p>
    </ConfirmDialog>
  )
}
