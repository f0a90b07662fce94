/** The list of projects, and the form that makes one. */
import { useState } from 'react'
import { useAct, useMe } from '../../api/hooks.ts'
import type { Project } from '../../api/types.ts'
import { money } from '../../lib/format.ts'
import { flag } from '../../lib/search.ts'
import { hasRight, seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Badge, Nothing } from '../../ui/display.tsx'
import { Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'
import { AccountFields } from './account-form.tsx'
import { AccountState } from './account-state.tsx'
import { type Draft, EMPTY, orderOf, windowName } from './draft.ts'
import { useProjectList } from './project-list.ts'

export function ProjectsPage() {
  const me = useMe()
  const mayCreate = hasRight(me, 'manage') && seesAll(me)
  const [{ add }, open] = useAddress({ add: flag() })
  const { filters, change, list: projects, kept } = useProjectList()
  const { q, sort } = filters
  const create = mayCreate && (
    <Button kind="primary" icon="plus" onClick={() => open({ add: true })}>
      New project
    </Button>
  )
  return (
    <>
      <PageHead
        title="Projects"
        note="Teams or applications: tokens that share limits, budgets and models."
        acts={create}
      />
      <div className="stack">
        {seesAll(me) && (
          <Filters onClear={q ? () => change({ q: '' }) : undefined}>
            <SearchField label="Find a project" value={q} onChange={(value) => change({ q: value })} />
          </Filters>
        )}
        <Table
          label="Projects"
          columns={COLUMNS}
          rows={projects.rows}
          keyOf={({ project_id }) => project_id}
          linkOf={({ project_id }) => ({ to: `/projects/${project_id}`, search: kept })}
          sort={sort}
          onSort={(value) => change({ sort: value as typeof sort })}
          isLoading={projects.isLoading}
          error={projects.error}
          onRetry={projects.reload}
          hasMore={projects.hasMore}
          isLoadingMore={projects.isLoadingMore}
          onMore={projects.more}
          empty={
            q ? (
              <Empty icon="folder" title="No project fits">
                Search for a part of its name or the start of its id.
              </Empty>
            ) : (
              <Empty icon="folder" title="There is no project yet" acts={create || undefined}>
                A project gives a team limits and a budget of its own.
              </Empty>
            )
          }
        />
      </div>
      {add && mayCreate && <NewProject onClose={() => open({ add: false })} />}
    </>
  )
}

const COLUMNS: Column<Project>[] = [
  { key: 'name', head: 'Name', cell: ({ name }) => <span className="cut">{name}</span> },
  {
    key: 'state',
    head: 'State',
    cell: (project) => (
      <span className="row">
        <AccountState account={project} ended="disabled" />
        {project.declared && <Badge>from the file</Badge>}
      </span>
    ),
  },
  { key: 'models', head: 'Models', cell: ({ models }) => <span className="cut">{models.join(', ')}</span> },
  {
    key: 'budgets',
    head: 'Budgets',
    cell: ({ budgets }) =>
      budgets.length === 0 ? (
        <Nothing />
      ) : (
        budgets.map(({ amount, window }) => `${money(amount)} ${windowName(window)}`).join(', ')
      ),
  },
  {
    key: 'created_at',
    head: 'Created',
    cell: ({ created_at }) => <Time at={created_at} isRelative />,
    isSortable: true,
  },
]

function NewProject({ onClose }: { onClose(): void }) {
  const [draft, setDraft] = useState<Draft>(EMPTY)
  const create = useAct('POST /admin/v1/projects', {
    changes: ['GET /admin/v1/projects'],
    done: ({ name }) => `Project ${name} created`,
    onDone: onClose,
    showsError: true,
  })
  return (
    <Dialog open onClose={onClose} title="New project" text="Only the name is needed.">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate({ body: orderOf(draft) })
        }}
      >
        <AccountFields
          draft={draft}
          onChange={(fields) => setDraft((now) => ({ ...now, ...fields }))}
          error={create.error}
        />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={create.isPending}>
            Create project
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
